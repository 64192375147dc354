"""What some wrote becomes what the next reads: the program of a template node, over plain rows.

    row -- parse, default --> (code) -- each: a row per element --> text, messages, target, columns

Knows columns, not lineage: which rows are joined, whose children the new rows are and what was
written in earlier rounds is the role's to say. Same rows and seeds, same texts.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Self

from coloop.data.answers import in_tags
from coloop.data.chats import is_chat, written_chat
from coloop.data.patterns import PatternProblem, PatternTimeout, pattern
from coloop.data.tasks.base import stable_hash
from coloop.data.templates.environment import RenderProblem, compiled, render_text
from coloop.data.templates.grammar import names_of
from coloop.errors import UserCodeError
from coloop.spec.nodes import TemplateNode
from coloop.spec.reading import Message
from coloop.spec.shaping import ParseJson, ParseRegex, ParseTag


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRow:
    columns: Mapping[str, Any]
    """Bare names: the nearest values."""
    scoped: Mapping[str, Any] = field(default_factory=dict)
    """Exact names, `node.column`."""
    scores: Mapping[str, Any] = field(default_factory=dict)
    earlier: Iterable[Mapping[str, Any]] = ()
    """Columns of the earlier rounds, the oldest first: what `past` lists."""
    seed: int = 0
    """From run seed, node, salt, step and row id: decides what `others` and the code draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    columns: Mapping[str, Any]
    absent: frozenset[str] = frozenset()
    """Bare names that end here: dropped, or looked for and not found."""
    elements: tuple["Written", ...] | None = None
    """With `each`: what was made of each element; these are the rows then, children of the row."""


