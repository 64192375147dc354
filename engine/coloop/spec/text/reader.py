"""YAML text to plain data, with the place of every value; never raises on what a user wrote.

YAML 1.2, core schema: `yes` is text, `1e-6` is a number. Events of the parser are followed with a
stack of our own, so depth, size and aliases cannot hurt. The first error ends the reading.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Diagnostic, at
from coloop.spec.lean import record
from coloop.spec.text import scan, yaml_errors

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

MAX_CHARACTERS = 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 50_000

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_COLON = re.compile(r"\s*:")
_DASH = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*-")
_GREATEST = 2**63 - 1


@dataclass(slots=True)
class Place:
    """Where a value stands in the text. Offsets count characters, lines and columns from 1."""

    kind: Literal["scalar", "mapping", "sequence", "alias"]
    start: int
    end: int
    line: int
    column: int
    flow: bool = False
    style: str | None = None
    anchor: str | None = None
    keys: dict[str, Place] = field(default_factory=dict)
    values: dict[str, Place] = field(default_factory=dict)
    items: list[Place] = field(default_factory=list)
    target: Place | None = None

    @property
    def is_inline(self) -> bool:
        """Whether it is a flow collection, or a scalar on the line of its key."""
        return self.flow or (self.kind == "scalar" and self.style not in ("|", ">"))

    @property
    def content(self) -> Place:
        """The value itself, aliases followed."""
        return self.target.content if self.target is not None else self


@record
class Reading:
    data: Any = None
    place: Place | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    def find(self, path: tuple[str | int, ...]) -> tuple[int, int] | None:
        """Line and column of the value at a path, else of its nearest parent."""
        place = self.place
        if place is None:
            return None
        found = (place.line, place.column)
        for part in path:
            inside = place.content
            if inside.kind == "mapping" and part in inside.values:
                key, place = inside.keys[str(part)], inside.values[str(part)]
                found = (key.line, key.column)
            elif inside.kind == "sequence" and isinstance(part, int) and part < len(inside.items):
                place = inside.items[part]
                found = (place.line, place.column)
            else:
                break
        return found


class _Refused(Exception):
    """Ends the reading with one diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


@dataclass(slots=True)
class _Open:
    value: dict[str, Any] | list[Any]
    place: Place
    weight: int = 1
    key: str | None = None
    key_place: Place | None = None


@dataclass(slots=True)
class _Anchor:
    value: Any
    place: Place
    weight: int


def read(text: str) -> Reading:
    """Read one document. The data is the caller's own."""
    if len(text) > MAX_CHARACTERS:
        message = f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read"
        hint = "put long data into a file and name it in a dataset's source"
        return _failed("yaml.too_large", message, hint)
    reading = _read(text)
    return replace(reading, data=copy.deepcopy(reading.data))


def data_of(text: str) -> Any:
    """The data of a text; raises `SpecProblem` if it cannot be read. The caller may change it."""
    reading = read(text)
    if reading.diagnostics:
        raise SpecProblem(reading.diagnostics[0].describe(), reading.diagnostics)
    return reading.data


@lru_cache(maxsize=8)
def _read(text: str) -> Reading:
    """Cached, because an edit reads the same text to change, verify and check it."""
    quick = scan.quick_events(text)
    if quick is not None:
        with suppress(_Refused, scan.Broken, ValueError):
            return _Builder(text, quick).build()
    return _read_with_errors(text)


def _read_with_errors(text: str) -> Reading:
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    builder = _Builder(text, scan.events(text))
    try:
        return builder.build()
    except _Refused as refused:
        return Reading(diagnostics=(refused.diagnostic,))
    except MarkedYAMLError as error:
        return Reading(diagnostics=(_syntax(text, error, builder.path),))
    except (YAMLError, ValueError, IndexError, AttributeError, AssertionError, TypeError) as error:
        # ruamel.yaml lets a few of its own slips through on broken text.
        words = (str(error).splitlines() or [""])[0] or type(error).__name__
        return _failed("yaml.syntax", f"the text cannot be read as YAML: {_short(words, 200)}")


def _failed(code: str, message: str, hint: str | None = None) -> Reading:
    return Reading(diagnostics=(Diagnostic(code=code, message=message, hint=hint),))


