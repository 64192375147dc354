"""The truth at port `labels`: a number for a text, or one for each of its steps, which a scorer
learns to say."""

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
"""Algorithms whose label is how likely the text is right."""


def labelled(
    row: Row,
    edge: Edge,
    label: Score,
    node: str,
    context: Context,
    entries: Sequence[Algorithm],
    **learned: Any,
) -> Unit | None:
    """A text with what is to be said of it; None where its scorer says nothing.

    Args:
        entries: what learns from it.
        learned: what else the text has.

    Raises:
        DataError: the label is none that these algorithms learn.
    """
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
    """A text of which only the tokens are learned at which a label stands."""
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
    """What a row counts in the update to which an edge brings it."""
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


# What a scorer with a head reads: the text of a row, or one that its `template` makes of it; of a
# pair each side alone, with the pair's prompt.

NOTHING_MORE = ""
"""What follows a template's text: the end of text alone, at which it is read."""


def graded_rows(
    node: str,
    rows: Sequence[Row],
    call: Call,
    incoming: Sequence[Mapping[str, Score]] = (),
    *,
    are_pairs: bool = False,
) -> Sequence[Row]:
    """Rows whose text is what a scorer reads, or pairs whose sides are.

    Args:
        incoming: the scores that came in with each row, by scorer.
    """
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
    """Whether a node scores with a head, and not in words."""
    section = spec.nodes[node]
    return model_of(section) is not None and head_of(section) == "score"


def graded_as_taught(
    node: str, port: str, rows: Sequence[Row], context: Context, step: int
) -> Sequence[Row]:
    """Labelled rows, or pairs, as the scorer that learns from them reads them."""
    call = Call(stage=f"{node}.learn", verb="learn", step=step, phase="", context=context)
    return graded_rows(node, rows, call, are_pairs=port == "pairs")


def _text(row: Row, prompts: Prompts, index: int) -> dict[str, Any]:
    del row
    return {"prompt": prompts(index), "target": NOTHING_MORE}


def _sides(row: Row, prompts: Prompts, index: int) -> dict[str, Any]:
    """Texts about both sides, in each of which a template knows one side as it would a row."""
    columns: dict[str, Any] = {}
    for side in SIDES:
        prompt = row.columns.get(f"{side}_prompt") or prompt_of(row)
        known = {"prompt": prompt, "completion": row.columns[side]}
        columns |= {f"{side}_prompt": prompts(index, columns=known), side: NOTHING_MORE}
        columns[f"{side}_tokens"] = None
    return columns
