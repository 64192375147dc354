"""Edits the text of a loop and leaves every other character as it is.

Each change becomes the replacement of one stretch of text, found by the places that the reader
keeps: comments, key order, quotes, anchors and number formats outside of it stay. Where a change
would touch a value that aliases share, the alias is written out or the anchor moves to its first
alias, so that only what was named changes. At the end the text is read again and must say what
was asked for; if it does not, the loop is written anew without comments, so that no edit is ever
lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coloop.diagnostics import Change, Diagnostic
from coloop.errors import SpecProblem
from coloop.spec.changes import apply_change, as_edge, normal_change, same_documents
from coloop.spec.documents import Parts, look_along
from coloop.spec.emit import (
    block,
    block_entry,
    block_item,
    flow,
    is_literal,
    literal,
    scalar,
    to_yaml,
)
from coloop.spec.migrate import VERSION, migrate
from coloop.spec.reader import Place, Reading
from coloop.spec.reader import read as read_text

read = lru_cache(maxsize=8)(read_text)
"""Readings are never changed, and one edit looks at the same text several times."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """One stretch of text and what takes its place."""

    start: int
    end: int
    text: str


def patch(text: str, changes: Sequence[Change | Mapping[str, Any]]) -> str:
    """The text after these changes; raises `SpecProblem` for text or paths that give no sense."""
    wanted = [change if isinstance(change, Change) else Change(**change) for change in changes]
    document = _document(text)
    if isinstance(document.get("coloop"), int) and document["coloop"] < VERSION:
        document = migrate(document)[0]
        text = to_yaml(document)
    for batch in _batches(document, wanted):
        expected = document
        for change in batch:
            expected = apply_change(expected, change)
        text = _carried_out(text, document, batch, expected)
        document = expected
    return text


def _document(text: str) -> dict[str, Any]:
    reading = read(text)
    if reading.diagnostics:
        raise SpecProblem(reading.diagnostics[0].describe(), reading.diagnostics)
    if not isinstance(reading.data, dict):
        found = Diagnostic(code="yaml.not_a_mapping", message="the document is no mapping")
        raise SpecProblem(found.describe(), (found,))
    return reading.data


def _carried_out(
    text: str, document: dict[str, Any], batch: list[Change], expected: dict[str, Any]
) -> str:
    """The text that says what was asked for; where comments are in the way, on one line."""
    for in_blocks in (True, False):
        new = _edited(text, document, batch, in_blocks)
        reading = read(new)
        if not reading.diagnostics and same_documents(reading.data, expected):
            return new
    return to_yaml(expected)


def _batches(document: dict[str, Any], changes: list[Change]) -> Iterator[list[Change]]:
    """Changes that can be made on one reading: new values of scalars that are there."""
    batch: list[Change] = []
    seen: set[str] = set()
    for change in changes:
        if change.op == "set" and change.path not in seen and _is_scalar_there(document, change):
            batch.append(change)
            seen.add(change.path)
            continue
        if batch:
            yield batch
        yield [change]
        for done in (*batch, change):
            document = apply_change(document, done)
        batch, seen = [], set()
    if batch:
        yield batch


def _is_scalar_there(document: dict[str, Any], change: Change) -> bool:
    op, parts = normal_change(document, change)
    there = look_along(document, parts)
    numbers = (bool, int, float)
    return op == "set" and isinstance(there, numbers) and isinstance(change.value, numbers)


def _edited(text: str, document: dict[str, Any], batch: list[Change], in_blocks: bool) -> str:
    for change in batch:
        op, parts = normal_change(document, change)
        if not parts:
            return to_yaml(change.value)
        text = _set_apart(text, op, parts)
    reading = read(text)
    edits = [
        edit
        for change in batch
        for edit in _Editor(text, reading, in_blocks).edits(
            *normal_change(document, change), change.value
        )
    ]
    return _replaced(text, edits)


def _replaced(text: str, edits: list[_Edit]) -> str:
    """The text with stretches replaced, in its own newlines."""
    is_crlf = "\r\n" in text
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        new = edit.text.replace("\n", "\r\n") if is_crlf else edit.text
        text = text[: edit.start] + new + text[edit.end :]
    return text


# Aliases and anchors -----------------------------------------------------------------------------


def _set_apart(text: str, op: str, parts: Parts) -> str:
    """The same document, in which no alias shares what is about to change."""
    for _ in range(1000):
        reading = read(text)
        assert reading.place is not None
        chain = list(_chain(reading.place, parts))
        edit = _write_out_alias(text, reading, chain, parts, op) or _move_anchor(
            text, reading, chain, op
        )
        if edit is None:
            return text
        text = _replaced(text, edit)
    return text


def _chain(root: Place, parts: Parts) -> Iterator[Place]:
    """The places on the way to a value, as far as it is there, aliases not followed at the end."""
    place = root
    yield place
    for part in parts:
        inside = place.content
        if inside.kind == "mapping" and str(part) in inside.values:
            place = inside.values[str(part)]
        elif inside.kind == "sequence" and isinstance(part, int) and part < len(inside.items):
            place = inside.items[part]
        else:
            return
        yield place


def _write_out_alias(
    text: str, reading: Reading, chain: list[Place], parts: Parts, op: str
) -> list[_Edit] | None:
    is_whole = len(chain) == len(parts) + 1 and op in ("set", "remove", "insert", "rename")
    for depth, place in enumerate(chain):
        if place.kind != "alias" or (is_whole and depth == len(chain) - 1):
            continue
        value = look_along(reading.data, parts[:depth])
        return [_Edit(place.start, place.end, _content_text(text, place.content, value))]
    return None


def _move_anchor(text: str, reading: Reading, chain: list[Place], op: str) -> list[_Edit] | None:
    """Give the anchor of what changes to its first alias outside."""
    assert reading.place is not None
    last = chain[-1]
    goes = list(_all_places(last)) if op in ("set", "remove") else []
    held = {id(place) for place in goes}
    aliases = [place for place in _all_places(reading.place) if place.kind == "alias"]
    for anchored in (*chain, *goes):
        if anchored.anchor is None or anchored.kind == "alias":
            continue
        users = [a for a in aliases if a.target is anchored and id(a) not in held]
        if not users:
            continue
        first = min(users, key=lambda alias: alias.start)
        name = f"&{anchored.anchor} "
        value = _value_of(reading, anchored)
        start = _content_start(text, anchored)
        return [
            _Edit(anchored.start, start, ""),
            _Edit(first.start, first.end, name + _content_text(text, anchored, value)),
        ]
    return None


def _all_places(place: Place) -> Iterator[Place]:
    waiting = [place]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += [*here.values.values(), *here.items]


def _value_of(reading: Reading, wanted: Place) -> Any:
    """The data that stands at a place."""
    waiting: list[tuple[Place, Any]] = [(reading.place, reading.data)] if reading.place else []
    while waiting:
        place, value = waiting.pop()
        if place is wanted:
            return value
        waiting += [(inner, value[key]) for key, inner in place.values.items()]
        waiting += list(zip(place.items, value if place.items else (), strict=False))
    return None


def _content_start(text: str, place: Place) -> int:
    """Where a value begins behind its anchor."""
    start = place.start
    if place.anchor is not None and text.startswith(f"&{place.anchor}", start):
        start += len(place.anchor) + 1
        while start < place.end and text[start] in " \t":
            start += 1
    return start


def _content_text(text: str, place: Place, value: Any) -> str:
    """A value on one line, in its own words where they are on one line."""
    own = text[_content_start(text, place) : place.end]
    is_simple = place.flow or (place.kind == "scalar" and place.style not in ("|", ">"))
    has_marks = any(inner.anchor is not None for inner in _all_places(place) if inner is not place)
    if is_simple and "\n" not in own and not has_marks and own:
        return own
    return flow(value)


# Edits of text ------------------------------------------------------------------------------------


class _Editor:
    """Turns one change into replacements of text."""

    def __init__(self, text: str, reading: Reading, in_blocks: bool) -> None:
        assert reading.place is not None
        self.text = text
        self.in_blocks = in_blocks
        self.root = reading.place
        self.data = reading.data

    def edits(self, op: str, parts: Parts, value: Any) -> list[_Edit]:
        chain = list(_chain(self.root, parts))
        if op == "rename":
            key = chain[-2].content.keys[str(parts[-1])]
            return [_Edit(key.start, key.end, scalar(value))]
        if op == "remove":
            return self._remove(chain, parts)
        if op == "insert" and self._is_list(chain, parts):
            return self._insert(chain[len(parts) - 1].content, int(parts[-1]), value)
        if len(chain) == len(parts) + 1:
            return self._replace(chain, parts, value)
        return self._add(chain, parts, value)

    def _is_list(self, chain: list[Place], parts: Parts) -> bool:
        return len(chain) >= len(parts) and chain[len(parts) - 1].content.kind == "sequence"

    def _add(self, chain: list[Place], parts: Parts, value: Any) -> list[_Edit]:
        """A value whose place is not there yet: into the nearest mapping on the way."""
        depth = len(chain) - 1
        holder = chain[depth].content
        rest = parts[depth:]
        if holder.kind != "mapping" and depth:
            old = as_edge(look_along(self.data, parts[:depth]))
            new = _nested(rest, value, old if isinstance(old, dict) else {})
            return self._replace(chain, parts[:depth], new)
        inner = _nested(rest[1:], value, {}) if len(rest) > 1 else value
        return self._add_key(holder, str(rest[0]), inner)

    def _add_key(self, holder: Place, key: str, value: Any) -> list[_Edit]:
        if holder.flow:
            entry = f"{scalar(key)}: {flow(value)}"
            if not holder.values:
                return [_Edit(holder.end - 1, holder.end - 1, entry)]
            end = self._last(holder).end
            return [_Edit(end, end, f", {entry}")]
        indent = min(place.column for place in holder.keys.values()) - 1
        lines = self._entry(key, value, indent)
        return self._after_line(self._last(holder).end, lines)

    def _last(self, holder: Place) -> Place:
        """The place that ends last inside of a collection."""
        inner = [*holder.keys.values(), *holder.values.values(), *holder.items]
        return max(inner, key=lambda place: place.end)

    def _after_line(self, end: int, lines: str) -> list[_Edit]:
        at = self._line_end(end)
        if at >= len(self.text):
            lead = "" if not self.text or self.text.endswith("\n") else "\n"
            return [_Edit(len(self.text), len(self.text), lead + lines)]
        return [_Edit(at, at, lines)]

    def _entry(self, key: str, value: Any, indent: int) -> str:
        if self.in_blocks:
            return block_entry(key, value, indent)
        return f"{' ' * indent}{scalar(key)}: {flow(value)}\n"

    def _item(self, value: Any, indent: int) -> str:
        return block_item(value, indent) if self.in_blocks else f"{' ' * indent}- {flow(value)}\n"

    def _line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def _line_end(self, offset: int) -> int:
        """Behind the newline of the line in which a value ends."""
        if offset > 0 and self.text[offset - 1] == "\n":
            return offset
        found = self.text.find("\n", offset)
        return len(self.text) if found < 0 else found + 1

    # Sequences

    def _insert(self, holder: Place, index: int, value: Any) -> list[_Edit]:
        if holder.flow:
            if not holder.items:
                return [_Edit(holder.end - 1, holder.end - 1, flow(value))]
            if index < len(holder.items):
                start = holder.items[index].start
                return [_Edit(start, start, f"{flow(value)}, ")]
            end = holder.items[-1].end
            return [_Edit(end, end, f", {flow(value)}")]
        lines = self._item(value, holder.column - 1)
        if index > 0:
            return self._after_line(holder.items[index - 1].end, lines)
        start = self._line_start(holder.items[0].start)
        if self.text[start : holder.start].strip():
            return self._insert_on_dash(holder, value)
        return [_Edit(start, start, lines)]

    def _insert_on_dash(self, holder: Place, value: Any) -> list[_Edit]:
        """A nested list whose first dash shares its line: the new item takes that line."""
        indent = holder.column - 1
        return [
            _Edit(holder.start, holder.start, self._item(value, indent)[indent:] + " " * indent)
        ]

    # Replacing

    def _replace(self, chain: list[Place], parts: Parts, value: Any) -> list[_Edit]:
        place = chain[len(parts)]
        holder = chain[len(parts) - 1].content
        if holder.flow or self._stays_on_its_line(place, value):
            return [_Edit(place.start, place.end, self._spaced(place, flow(value)))]
        indent = self._indent(holder, parts[-1])
        head, lines = self._head_and_lines(value, indent + 2, place)
        return self._head_edit(place, holder, parts[-1], head, lines)

    def _stays_on_its_line(self, place: Place, value: Any) -> bool:
        """Whether old and new value both stand on one line behind their key."""
        is_inline = place.kind == "alias" or place.flow or self._is_inline_scalar(place)
        is_lines = isinstance(value, str) and is_literal(value) and self.in_blocks
        return is_inline and not is_lines

    def _is_inline_scalar(self, place: Place) -> bool:
        return place.kind == "scalar" and place.style not in ("|", ">")

    def _spaced(self, place: Place, new: str) -> str:
        """A space in front, where an empty value stood right behind its colon or dash."""
        before = self.text[place.start - 1 : place.start]
        return f" {new}" if place.start == place.end and before in (":", "-") else new

    def _indent(self, holder: Place, part: str | int) -> int:
        if holder.kind == "mapping":
            return holder.keys[str(part)].column - 1
        return holder.column - 1

    def _head_and_lines(self, value: Any, indent: int, place: Place) -> tuple[str, str]:
        """What stands behind the key, and the lines below it."""
        if self.in_blocks and isinstance(value, str) and is_literal(value):
            header, _, body = literal(value, indent).partition("\n")
            return header, body
        was_collection = place.kind in ("mapping", "sequence")
        if self.in_blocks and was_collection and isinstance(value, (dict, list)) and value:
            return "", block(value, indent)
        return flow(value), ""

    def _head_edit(
        self, place: Place, holder: Place, part: str | int, head: str, lines: str
    ) -> list[_Edit]:
        """Replace what stands behind the key and the lines below; a comment between them stays."""
        mark = self._mark(place, holder, part)
        if place.kind in ("mapping", "sequence") and not place.flow:
            if self._line_start(place.start) == self._line_start(mark - 1):
                return [_Edit(mark, place.end, _joined(head, lines))]
            below = self._line_end(mark)
            end = self._line_end(place.end)
            return [_Edit(mark, mark, f" {head}" if head else ""), _Edit(below, end, lines)]
        if place.style in ("|", ">"):
            start = _content_start(self.text, place)
            header_end = start + 1
            while self.text[header_end : header_end + 1] in tuple("+-0123456789"):
                header_end += 1
            below = self._line_end(header_end)
            end = max(below, self._literal_end(place))
            return [_Edit(place.start, header_end, head), _Edit(below, end, lines)]
        below = self._line_end(place.end)
        tail = "" if self.text[:below].endswith("\n") else "\n"
        inline = self._spaced(place, head)
        return [_Edit(place.start, place.end, inline), _Edit(below, below, tail + lines)]

    def _mark(self, place: Place, holder: Place, part: str | int) -> int:
        """The offset behind the colon or dash of a value."""
        if holder.kind == "mapping":
            return self.text.index(":", holder.keys[str(part)].end) + 1
        return self.text.rfind("-", self._line_start(place.start), place.start) + 1

    def _literal_end(self, place: Place) -> int:
        """Where the lines of a block scalar end, empty ones behind them left alone."""
        end = place.end
        body = self.text[:end].rstrip()
        return self._line_end(len(body))

    # Removing

    def _remove(self, chain: list[Place], parts: Parts) -> list[_Edit]:
        holder = chain[len(parts) - 1].content
        count = len(holder.values) or len(holder.items)
        if count == 1 and not holder.flow:
            empty: Any = {} if holder.kind == "mapping" else []
            if len(parts) == 1:
                return [_Edit(holder.start, self._line_end(holder.end), "{}\n")]
            return self._replace(chain[:-1], parts[:-1], empty)
        spans = _spans(holder, self.text)
        index = self._index(holder, parts[-1])
        if holder.flow:
            return [_flow_removal(spans, index)]
        start, end = spans[index]
        first = self._line_start(start)
        if self.text[first:start].strip():
            return [_Edit(start, spans[index + 1][0], "")]
        return [_Edit(first, self._line_end(end), "")]

    def _index(self, holder: Place, part: str | int) -> int:
        return list(holder.keys).index(str(part)) if holder.kind == "mapping" else int(part)


def _joined(head: str, lines: str) -> str:
    """A new value behind its dash or key, lines below it, without the last newline."""
    body = "\n" + lines.rstrip("\n") if lines else ""
    return (f" {head}" if head else "") + body


def _spans(holder: Place, text: str) -> list[tuple[int, int]]:
    """From the key or dash to the end of the value, for each entry of a collection."""
    if holder.kind == "mapping":
        pairs = ((holder.keys[key], value) for key, value in holder.values.items())
        return [(key.start, max(key.end, value.end)) for key, value in pairs]
    if holder.flow:
        return [(item.start, item.end) for item in holder.items]
    dashes: list[tuple[int, int]] = []
    for item in holder.items:
        line = text.rfind("\n", 0, item.start) + 1
        dash = line + holder.column - 1
        dashes.append((dash, item.end))
    return dashes


def _flow_removal(spans: list[tuple[int, int]], index: int) -> _Edit:
    start, end = spans[index]
    if index + 1 < len(spans):
        return _Edit(start, spans[index + 1][0], "")
    if index > 0:
        return _Edit(spans[index - 1][1], end, "")
    return _Edit(start, end, "")


def _nested(parts: Parts, value: Any, old: dict[str, Any]) -> Any:
    """A value inside of new mappings."""
    for part in reversed(parts[1:]):
        value = {str(part): value}
    return {**old, str(parts[0]): value} if parts else value