class _Builder:
    def __init__(self, text: str, events: Iterator[Any]) -> None:
        self.text = text
        self.events = events
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Anchor] = {}
        self.root: tuple[Any, Place] | None = None
        self.last_end = 0
        self.total = 0

    def build(self) -> Reading:
        documents = 0
        for event in self.events:
            name = scan.name_of(event)
            if name == scan.DOCUMENT:
                documents += 1
                if documents > 1:
                    message = "a second document starts here, after `---`"
                    hint = "a file contains one loop"
                    self._refuse(event, "yaml.several_documents", message, hint)
            elif name in scan.START:
                self._start(event)
            elif name in scan.END:
                self._finish(event)
            elif name == scan.SCALAR:
                self._scalar(event)
            elif name == scan.ALIAS:
                self._alias(event)
        if self.root is None:
            return _failed("yaml.empty", "the text is empty", "start from a preset")
        return Reading(data=self.root[0], place=self.root[1])

    @property
    def path(self) -> tuple[str | int, ...]:
        """Path of the value that is being read."""
        parts: list[str | int] = []
        for held in self.stack:
            if isinstance(held.value, list):
                parts.append(len(held.value))
            elif held.key is not None:
                parts.append(held.key)
        return tuple(parts)

    def _start(self, event: Any) -> None:
        self._no_tag(event)
        if len(self.stack) >= MAX_DEPTH:
            message = f"values are nested more than {MAX_DEPTH} deep"
            self._refuse(event, "yaml.too_deep", message)
        is_map = scan.name_of(event) == scan.MAPPING
        if is_map and self._wants_key():
            line = self.text.splitlines()[event.start_mark.line]
            message, hint = yaml_errors.braces(line, yaml_errors.name_of(self.path)) or (
                "found a mapping, expected a key",
                "quote what should be text",
            )
            self._refuse(event, "yaml.key", message, hint)
        if not is_map and self._wants_key():
            hint = "a list within brackets has no keys; quote what should be text"
            self._refuse(event, "yaml.key", "found a list, expected a key", hint)
        place = self._place(event, "mapping" if is_map else "sequence")
        place.flow = bool(event.flow_style)
        self.stack.append(_Open({} if is_map else [], place))

    def _finish(self, event: Any) -> None:
        done = self.stack.pop()
        if done.place.flow:
            self.last_end = event.end_mark.index
        done.place.end = max(self.last_end, done.place.end)
        self._deliver(event, done.value, done.place, done.weight)

    def _scalar(self, event: Any) -> None:
        self._no_tag(event)
        if _SURROGATE.search(event.value):
            self._refuse(event, "yaml.character", "the text contains half of a character")
        place = self._place(event, "scalar")
        place.end, place.style = event.end_mark.index, event.style or None
        if place.start == place.end and not event.style:
            self._put_empty(place)
        self.last_end = place.end
        if self._wants_key():
            self._key(event, place)
        else:
            value = event.value if event.style else self._plain(event)
            self._deliver(event, value, place, 1)

    def _put_empty(self, place: Place) -> None:
        """An empty value belongs right behind its colon or dash, not before what follows."""
        mark = None
        if self.stack:
            top = self.stack[-1]
            if isinstance(top.value, list):
                mark = _DASH.match(self.text, self.last_end if top.value else top.place.start)
            elif top.key is not None and top.key_place is not None:
                mark = _COLON.match(self.text, top.key_place.end)
        start = place.start if mark is None else mark.end()
        place.start = place.end = start
        place.line = self.text.count("\n", 0, start) + 1
        place.column = start - self.text.rfind("\n", 0, start)

    def _alias(self, event: Any) -> None:
        self.last_end = event.end_mark.index
        if self._wants_key():
            self._refuse(event, "yaml.key", "found an alias, expected a key")
        anchor = self.anchors.get(event.anchor)
        if anchor is None:
            message = f"`*{event.anchor}` has no complete `&{event.anchor}` before it"
            hint = f'quote it if it is text: `"*{event.anchor}"`'
            self._refuse(event, "yaml.alias", message, hint)
        place = self._place(event, "alias")
        place.anchor, place.target, place.end = event.anchor, anchor.place, event.end_mark.index
        self._deliver(event, anchor.value, place, anchor.weight)

    def _key(self, event: Any, place: Place) -> None:
        top = self.stack[-1]
        key = event.value
        if key == "<<" and not event.style:
            message = "a merge key (`<<`) is not part of YAML 1.2"
            self._refuse(event, "yaml.merge_key", message, "write the keys out")
        if key in top.place.keys:
            first = top.place.keys[key]
            is_node = self.path == ("nodes",)
            where = "" if is_node else f" in {yaml_errors.name_of(self.path)}"
            what = f"the node `{_short(key)}`" if is_node else f"`{_short(key)}`"
            message = f"{what} occurs twice{where}; the first is in line {first.line}"
            hint = "rename one of the two" if is_node else "keep one of the two"
            self._refuse(event, "yaml.duplicate_key", message, hint)
        top.key, top.key_place = key, place
        top.place.keys[key] = place

    def _deliver(self, event: Any, value: Any, place: Place, weight: int) -> None:
        self.total = max(self.total, weight)
        if place.anchor and place.kind != "alias":
            self.anchors[place.anchor] = _Anchor(value, place, weight)
        if not self.stack:
            self.root = (value, place)
            return
        top = self.stack[-1]
        top.weight += weight
        if sum(held.weight for held in self.stack) > MAX_VALUES:
            message = f"the text has more than {MAX_VALUES:,} values, with aliases expanded"
            hint = "put long data into a file and name it in a dataset's source"
            self._refuse(event, "yaml.too_many_values", message, hint)
        if isinstance(top.value, dict):
            assert top.key is not None
            top.value[top.key] = value
            top.place.values[top.key] = place
            top.key = None
        else:
            top.value.append(value)
            top.place.items.append(place)

    def _wants_key(self) -> bool:
        top = self.stack[-1] if self.stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _place(self, event: Any, kind: Any) -> Place:
        start = event.start_mark
        return Place(
            kind=kind,
            start=start.index,
            end=start.index,
            line=start.line + 1,
            column=start.column + 1,
            anchor=getattr(event, "anchor", None),
        )

    def _plain(self, event: Any) -> Any:
        text: str = event.value
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _NOT_FINITE.fullmatch(text):
            message = f"{yaml_errors.name_of(self.path)} is `{text}`; a finite number is expected"
            self._refuse(event, "yaml.not_finite", message, "remove it, or write a number")
        for pattern, base in ((_INT, 10), (_OCTAL, 8), (_HEX, 16)):
            if pattern.fullmatch(text):
                return self._whole(event, text, base)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                self._refuse(event, "yaml.not_finite", f"`{_short(text)}` is too large a number")
            return number
        return text

    def _whole(self, event: Any, text: str, base: int) -> int:
        number = int(text[2:] if base != 10 else text, base) if len(text) <= 80 else _GREATEST + 1
        if abs(number) > _GREATEST:
            message = f"{yaml_errors.name_of(self.path)} is too large a number: `{_short(text)}`"
            self._refuse(event, "yaml.not_finite", message)
        return number

    def _no_tag(self, event: Any) -> None:
        if event.tag is not None:
            message = f"the tag `{_short(str(event.tag))}` has no meaning here"
            self._refuse(event, "yaml.tag", message, "remove it; put text in quotes")

    def _refuse(self, event: Any, code: str, message: str, hint: str | None = None) -> NoReturn:
        mark = event.start_mark
        place = (mark.line + 1, mark.column + 1)
        raise _Refused(at(self.path, code, message, hint, place=place))


