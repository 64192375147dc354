"""The texts that a judge in words learns from: rows as its prompts show them.

    pairs of verdicts       two texts that a judge generated: unchanged
    labelled pairs          sides that the judge sees as `a` and `b`: the label of the better one
                            against the other label, after its prompt
    pairs of texts          the preferred and the rejected text after its prompt

The judge's reference scores the same texts and uses these functions too.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from coloop.data.prompting import PromptProgram
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Tokens
from coloop.data.tables.join import gathered_members
from coloop.errors import DataError
from coloop.runtime.roles.generation.writer import RowPrompt
from coloop.runtime.roles.protocol import Call, Context
from coloop.runtime.roles.rows.texts import SIDES
from coloop.runtime.roles.template import prompts_over
from coloop.runtime.roles.verifiers.judge import (
    SWAPPED,
    Incoming,
    is_pair,
    orders_of,
    section_of,
    shown,
)
from coloop.spec.answers import answer_schema, criteria_text
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import head_of
from coloop.spec.nodes import VerifierNode
from coloop.spec.reading import Criterion, Read

SHOWN: Final = frozenset({"a", "b"})
LABELS: Final = 2
"""Number of labels for pairs: one if `a` is the better side, one if `b` is."""


def judges_in_words(spec: LoopSpec, node: str) -> bool:
    """Whether a node is a verifier whose model judges in words."""
    section = spec.nodes[node]
    if not isinstance(section, VerifierNode) or section.method == "implicit_prm":
        return False
    return section.model is not None and head_of(section) == "words"


def pairs_taught(node: str, rows: Sequence[Row], context: Context, step: int) -> list[Row]:
    """Pairs for a judge: its preferred and rejected texts after its prompts."""
    own = [row for row in rows if not _is_of_verdicts(row, context.spec)]
    template = section_of(node, context).template
    assert template is not None
    shows_sides = bool(PromptProgram.from_template(template, node=node).names & SHOWN)
    asked: dict[str, list[Row]] = {}
    for row_prompt in prompts_about(node, own, context, step, compares=shows_sides):
        taught = _labelled(node, row_prompt, context) if shows_sides else _changed(row_prompt, {})
        asked.setdefault(row_prompt.row.id, []).append(taught)
    return [pair for row in rows for pair in asked.get(row.id, [row])]


def prompts_about(
    node: str, rows: Sequence[Row], context: Context, step: int, *, compares: bool
) -> list[RowPrompt]:
    """The judge's prompts about rows that it learns from. `compares`: rows with two sides are shown
    as pairs."""
    call = Call(stage=f"{node}.learn", verb="learn", step=step, phase="", context=context)
    return questions_about(node, rows, [{} for _ in rows], call, compares=compares)


def pair_labels(node: str, context: Context) -> tuple[str, str]:
    """The labels for `a` and for `b`. Raises `DataError` unless there are two."""
    labels = section_of(node, context).read.labels or ()
    if len(labels) != LABELS:
        raise DataError(
            f"{node}: pairs are learned by the label of the better side, but `read.labels` has "
            f"{len(labels) or 'none'}; set two, the first one for `a`: `labels: [A, B]`",
            node,
            "read.labels",
        )
    return labels[0], labels[1]


def _is_of_verdicts(row: Row, spec: LoopSpec) -> bool:
    texts = [row.columns.get(f"{side}_tokens") for side in SIDES]
    return all(
        isinstance(text, Tokens)
        and text.writer in spec.nodes
        and spec.nodes[text.writer].kind == "verifier"
        for text in texts
    )


def _labelled(node: str, row_prompt: RowPrompt, context: Context) -> Row:
    labels = pair_labels(node, context)
    right, wrong = reversed(labels) if row_prompt.columns[SWAPPED] else labels
    row = _changed(row_prompt, {"chosen": right, "rejected": wrong})
    return row if row_prompt.number == 0 else replace(row, id=f"{row.id}/{row_prompt.number}")


def _changed(row_prompt: RowPrompt, columns: dict[str, Any]) -> Row:
    """The pair with the judge's prompt, without tokens, and with these columns."""
    gone = {f"{side}_{what}": None for side in SIDES for what in ("tokens", "prompt")}
    return replace(
        row_prompt.row,
        columns={**row_prompt.row.columns, **gone, "prompt": row_prompt.prompt, **columns},
    )


# Prompts of a judge about rows: one by its template, and for a pair one for each order in which its
# sides are shown.


def questions_about(
    node: str,
    rows: Sequence[Row],
    incoming: Sequence[Incoming],
    call: Call,
    *,
    compares: bool,
    criterion: Criterion | None = None,
) -> list[RowPrompt]:
    """A judge's prompts about these rows, in order.

    Args:
        incoming: scores of each row, by scorer.
        compares: rows with two sides are shown as pairs.
        criterion: the only one that is asked about; None: all, or there are none.
    """
    section = section_of(node, call.context)
    assert section.template is not None
    prompts = prompts_over(node, section.template, rows, incoming, call)
    seed = derive_seed(call.context.seed, node, call.salt, call.step)
    row_prompts: list[RowPrompt] = []
    for index, row in enumerate(rows):
        orders: Sequence[bool | None] = (None,)
        if compares and is_pair(row):
            orders = orders_of(row, section.read, seed)
        for number, swapped in enumerate(orders):
            sides = {} if swapped is None else shown(row, is_swapped=swapped)
            asked = names_asked(section.read, things_of(row, section.per), criterion)
            prompt = prompts(index, columns={**asked, **sides})
            columns = {"prompt": prompt, **({} if swapped is None else {SWAPPED: swapped})}
            row_prompts.append(
                RowPrompt(
                    row=row, prompt=prompt, number=number, prompts=len(orders), columns=columns
                )
            )
    return row_prompts


def things_of(row: Row, per: str | None) -> int | None:
    """How many things a judge judges together in a row: those that were gathered with `per: row`;
    None: one."""
    return len(gathered_members(row)) if per == "row" else None


def names_asked(read: Read, things: int | None, criterion: Criterion | None) -> dict[str, str]:
    """What a template can show of `read`: its criteria, and the JSON Schema of its answer."""
    names: dict[str, str] = {}
    if read.rubric is not None:
        names["criteria"] = criteria_text(read)
    if criterion is not None:
        names["criterion"] = criterion.text
    schema = answer_schema(read, things)
    return names if schema is None else {**names, "answer_format": json.dumps(schema)}
