"""The program of a template node, over plain rows.

    row -- parse, default --> (code) -- each: a row per element --> text, messages, target, columns

Results depend only on rows and seeds. Lineage is left to the caller.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from coloop.data.answers import in_tags
from coloop.data.chats import is_chat, written_chat
from coloop.data.patterns import PatternProblem, PatternTimeout, pattern
from coloop.data.tasks.base import stable_hash
from coloop.data.templates.environment import RenderProblem, compiled, render_text
from coloop.data.templates.grammar import names_of
from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox
from coloop.spec.nodes import TemplateNode
from coloop.spec.shaping import ParseJson, ParseRegex, ParseTag


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRow:
    columns: Mapping[str, Any]
    scoped: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    earlier: Iterable[Mapping[str, Any]] = ()
    """The columns in earlier rounds, oldest first, for `past`."""
    seed: int = 0
    """Seed of `others` and the code, from run seed, node, salt, step and row id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    columns: Mapping[str, Any]
    absent: frozenset[str] = frozenset()
    """Bare names to remove: by `drop`, or because `parse` did not find them."""
    elements: tuple["Written", ...] | None = None
    """With `each`, a result per element, which becomes a child row; else None."""


def read_text(columns: Mapping[str, Any]) -> Any:
    """What `parse` reads of a row: its completion, else its prompt, a chat as one text."""
    text = columns.get("completion")
    if isinstance(text, str):
        return text
    prompt = columns.get("prompt")
    return written_chat(prompt) if isinstance(prompt, list) and is_chat(prompt) else prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateProgram:
    node: str
    section: TemplateNode

    @classmethod
    def from_section(cls, section: TemplateNode, *, node: str) -> Self:
        """Compile every text of the section; a UserCodeError names the invalid field."""
        program = cls(node=node, section=section)
        check_texts(node, program.texts())
        return program

    def texts(self) -> list[tuple[str, str]]:
        section = self.section
        texts = [("text", section.text), ("target", section.target)]
        texts += [(f"columns.{name}", source) for name, source in section.columns.items()]
        texts += [
            (f"messages.{index}.content", message.content)
            for index, message in enumerate(section.messages or ())
        ]
        return [(name, source) for name, source in texts if source is not None]

    def apply(
        self,
        rows: Sequence[TemplateRow],
        *,
        library: Sequence[TemplateRow] | None = None,
        runner: Sandbox | None = None,
    ) -> list[Written | None]:
        """The result for each row; None if the code dropped it.

        Args:
            library: rows that `others` draws from instead of the other rows of the step.
            runner: sandbox for the section's `code`; required if there is some.
        """
        starts = [self._read(row, index) for index, row in enumerate(rows)]
        coded = self._run_code(rows, starts, runner)
        return [
            None if new is None else self._write(index, rows, library, start, new)
            for index, (start, new) in enumerate(zip(starts, coded, strict=True))
        ]

    def _read(self, row: TemplateRow, index: int) -> tuple[dict[str, Any], frozenset[str]]:
        """The columns by `parse` and `default`, and the names in `parse` that have none."""
        text = read_text(row.columns)
        new: dict[str, Any] = {}
        for name, rule in self.section.parse.items():
            try:
                value = column_of(text, rule) if isinstance(text, str) else None
            except (PatternTimeout, PatternProblem) as problem:
                raise text_error(self.node, index, f"parse.{name}", problem) from None
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
        runner: Sandbox | None,
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
        index: int,
        rows: Sequence[TemplateRow],
        library: Sequence[TemplateRow] | None,
        start: tuple[dict[str, Any], frozenset[str]],
        new: dict[str, Any],
    ) -> Written:
        row, absent = rows[index], start[1] - new.keys()
        functions = row_functions(index, rows, library)
        each = self.section.each
        if each is None:
            return self._filled(row, index, new, absent, functions)
        elements = new[each] if each in new else row.columns.get(each)
        if elements is None:
            elements = []
        if not isinstance(elements, list | tuple):
            problem = f"column `{each}` must be a list, found {elements!r}"
            raise text_error(self.node, index, "each", problem)
        rest = {name: value for name, value in new.items() if name != each}
        return Written(
            columns=rest,
            absent=absent,
            elements=tuple(
                self._filled(row, index, {**rest, each: element}, absent, functions)
                for element in elements
            ),
        )

    def _filled(
        self,
        row: TemplateRow,
        index: int,
        new: Mapping[str, Any],
        absent: frozenset[str],
        functions: Mapping[str, Any],
    ) -> Written:
        """The new columns with the Jinja fields rendered."""
        columns = {
            name: value for name, value in {**row.columns, **new}.items() if name not in absent
        }
        own = {f"{self.node}.{name}": value for name, value in new.items()}
        names = {**names_of(columns, {**row.scoped, **own}, row.scores), **functions}
        written = dict(new)
        section = self.section

        def render(field_name: str, source: str) -> str:
            return rendered(self.node, index, field_name, source, names)

        if section.text is not None:
            written["prompt"] = render("text", section.text)
        elif section.messages is not None:
            written["prompt"] = [
                {"role": message.role, "content": render(f"messages.{n}.content", message.content)}
                for n, message in enumerate(section.messages)
            ]
        if section.target is not None:
            written["target"] = render("target", section.target)
        for name, source in section.columns.items():
            written[name] = render(f"columns.{name}", source)
        gone = (absent | frozenset(section.drop)) - written.keys()
        kept = {n: v for n, v in written.items() if n not in section.drop or n not in new}
        return Written(columns=kept, absent=gone | (frozenset(written) - frozenset(kept)))


