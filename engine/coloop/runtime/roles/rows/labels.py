"""Ground truth at port `labels`: a number for a text, or one for each of its steps, which a scorer
learns to predict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.algorithms.batch import Unit
from coloop.algorithms.recipes.labels import LABEL
from coloop.data.tables import Row, Score
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context
from coloop.runtime.roles.rows.texts import SIDES, as_sequence, drawn_sequence, heat_of, prompt_of
from coloop.runtime.roles.template import Prompts, prompts_over
from coloop.spec.algorithm import Algorithm, ImplicitPrm, Outcome
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.heads import head_of, learns_steps, scored_at
from coloop.spec.nodes import model_of

OF_CHANCES = (Outcome, ImplicitPrm)
"""Algorithms whose label is the probability that the text is right."""


def labelled(
    row: Row,
    edge: Edge,
    label: Score,
    node: str,
    context: Context,
    entries: Sequence[Algorithm],
    **learned: Any,
) -> Unit | None:
    """A labelled row as a sequence; None without a label. `entries`: the algorithms that learn it;
    `learned`: further fields. Raises `DataError` if they cannot learn this label."""
    if label is None:
        return None
    for number in label.values() if isinstance(label, Mapping) else (label,):
        _check(number, row, edge, node, entries)
    section, scorer = context.spec.nodes[node], edge.source.node
    if isinstance(label, Mapping):
        if scored_at(section) == "scores":
            raise DataError(
                f"row {row.id} has one score per step from `{scorer}`, but `{node}.labels` needs "
                "one number per text; combine them with a reward in between, or let "
                f"`{scorer}` return one number",
                node,
                "algorithm.labels",
            )
        return _stepwise(row, label, edge, node, learned)
    if learns_steps(section):
        raise DataError(
            f"row {row.id} has one label from `{scorer}`, and `{node}.labels` learns one a step "
            f"(`read.granularity: step`); let `{scorer}` label steps (its `step_scores`), or set "
            "`read.granularity: sequence`",
            node,
            "read.granularity",
        )
    return as_sequence(
        row,
        numbers={LABEL: float(label)},
        temperature=heat_of(row),
        **standing(row, edge),
        **learned,
    )


def _stepwise(
    row: Row,
    label: Mapping[int, float],
    edge: Edge,
    node: str,
    learned: dict[str, Any],
) -> Unit | None:
    """A sequence whose loss mask has only the tokens with a label."""
    scorer = edge.source.node
    if row.tokens is None:
        raise DataError(
            f"row {row.id} has labels of steps from `{scorer}`, but no token positions for them, "
            f"because no model of this loop generated it; label rollouts for `{node}.labels`",
            node,
            "labels",
        )
    labels = np.zeros(len(row.tokens.token_ids), np.float32)
    for token, number in label.items():
        labels[token] = number
    mask = np.zeros(len(labels), np.bool_)
    mask[list(label)] = True
    return drawn_sequence(
        row.id,
        replace(row.tokens, loss_mask=mask),
        numbers={LABEL: labels},
        version=row.version,
        **standing(row, edge),
        **learned,
    )


def standing(row: Row, edge: Edge) -> dict[str, Any]:
    """Weight, count and group of a row in an update."""
    return {"weight": edge.weight, "count": row.drawn, "group": row.group or ""}


def _check(label: float, row: Row, edge: Edge, node: str, entries: Sequence[Algorithm]) -> None:
    scorer = edge.source.node
    chance = next((entry for entry in entries if isinstance(entry, OF_CHANCES)), None)
    if chance is not None and not 0.0 <= label <= 1.0:
        raise DataError(
            f"row {row.id} has the label {label:g} from `{scorer}`, but `{chance.name}` of "
            f"`{node}.labels` needs a number from 0 (wrong) to 1 (right); rescale the labels "
            "(`scale`, `threshold` of a verifier, or a reward in between), or use `regression`",
            node,
            "algorithm.labels",
        )


# The text that a scorer with a head reads: that of the row, or the output of its `template`; of a
# pair, each side alone with the pair's prompt.

NOTHING_MORE = ""
"""The target after a template's text: empty, so that it is scored at the end of text."""


def graded_rows(
    node: str,
    rows: Sequence[Row],
    call: Call,
    incoming: Sequence[Mapping[str, Score]] = (),
    *,
    are_pairs: bool = False,
) -> Sequence[Row]:
    """Rows, or pairs, with the texts that a scorer reads: its template's, if it has one.
    `incoming`: scores of each row, by scorer."""
    template = getattr(call.context.spec.nodes[node], "template", None)
    if template is None:
        return rows
    prompts = prompts_over(node, template, rows, incoming or [{} for _ in rows], call)
    read = _sides if are_pairs else _text
    return [
        replace(row, columns={**row.columns, **read(row, prompts, index)}, tokens=None)
        for index, row in enumerate(rows)
    ]


def is_graded(spec: LoopSpec, node: str) -> bool:
    """Whether a node scores with a score head, not in words."""
    section = spec.nodes[node]
    return model_of(section) is not None and head_of(section) == "score"


def graded_as_taught(
    node: str, port: str, rows: Sequence[Row], context: Context, step: int
) -> Sequence[Row]:
    """Labelled rows, or pairs, with the texts that the scorer that learns from them reads."""
    call = Call(stage=f"{node}.learn", verb="learn", step=step, phase="", context=context)
    return graded_rows(node, rows, call, are_pairs=port == "pairs")


def _text(row: Row, prompts: Prompts, index: int) -> dict[str, Any]:
    del row
    return {"prompt": prompts(index), "target": NOTHING_MORE}


def _sides(row: Row, prompts: Prompts, index: int) -> dict[str, Any]:
    """Columns with the template's text for each side of a pair; the side is its `completion`."""
    columns: dict[str, Any] = {}
    for side in SIDES:
        prompt = row.columns.get(f"{side}_prompt") or prompt_of(row)
        known = {"prompt": prompt, "completion": row.columns[side]}
        columns |= {f"{side}_prompt": prompts(index, columns=known), side: NOTHING_MORE}
        columns[f"{side}_tokens"] = None
    return columns
