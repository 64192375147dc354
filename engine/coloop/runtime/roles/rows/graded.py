"""What a scorer with a head reads: the text of a row, or one that its `template` makes of it; of a
pair each side alone, with the pair's prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coloop.data.tables import Row, Score
from coloop.runtime.roles.protocol import Call, Context
from coloop.runtime.roles.rows.texts import SIDES, prompt_of
from coloop.runtime.roles.writing.prompting import Prompting, Prompts
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import head_of
from coloop.spec.nodes import model_of

NOTHING_MORE = ""
"""What follows a template's text: the end of text alone, at which it is read."""


class Graded:
    """Rows as one scorer reads them."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._prompting = Prompting(node)

    def rows(
        self, rows: Sequence[Row], call: Call, incoming: Sequence[Mapping[str, Score]] = ()
    ) -> Sequence[Row]:
        """Rows whose text is what is read.

        Args:
            incoming: the scores that came in with each row, by scorer.
        """
        prompts = self._prompts(rows, call, incoming)
        if prompts is None:
            return rows
        return [
            _with(row, {"prompt": prompts.about(place), "target": NOTHING_MORE})
            for place, row in enumerate(rows)
        ]

    def pairs(
        self, rows: Sequence[Row], call: Call, incoming: Sequence[Mapping[str, Score]] = ()
    ) -> Sequence[Row]:
        """Pairs whose sides are what is read."""
        prompts = self._prompts(rows, call, incoming)
        if prompts is None:
            return rows
        return [_with(row, _sides(row, prompts, place)) for place, row in enumerate(rows)]

    def _prompts(
        self, rows: Sequence[Row], call: Call, incoming: Sequence[Mapping[str, Score]]
    ) -> Prompts | None:
        template = getattr(call.context.spec.nodes[self._node], "template", None)
        if template is None:
            return None
        return self._prompting.over(template, rows, incoming or [{} for _ in rows], call)


def is_graded(spec: LoopSpec, node: str) -> bool:
    """Whether a node scores with a head, and not in words."""
    section = spec.nodes[node]
    return model_of(section) is not None and head_of(section) == "score"


def graded_as_taught(
    node: str, port: str, rows: Sequence[Row], context: Context, step: int
) -> Sequence[Row]:
    """Labelled rows, or pairs, as the scorer that learns from them reads them."""
    call = Call(stage=f"{node}.learn", verb="learn", step=step, phase="", context=context)
    graded = Graded(node)
    return graded.pairs(rows, call) if port == "pairs" else graded.rows(rows, call)


def _sides(row: Row, prompts: Prompts, place: int) -> dict[str, Any]:
    """Texts about both sides, in each of which a template knows one side as it would a row."""
    found: dict[str, Any] = {}
    for side in SIDES:
        prompt = row.columns.get(f"{side}_prompt") or prompt_of(row)
        known = {"prompt": prompt, "completion": row.columns[side]}
        found |= {f"{side}_prompt": prompts.about(place, known), side: NOTHING_MORE}
        found[f"{side}_tokens"] = None
    return found


def _with(row: Row, columns: Mapping[str, Any]) -> Row:
    """The row with another text, of which nobody drew a token."""
    return replace(row, columns={**row.columns, **columns}, tokens=None)