def check_texts(node: str, texts: Iterable[tuple[str, str]]) -> None:
    """Compile a node's texts, given with their fields; a UserCodeError names the invalid one."""
    for field_name, source in texts:
        try:
            compiled(source)
        except RenderProblem as problem:
            raise UserCodeError(f"{node}: {field_name}: {problem}", node) from None


def rendered(node: str, index: int, field_name: str, source: str, names: Mapping[str, Any]) -> str:
    """A rendered text; a UserCodeError names node, row and field."""
    try:
        return render_text(source, names)
    except RenderProblem as problem:
        raise text_error(node, index, field_name, problem) from None


def text_error(node: str, index: int, field_name: str, problem: object) -> UserCodeError:
    return UserCodeError(f"{node}, row {index}: {field_name}: {problem}", node, index)


def row_functions(
    index: int, rows: Sequence[TemplateRow], library: Sequence[TemplateRow] | None
) -> dict[str, Callable[..., list[Any]]]:
    """The functions `others` and `past` for the texts of one row."""
    own = rows[index]

    def others(column: str, k: int) -> list[Any]:
        """Up to k values of a column, from different rows."""
        pool = library if library is not None else [*rows[:index], *rows[index + 1 :]]
        values = [value for row in pool if (value := _value(row, column)) is not None]
        rng = random.Random(stable_hash(f"others {own.seed} {column}"))
        return rng.sample(values, min(max(0, k), len(values)))

    def past(column: str) -> list[Any]:
        """A column's values in earlier rounds, oldest first."""
        return [value for row in own.earlier if (value := row.get(column)) is not None]

    return {"others": others, "past": past}


def _value(row: TemplateRow, column: str) -> Any:
    if "." in column:
        return row.scoped.get(column)
    return row.columns.get(column, row.scores.get(column))


# Columns parsed from a text: by a regular expression, from JSON in it, or from a tag.
#
# The last match counts; with `all`, the list of all matches. Without a match the column is absent,
# which is not the same as empty.

MOST_JSON_STARTS: Final = 200
"""Maximum positions in a text at which JSON is tried."""

DECODER: Final = json.JSONDecoder()


def parsed(text: str, rule: str | ParseRegex | ParseJson | ParseTag) -> list[Any]:
    """All values that a rule of `parse` finds in a text, in order."""
    match rule:
        case str():
            return list(pattern(rule).matches(text))
        case ParseRegex():
            return list(pattern(rule.regex).matches(text))
        case ParseTag():
            return list(in_tags(text, rule.tag))
        case ParseJson():
            return values_at(text, rule.json_path)


def column_of(text: str, rule: str | ParseRegex | ParseJson | ParseTag) -> Any:
    """The last value that a rule finds, with `all` the list of all; None without any."""
    values = parsed(text, rule)
    if not values:
        return None
    return values if not isinstance(rule, str) and rule.all else values[-1]


def json_values(text: str) -> Iterator[Any]:
    """The outermost JSON objects and lists in a text."""
    position = 0
    for _ in range(MOST_JSON_STARTS):
        starts = [at for at in (text.find("{", position), text.find("[", position)) if at >= 0]
        if not starts:
            return
        try:
            value, position = DECODER.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            position = min(starts) + 1
            continue
        yield value


def values_at(text: str, path: str) -> list[Any]:
    """The values at a path of keys joined by dots, of every JSON value in a text that has one."""
    steps = [step for step in path.split(".") if step]
    return [part for value in json_values(text) if (part := _at(value, steps)) is not None]


def _at(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
