"""What a judge, a scorer or a model tool reads: its `template` over plain rows.

Same rows and seeds, same prompts.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

from jinja2 import meta

from coloop.data.patterns import Part, pattern
from coloop.data.template import Drawn, TemplateRow
from coloop.data.templates.environment import environment
from coloop.data.templates.grammar import names_of
from coloop.data.templates.rendering import RenderProblem, compiled, render_text
from coloop.errors import UserCodeError
from coloop.spec.reading import PromptTemplate, Read


@dataclass(frozen=True, kw_only=True)
class PromptProgram:
    """The template of a node, ready to work."""

    node: str
    template: PromptTemplate

    @classmethod
    def from_template(cls, template: PromptTemplate, *, node: str) -> Self:
        """Compile its texts; UserCodeError names the field that does not."""
        program = cls(node=node, template=template)
        for field_name, _, source in program._texts():
            try:
                compiled(source)
            except RenderProblem as problem:
                raise UserCodeError(f"{node}: {field_name}: {problem}", node) from None
        return program

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that its texts read."""
        trees = [environment().parse(source) for _, _, source in self._texts()]
        return frozenset().union(*map(meta.find_undeclared_variables, trees))

    def prompt(
        self,
        rows: Sequence[TemplateRow],
        place: int,
        *,
        library: Sequence[TemplateRow] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> str | list[dict[str, Any]]:
        """The text or chat about one of the rows.

        Args:
            library: rows that `others` draws from instead of the other rows.
            columns: what the row has besides, such as the sides of a pair.
        """
        row, drawn = rows[place], Drawn(place, rows, library)
        names = names_of({**row.columns, **(columns or {})}, row.scoped, row.scores)
        names["others"], names["past"] = drawn.others, drawn.past
        said: list[dict[str, Any]] = []
        for field_name, role, source in self._texts():
            try:
                said.append({"role": role, "content": render_text(source, names)})
            except RenderProblem as problem:
                message = f"{self.node}, row {place}: {field_name}: {problem}"
                raise UserCodeError(message, self.node, place) from None
        return said if self.template.text is None else str(said[0]["content"])

    def _texts(self) -> list[tuple[str, str, str]]:
        """Each text with its field, and who says it."""
        if self.template.text is not None:
            return [("template.text", "user", self.template.text)]
        return [
            (f"template.messages.{place}.content", message.role, message.content)
            for place, message in enumerate(self.template.messages or ())
        ]


# What a judge says in the text that it wrote, as its `read` finds it.
#
#     verdict, number        of the whole, the last match counts
#     step_verdicts          of each step of what was judged, the last match about a step counts
#     numbers                of each of several things that were judged together
#
# Knows texts only: whose text it is, what becomes of a number and to which rows it goes is not
# said here. Steps and things are counted from 1 in texts, and from 0 here.

PARTS_OF_TWO: Final = 2
"""Groups of a pattern that says of which step or thing it speaks, and what it says of it."""
MOST_DIGITS: Final = 9
"""Of the number of a thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words that were found, and where in the text each begins."""

    whole: Part | None = None
    steps: Mapping[int, Part] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Numbers that a text says of the whole, of its steps and of several things that were judged
    together."""

    whole: float | None = None
    steps: Mapping[int, float] = field(default_factory=dict)
    things: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        return self.whole is not None or bool(self.steps) or bool(self.things)


def words_in(text: str, read: Read, steps: int | None = None) -> Words:
    """The verdict words of a text; those that mean nothing are passed over.

    Args:
        steps: of what was judged; words about others are passed over. None: not known.
    """
    known = set(read.labels or ()) if read.score == "probability" else set(read.values or ())
    verdict = read.verdict or _of_labels(read)
    wholes = [] if verdict is None else pattern(verdict).parts(text)
    whole = [parts[0] for parts in wholes if parts[0].text in known]
    found: dict[int, Part] = {}
    for place, part in _numbered(text, read.step_verdicts):
        if part.text in known and place >= 0 and (steps is None or place < steps):
            found[place] = part
    return Words(whole=whole[-1] if whole else None, steps=found)


def numbers_in(text: str, read: Read, steps: int | None = None) -> Verdict:
    """What a text says in numbers, and in words that are worth some.

    Args:
        steps: of what was judged, as in `words_in`.
    """
    words, values = words_in(text, read, steps), read.values or {}
    whole = None if words.whole is None else float(values[words.whole.text])
    if read.number is not None and whole is None:
        said = [_number(parts[0].text, read) for parts in pattern(read.number).parts(text)]
        whole = next((number for number in reversed(said) if number is not None), None)
    share = _step_share(read, len(words.steps) if steps is None else steps)
    numbered = ((place, _number(part.text, read)) for place, part in _numbered(text, read.numbers))
    return Verdict(
        whole=whole,
        steps={
            place: float(values[part.text]) * share for place, part in sorted(words.steps.items())
        },
        things={place: number for place, number in numbered if number is not None and place >= 0},
    )


def _step_share(read: Read, steps: int) -> float:
    """What a step pays of its value."""
    return 1.0 / max(steps, 1) if read.step_scale == "per_step_count" else 1.0


def _of_labels(read: Read) -> str | None:
    """Where nothing says where the verdict stands, it is the last label of the text."""
    if read.score != "probability" or read.step_verdicts is not None or not read.labels:
        return None
    longest_first: Sequence[str] = sorted(read.labels, key=len, reverse=True)
    return "|".join(re.escape(label) for label in longest_first)


def _numbered(text: str, source: str | None) -> list[tuple[int, Part]]:
    """Each match of a pattern of two groups: of which thing it speaks, from 0, and what it says."""
    if source is None:
        return []
    found = [parts for parts in pattern(source).parts(text) if len(parts) == PARTS_OF_TWO]
    return [
        (int(index.text) - 1, part)
        for index, part in found
        if index.text.isdecimal() and len(index.text) <= MOST_DIGITS
    ]


def _number(text: str, read: Read) -> float | None:
    """The number that a text is, with `scale` brought onto 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if read.scale is None:
        return number
    low, high = read.scale
    return min(1.0, max(0.0, (number - low) / (high - low)))
