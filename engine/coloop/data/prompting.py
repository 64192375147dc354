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
from coloop.data.template import TemplateRow, check_texts, rendered, row_functions, values_at
from coloop.data.templates.environment import environment
from coloop.data.templates.grammar import names_of
from coloop.spec.reading import PromptTemplate, Read


@dataclass(frozen=True, kw_only=True)
class PromptProgram:
    node: str
    template: PromptTemplate
    text_field: str = "template.text"
    """The field with `template.text`, for messages."""

    @classmethod
    def from_template(
        cls, template: PromptTemplate, *, node: str, text_field: str = "template.text"
    ) -> Self:
        """Compile its texts; a UserCodeError names the invalid field."""
        program = cls(node=node, template=template, text_field=text_field)
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
            return [(self.text_field, "user", self.template.text)]
        return [
            (f"template.messages.{index}.content", message.role, message.content)
            for index, message in enumerate(self.template.messages or ())
        ]


# Parses the verdict in a judge's text, by its section `read`.
#
#     verdict, number        of the whole; the last match counts
#     step_verdicts          of each judged step; the last match for a step counts
#     numbers                of each of several things that were judged together
#     json                   the same in a JSON answer: a value, or a list with one of each thing
#     rubric                 of each criterion, in one JSON answer
#     ranking                the numbers of the things that were judged, the best first
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
    criteria: Mapping[str, float] = field(default_factory=dict)
    """Scores of the criteria of a rubric; those that were not found are missing."""

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


def numbers_in(
    text: str, read: Read, steps: int | None = None, things: int | None = None
) -> ParsedVerdict:
    """The verdict in a text as numbers.

    Args:
        steps: as for `words_in`.
        things: number of things judged together; None: one.
    """
    if things is not None and (read.ranking or read.json_path is not None):
        listed = _ranked(text, read, things) if read.ranking else _listed(text, read, things)
        return ParsedVerdict(things=listed)
    words, values = words_in(text, read, steps), read.values or {}
    whole = None if words.whole is None else float(values[words.whole.text])
    rated = ParsedVerdict()
    if read.rubric is not None and read.ask == "together":
        rated = rubric_verdict(_criteria_in(text, read), read)
        whole = rated.whole
    elif read.json_path is not None:
        found = values_at(text, read.json_path)
        whole = _worth(found[-1], read) if found else None
    elif read.number is not None and whole is None:
        matches = pattern(read.number).parts(text)
        numbers = [number_in(parts[0].text, read.scale) for parts in matches]
        whole = next((number for number in reversed(numbers) if number is not None), None)
    count = len(words.steps) if steps is None else steps
    share = 1.0 / max(count, 1) if read.step_scale == "per_step_count" else 1.0
    numbered = _numbered(text, read.numbers)
    places = ((thing, number_in(part.text, read.scale)) for thing, part in numbered if thing >= 0)
    return ParsedVerdict(
        whole=whole,
        steps={
            step: float(values[part.text]) * share for step, part in sorted(words.steps.items())
        },
        things={thing: number for thing, number in places if number is not None},
        criteria=rated.criteria,
    )


def rubric_verdict(scores: Mapping[str, float], read: Read) -> ParsedVerdict:
    """The verdict by the scores of a rubric's criteria: Σ wᵢ·sᵢ / Σ max(wᵢ, 0), as in Rubrics as
    Rewards (arXiv:2507.17746, eq. 1) and, with negative weights, HealthBench (arXiv:2505.08775).
    Without one of the scores there is no verdict."""
    rubric = read.rubric or ()
    if any(criterion.name not in scores for criterion in rubric):
        return ParsedVerdict(criteria=dict(scores))
    total = sum(criterion.weight * scores[criterion.name] for criterion in rubric)
    best = sum(max(criterion.weight, 0.0) for criterion in rubric)
    return ParsedVerdict(whole=total / best, criteria=dict(scores))


def _criteria_in(text: str, read: Read) -> dict[str, float]:
    """Scores of criteria in a JSON object with their names as keys; the last such object counts."""
    answers = values_at(text, read.json_path or "")
    answer = next((one for one in reversed(answers) if isinstance(one, dict)), {})
    found = {one.name: _worth(answer.get(one.name), read) for one in read.rubric or ()}
    return {name: score for name, score in found.items() if score is not None}


def _listed(text: str, read: Read, things: int) -> dict[int, float]:
    """Scores in a JSON list with one of each thing, or with objects that have it as `score`; empty
    for a list of another length."""
    values = values_at(text, read.json_path or "")
    listed = next((one for one in reversed(values) if isinstance(one, list)), [])
    if len(listed) != things:
        return {}
    scores = enumerate(
        _worth(one.get("score") if isinstance(one, dict) else one, read) for one in listed
    )
    return {n: score for n, score in scores if score is not None}


def _worth(value: Any, read: Read) -> float | None:
    """The score that a JSON value stands for: a verdict word of `values`, or a number; None if it
    is neither."""
    word = str(value).lower() if isinstance(value, bool) else value
    if isinstance(word, str) and word in (read.values or {}):
        return float((read.values or {})[word])
    if isinstance(value, bool | int | float):
        return number_in(repr(float(value)), read.scale)
    return number_in(value, read.scale) if isinstance(value, str) else None


def _ranked(text: str, read: Read, things: int) -> dict[int, float]:
    """Scores of ranked things, from 1 for the best to 0 for the last in equal steps; of a single
    thing 1. Empty unless the ranking has each of them exactly once."""
    if read.json_path is not None:
        lists = [one for one in values_at(text, read.json_path) if isinstance(one, list)]
        ranking = [str(one) for one in lists[-1]] if lists else []
    else:
        found = [] if read.verdict is None else pattern(read.verdict).parts(text)
        ranking = re.findall(r"\d+", found[-1][0].text) if found else []
    places = [int(one) - 1 for one in ranking if one.isdecimal() and len(one) <= MOST_DIGITS]
    if sorted(places) != list(range(things)) or len(ranking) != things:
        return {}
    return {place: 1.0 - rank / max(things - 1, 1) for rank, place in enumerate(places)}


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
