"""Renders the prompts of judges, scorers and model tools, and parses verdicts from their answers.

Prompts depend only on rows and seeds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

from jinja2 import meta

from coloop.data.answers import number_in
from coloop.data.patterns import Part, pattern
from coloop.data.template import TemplateRow, check_texts, rendered, row_functions
from coloop.data.templates.environment import environment
from coloop.data.templates.grammar import names_of
from coloop.spec.reading import PromptTemplate, Read


@dataclass(frozen=True, kw_only=True)
class PromptProgram:
    node: str
    template: PromptTemplate

    @classmethod
    def from_template(cls, template: PromptTemplate, *, node: str) -> Self:
        """Compile its texts; a UserCodeError names the invalid field."""
        program = cls(node=node, template=template)
        check_texts(node, ((field_name, source) for field_name, _, source in program._texts()))
        return program

    @cached_property
    def names(self) -> frozenset[str]:
        trees = [environment().parse(source) for _, _, source in self._texts()]
        return frozenset().union(*map(meta.find_undeclared_variables, trees))

    def prompt(
        self,
        rows: Sequence[TemplateRow],
        index: int,
        *,
        library: Sequence[TemplateRow] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> str | list[dict[str, Any]]:
        """The prompt for one row, a text or a chat.

        Args:
            library: rows that `others` draws from instead of the other rows.
            columns: extra columns, such as the sides of a pair.
        """
        row = rows[index]
        names = names_of({**row.columns, **(columns or {})}, row.scoped, row.scores)
        names |= row_functions(index, rows, library)
        chat = [
            {"role": role, "content": rendered(self.node, index, field_name, source, names)}
            for field_name, role, source in self._texts()
        ]
        return chat if self.template.text is None else chat[0]["content"]

    def _texts(self) -> list[tuple[str, str, str]]:
        """(field, role, source) of each text."""
        if self.template.text is not None:
            return [("template.text", "user", self.template.text)]
        return [
            (f"template.messages.{index}.content", message.role, message.content)
            for index, message in enumerate(self.template.messages or ())
        ]


# Parses the verdict in a judge's text, by its section `read`.
#
#     verdict, number        of the whole; the last match counts
#     step_verdicts          of each judged step; the last match for a step counts
#     numbers                of each of several things that were judged together
#
# Steps and things are counted from 1 in texts, and from 0 here.

PARTS_OF_TWO: Final = 2
"""Groups of a pattern for numbered verdicts: step number and verdict."""
MOST_DIGITS: Final = 9
"""Maximum digits of a step number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Verdict words and their offsets in a text; steps count from 0."""

    whole: Part | None = None
    steps: Mapping[int, Part] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedVerdict:
    whole: float | None = None
    steps: Mapping[int, float] = field(default_factory=dict)
    things: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        return self.whole is not None or bool(self.steps) or bool(self.things)


def words_in(text: str, read: Read, steps: int | None = None) -> Words:
    """The verdict words in a text: known words only, and only about the first `steps` steps (None:
    any step)."""
    known = set(read.labels or ()) if read.score == "probability" else set(read.values or ())
    verdict = read.verdict or _of_labels(read)
    wholes = [] if verdict is None else pattern(verdict).parts(text)
    whole = [parts[0] for parts in wholes if parts[0].text in known]
    of_steps = {
        step: part
        for step, part in _numbered(text, read.step_verdicts)
        if part.text in known and step >= 0 and (steps is None or step < steps)
    }
    return Words(whole=whole[-1] if whole else None, steps=of_steps)


def numbers_in(text: str, read: Read, steps: int | None = None) -> ParsedVerdict:
    """The verdict in a text as numbers; `steps` as for `words_in`."""
    words, values = words_in(text, read, steps), read.values or {}
    whole = None if words.whole is None else float(values[words.whole.text])
    if read.number is not None and whole is None:
        matches = pattern(read.number).parts(text)
        numbers = [number_in(parts[0].text, read.scale) for parts in matches]
        whole = next((number for number in reversed(numbers) if number is not None), None)
    count = len(words.steps) if steps is None else steps
    share = 1.0 / max(count, 1) if read.step_scale == "per_step_count" else 1.0
    numbered = _numbered(text, read.numbers)
    things = ((thing, number_in(part.text, read.scale)) for thing, part in numbered if thing >= 0)
    return ParsedVerdict(
        whole=whole,
        steps={
            step: float(values[part.text]) * share for step, part in sorted(words.steps.items())
        },
        things={thing: number for thing, number in things if number is not None},
    )


def _of_labels(read: Read) -> str | None:
    """A pattern that matches any label, for sections that have labels but no other pattern."""
    if read.score != "probability" or read.step_verdicts is not None or not read.labels:
        return None
    longest_first: Sequence[str] = sorted(read.labels, key=len, reverse=True)
    return "|".join(re.escape(label) for label in longest_first)


def _numbered(text: str, source: str | None) -> list[tuple[int, Part]]:
    """(index from 0, verdict) for each match of a pattern with two groups."""
    if source is None:
        return []
    pairs = [parts for parts in pattern(source).parts(text) if len(parts) == PARTS_OF_TWO]
    return [
        (int(number.text) - 1, part)
        for number, part in pairs
        if number.text.isdecimal() and len(number.text) <= MOST_DIGITS
    ]