class CodeRunner(Protocol):
    """Runs `write(**columns)` of the user on rows; a sandbox."""

    def write(
        self, rows: Sequence[Mapping[str, Any]], *, seeds: Sequence[int] | None = None
    ) -> list[dict[str, Any] | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateProgram:
    node: str
    section: TemplateNode

    @classmethod
    def from_section(cls, section: TemplateNode, *, node: str) -> Self:
        """Compile every text of the section; UserCodeError names the field that does not."""
        program = cls(node=node, section=section)
        for field_name, source in program.texts():
            try:
                compiled(source)
            except RenderProblem as problem:
                raise UserCodeError(f"{node}: {field_name}: {problem}", node) from None
        return program

    def texts(self) -> list[tuple[str, str]]:
        section = self.section
        found = [("text", section.text), ("target", section.target)]
        found += [(f"columns.{name}", source) for name, source in section.columns.items()]
        found += [
            (f"messages.{place}.content", message.content)
            for place, message in enumerate(section.messages or ())
        ]
        return [(name, source) for name, source in found if source is not None]

    def apply(
        self,
        rows: Sequence[TemplateRow],
        *,
        library: Sequence[TemplateRow] | None = None,
        runner: CodeRunner | None = None,
    ) -> list[Written | None]:
        """What becomes of each row; None where the code cut it.

        Args:
            library: rows that `others` draws from instead of the other rows of the step.
            runner: runs the section's `code`; wanted where there is some.
        """
        starts = [self._read(row, place) for place, row in enumerate(rows)]
        coded = self._run_code(rows, starts, runner)
        return [
            None if new is None else self._write(place, rows, library, start, new)
            for place, (start, new) in enumerate(zip(starts, coded, strict=True))
        ]

    def _read(self, row: TemplateRow, place: int) -> tuple[dict[str, Any], frozenset[str]]:
        """Columns by `parse` and `default`, and the names that were looked for and not found."""
        text = row.columns.get("completion")
        if not isinstance(text, str):
            text = row.columns.get("prompt")
            text = written_chat(text) if isinstance(text, list) and is_chat(text) else text
        new: dict[str, Any] = {}
        for name, rule in self.section.parse.items():
            try:
                value = column_of(text, rule) if isinstance(text, str) else None
            except (PatternTimeout, PatternProblem) as problem:
                raise self._error(f"parse.{name}", place, str(problem)) from None
            if value is not None:
                new[name] = value
        for name, value in self.section.default.items():
            is_there = row.columns.get(name) is not None and name not in self.section.parse
            if name not in new and not is_there:
                new[name] = value
        return new, frozenset(self.section.parse) - frozenset(new)

    def _run_code(
        self,
        rows: Sequence[TemplateRow],
        starts: Sequence[tuple[dict[str, Any], frozenset[str]]],
        runner: CodeRunner | None,
    ) -> list[dict[str, Any] | None]:
        if self.section.code is None:
            return [dict(new) for new, _ in starts]
        assert runner is not None, "a template with code needs a runner"
        given = [
            {**row.columns, **row.scores, **new} for row, (new, _) in zip(rows, starts, strict=True)
        ]
        written = runner.write(given, seeds=[row.seed for row in rows])
        return [
            None if result is None else {**new, **result}
            for result, (new, _) in zip(written, starts, strict=True)
        ]

    def _write(
        self,
        place: int,
        rows: Sequence[TemplateRow],
        library: Sequence[TemplateRow] | None,
        start: tuple[dict[str, Any], frozenset[str]],
        new: dict[str, Any],
    ) -> Written:
        row, absent = rows[place], start[1] - new.keys()
        drawn = Drawn(place, rows, library)
        each = self.section.each
        if each is None:
            return self._filled(row, place, new, absent, drawn)
        elements = new[each] if each in new else row.columns.get(each)
        if elements is None:
            elements = []
        if not isinstance(elements, list | tuple):
            raise self._error("each", place, f"column `{each}` must be a list, found {elements!r}")
        rest = {name: value for name, value in new.items() if name != each}
        return Written(
            columns=rest,
            absent=absent,
            elements=tuple(
                self._filled(row, place, {**rest, each: element}, absent, drawn)
                for element in elements
            ),
        )

    def _filled(
        self,
        row: TemplateRow,
        place: int,
        new: Mapping[str, Any],
        absent: frozenset[str],
        drawn: "Drawn",
    ) -> Written:
        """The Jinja fields on what is known of the row now."""
        columns = {
            name: value for name, value in {**row.columns, **new}.items() if name not in absent
        }
        own = {f"{self.node}.{name}": value for name, value in new.items()}
        names = names_of(columns, {**row.scoped, **own}, row.scores)
        names["others"], names["past"] = drawn.others, drawn.past
        written = dict(new)
        section = self.section
        if section.text is not None:
            written["prompt"] = self._rendered("text", section.text, names, place)
        elif section.messages is not None:
            written["prompt"] = [
                self._message(at, message, names, place)
                for at, message in enumerate(section.messages)
            ]
        if section.target is not None:
            written["target"] = self._rendered("target", section.target, names, place)
        for name, source in section.columns.items():
            written[name] = self._rendered(f"columns.{name}", source, names, place)
        gone = (absent | frozenset(section.drop)) - written.keys()
        kept = {n: v for n, v in written.items() if n not in section.drop or n not in new}
        return Written(columns=kept, absent=gone | (frozenset(written) - frozenset(kept)))

    def _message(
        self, at: int, message: Message, names: Mapping[str, Any], place: int
    ) -> dict[str, str]:
        content = self._rendered(f"messages.{at}.content", message.content, names, place)
        return {"role": message.role, "content": content}

    def _rendered(self, field_name: str, source: str, names: Mapping[str, Any], place: int) -> str:
        try:
            return render_text(source, names)
        except RenderProblem as problem:
            raise self._error(field_name, place, str(problem)) from None

    def _error(self, field_name: str, place: int, message: str) -> UserCodeError:
        return UserCodeError(f"{self.node}, row {place}: {field_name}: {message}", self.node, place)


class Drawn:
    """The functions `others` and `past` of one row."""

    def __init__(
        self,
        place: int,
        rows: Sequence[TemplateRow],
        library: Sequence[TemplateRow] | None,
    ) -> None:
        self._row = rows[place]
        self._place = place
        self._rows = rows
        self._library = library

    def others(self, column: str, k: int) -> list[Any]:
        """Up to k values of a column, drawn from different rows without replacement."""
        pool = self._library
        if pool is None:
            pool = [other for at, other in enumerate(self._rows) if at != self._place]
        source = (_value(row, column) for row in pool)
        there = [value for value in source if value is not None]
        rng = random.Random(stable_hash(f"others {self._row.seed} {column}"))
        return rng.sample(there, min(max(0, k), len(there)))

    def past(self, column: str) -> list[Any]:
        """A column's values in the earlier rounds, the oldest first."""
        found = (row.get(column) for row in self._row.earlier)
        return [value for value in found if value is not None]


def _value(row: TemplateRow, column: str) -> Any:
    if "." in column:
        return row.scoped.get(column)
    return row.columns.get(column, row.scores.get(column))


# Columns read out of a text: by a regular expression, from JSON in it, or from a tag.
#
# The last match counts; with `all` every match, as a list. No match leaves the column absent,
# which is not the same as empty.

MOST_JSON_STARTS: Final = 200
"""Places in a text where the reading of JSON is tried."""

DECODER: Final = json.JSONDecoder()


def parsed(text: str, rule: str | ParseRegex | ParseJson | ParseTag) -> list[Any]:
    """All matches of a rule in a text, in order."""
    match rule:
        case str():
            return list(pattern(rule).matches(text))
        case ParseRegex():
            return list(pattern(rule.regex).matches(text))
        case ParseTag():
            return list(in_tags(text, rule.tag))
        case ParseJson():
            steps = [step for step in rule.json_path.split(".") if step]
            found = (_at(value, steps) for value in json_values(text))
            return [value for value in found if value is not None]


def column_of(text: str, rule: str | ParseRegex | ParseJson | ParseTag) -> Any:
    """What a rule gives: the last match, a list with `all`, None where nothing matches."""
    found = parsed(text, rule)
    if not found:
        return None
    return found if not isinstance(rule, str) and rule.all else found[-1]


def json_values(text: str) -> Iterator[Any]:
    """Objects and lists of JSON that stand in a text, none inside another."""
    place = 0
    for _ in range(MOST_JSON_STARTS):
        starts = [at for at in (text.find("{", place), text.find("[", place)) if at >= 0]
        if not starts:
            return
        try:
            value, place = DECODER.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            place = min(starts) + 1
            continue
        yield value


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