_HINTS = {
    "mapping values are not allowed here": "put text with a colon and a space in quotes",
    "could not find expected ':'": "a key needs `: ` after it; put text that spans lines in quotes",
    "found unexpected end of stream": "a quote or a bracket is not closed",
    "expected <block end>, but found": "check that the lines of one block start in one column",
    "while parsing a flow mapping": "check commas and the closing `}`",
    "while parsing a flow sequence": "check commas and the closing `]`",
    "found undefined alias": "write the anchor (`&name`) before the alias",
    "cannot start any token": "quote text that starts with this character",
}


def _syntax(text: str, error: MarkedYAMLError, path: tuple[str | int, ...]) -> Diagnostic:
    problem = str(error.problem or error.context or "the text is not valid YAML").strip()
    context = str(error.context or "").strip()
    message = f"{context}, {problem}" if context and context != problem else problem
    mark = error.problem_mark or error.context_mark
    is_tab = "'\\t'" in problem or "\\t" in problem
    hint = next((told for words, told in _HINTS.items() if words in message), None)
    message, hint = yaml_errors.say(text, error, path) or (message, hint)
    code = "yaml.tab" if is_tab else "yaml.syntax"
    place = None if mark is None else (mark.line + 1, mark.column + 1)
    return at(path, code, _short(message, 300), hint, place=place)


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
