"""One change of a loop as replacements of text, found by the places that the reader keeps.

Flow collections are edited inside of their brackets, block collections by whole lines; comments
between and behind stay. Values that aliases share are set apart before (`patch.set_apart`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coloop.spec.changes import as_edge
from coloop.spec.documents import Parts, look_along
from coloop.spec.text.emit import (
    block,
    block_entry,
    block_item,
    flow,
    is_leaf,
    is_literal,
    literal,
    scalar,
)
from coloop.spec.text.reader import Place, Reading
from coloop.spec.text.reader import read as read_text

read = lru_cache(maxsize=8)(read_text)
"""Cached, because one edit reads the same text several times; readings are never changed."""


@dataclass(frozen=True, slots=True)
class Edit:
    start: int
    end: int
    text: str


def replaced(text: str, edits: list[Edit]) -> str:
    """The text after these edits, with its own newlines."""
    is_crlf = "\r\n" in text
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        new = edit.text.replace("\n", "\r\n") if is_crlf else edit.text
        text = text[: edit.start] + new + text[edit.end :]
    return text


def chain_of(root: Place, parts: Parts) -> Iterator[Place]:
    """The positions along a path, as far as it exists; a final alias is not followed."""
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


def line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def line_end(text: str, offset: int) -> int:
    """End offset of a line, newline included."""
    if offset > 0 and text[offset - 1] == "\n":
        return offset
    newline = text.find("\n", offset)
    return len(text) if newline < 0 else newline + 1


def content_start(text: str, place: Place) -> int:
    """Offset of a value behind its anchor."""
    start = place.start
    if place.anchor is not None and text.startswith(f"&{place.anchor}", start):
        start += len(place.anchor) + 1
        while start < place.end and text[start] in " \t":
            start += 1
    return start


class Editor:
    def __init__(self, text: str, reading: Reading, in_blocks: bool) -> None:
        assert reading.place is not None
        self.text = text
        self.in_blocks = in_blocks
        self.root = reading.place
        self.data = reading.data

    def edits(self, op: str, parts: Parts, value: Any) -> list[Edit]:
        chain = list(chain_of(self.root, parts))
        if op == "rename":
            key = chain[-2].content.keys[str(parts[-1])]
            return [Edit(key.start, key.end, scalar(value))]
        if op == "remove":
            return self._remove(chain, parts)
        if op == "insert" and self._is_list(chain, parts):
            if self._begins_block(chain, len(parts) - 1, value):
                return self._begin_block(chain, parts[:-1], [value])
            return self._insert(chain[len(parts) - 1].content, int(parts[-1]), value)
        if len(chain) == len(parts) + 1:
            return self._replace(chain, parts, value)
        return self._add(chain, parts, value)

    def _is_list(self, chain: list[Place], parts: Parts) -> bool:
        return len(chain) >= len(parts) and chain[len(parts) - 1].content.kind == "sequence"

    def _add(self, chain: list[Place], parts: Parts, value: Any) -> list[Edit]:
        depth = len(chain) - 1
        holder = chain[depth].content
        rest = parts[depth:]
        if holder.kind != "mapping" and depth:
            old = as_edge(look_along(self.data, parts[:depth]))
            new = _nested(rest, value, old if isinstance(old, dict) else {})
            return self._replace(chain, parts[:depth], new)
        inner = _nested(rest[1:], value, {}) if len(rest) > 1 else value
        if self._begins_block(chain, depth, inner):
            return self._begin_block(chain, parts[:depth], {str(rest[0]): inner})
        return self._add_key(holder, str(rest[0]), inner)

    def _begins_block(self, chain: list[Place], depth: int, value: Any) -> bool:
        """Whether the first entry of an empty collection is written below its key."""
        place, parent = chain[depth], chain[depth - 1].content
        is_empty = place.flow and not (place.values or place.items)
        is_ours = self.in_blocks and depth > 0 and is_empty and place.kind != "alias"
        wants_lines = depth == 1 or not is_leaf(value)
        return is_ours and wants_lines and parent.kind == "mapping" and not parent.flow

    def _begin_block(self, chain: list[Place], parts: Parts, value: Any) -> list[Edit]:
        """The lines of a collection that was empty; a comment behind its key stays there."""
        place, parent = chain[len(parts)], chain[len(parts) - 1].content
        lines = block(value, self._indent(parent, parts[-1]) + 2)
        mark = self._mark(place, parent, parts[-1])
        below = line_end(self.text, place.end)
        tail = "" if self.text[:below].endswith("\n") else "\n"
        return [Edit(mark, place.end, ""), Edit(below, below, tail + lines)]

    def _add_key(self, holder: Place, key: str, value: Any) -> list[Edit]:
        if holder.flow:
            entry = f"{scalar(key)}: {flow(value)}"
            if not holder.values:
                return [Edit(holder.end - 1, holder.end - 1, entry)]
            end = self._last(holder).end
            return [Edit(end, end, f", {entry}")]
        indent = min(place.column for place in holder.keys.values()) - 1
        lines = self._entry(key, value, indent)
        return self._after_line(self._last(holder).end, lines)

    def _last(self, holder: Place) -> Place:
        inner = [*holder.keys.values(), *holder.values.values(), *holder.items]
        return max(inner, key=lambda place: place.end)

    def _after_line(self, end: int, lines: str) -> list[Edit]:
        at = line_end(self.text, end)
        if at >= len(self.text):
            lead = "" if not self.text or self.text.endswith("\n") else "\n"
            return [Edit(len(self.text), len(self.text), lead + lines)]
        return [Edit(at, at, lines)]

    def _entry(self, key: str, value: Any, indent: int) -> str:
        if self.in_blocks:
            return block_entry(key, value, indent)
        return f"{' ' * indent}{scalar(key)}: {flow(value)}\n"

    def _item(self, value: Any, indent: int) -> str:
        return block_item(value, indent) if self.in_blocks else f"{' ' * indent}- {flow(value)}\n"

    # Sequences

    def _insert(self, holder: Place, index: int, value: Any) -> list[Edit]:
        if holder.flow:
            if not holder.items:
                return [Edit(holder.end - 1, holder.end - 1, flow(value))]
            if index < len(holder.items):
                start = holder.items[index].start
                return [Edit(start, start, f"{flow(value)}, ")]
            end = holder.items[-1].end
            return [Edit(end, end, f", {flow(value)}")]
        lines = self._item(value, holder.column - 1)
        if index > 0:
            return self._after_line(holder.items[index - 1].end, lines)
        start = line_start(self.text, holder.items[0].start)
        if self.text[start : holder.start].strip():
            return self._insert_on_dash(holder, value)
        return [Edit(start, start, lines)]

    def _insert_on_dash(self, holder: Place, value: Any) -> list[Edit]:
        """A nested list whose first dash is on the parent's line: the new item takes that line."""
        indent = holder.column - 1
        return [Edit(holder.start, holder.start, self._item(value, indent)[indent:] + " " * indent)]

    # Replacing

    def _replace(self, chain: list[Place], parts: Parts, value: Any) -> list[Edit]:
        place = chain[len(parts)]
        holder = chain[len(parts) - 1].content
        if holder.flow or self._stays_on_its_line(place, value):
            return [Edit(place.start, place.end, self._spaced(place, flow(value)))]
        indent = self._indent(holder, parts[-1])
        head, lines = self._head_and_lines(value, indent + 2, place)
        return self._head_edit(place, holder, parts[-1], head, lines)

    def _stays_on_its_line(self, place: Place, value: Any) -> bool:
        """Whether the old and the new value both fit on the line of their key."""
        is_lines = isinstance(value, str) and is_literal(value) and self.in_blocks
        return (place.kind == "alias" or place.is_inline) and not is_lines

    def _spaced(self, place: Place, new: str) -> str:
        """The new text with the space (in `{a, b}` also the colon) that an empty value lacks."""
        if place.start != place.end:
            return new
        before = self.text[place.start - 1 : place.start]
        return f" {new}" if before in (":", "-") else f": {new}"

    def _indent(self, holder: Place, part: str | int) -> int:
        if holder.kind == "mapping":
            return holder.keys[str(part)].column - 1
        return holder.column - 1

    def _head_and_lines(self, value: Any, indent: int, place: Place) -> tuple[str, str]:
        if self.in_blocks and isinstance(value, str) and is_literal(value):
            header, _, body = literal(value, indent).partition("\n")
            return header, body
        was_collection = place.kind in ("mapping", "sequence")
        if self.in_blocks and was_collection and isinstance(value, (dict, list)) and value:
            return "", block(value, indent)
        return flow(value), ""

    def _head_edit(
        self, place: Place, holder: Place, part: str | int, head: str, lines: str
    ) -> list[Edit]:
        """Replace what stands behind the key and the lines below; a comment between them stays."""
        mark = self._mark(place, holder, part)
        if place.kind in ("mapping", "sequence") and not place.flow:
            if line_start(self.text, place.start) == line_start(self.text, mark - 1):
                return [Edit(mark, place.end, _joined(head, lines))]
            below = line_end(self.text, mark)
            end = line_end(self.text, place.end)
            return [Edit(mark, mark, f" {head}" if head else ""), Edit(below, end, lines)]
        if place.style in ("|", ">"):
            start = content_start(self.text, place)
            header_end = start + 1
            while self.text[header_end : header_end + 1] in tuple("+-0123456789"):
                header_end += 1
            below = line_end(self.text, header_end)
            # empty lines behind the block scalar are left alone
            end = max(below, line_end(self.text, len(self.text[: place.end].rstrip())))
            return [Edit(place.start, header_end, head), Edit(below, end, lines)]
        below = line_end(self.text, place.end)
        tail = "" if self.text[:below].endswith("\n") else "\n"
        inline = self._spaced(place, head)
        return [Edit(place.start, place.end, inline), Edit(below, below, tail + lines)]

    def _mark(self, place: Place, holder: Place, part: str | int) -> int:
        if holder.kind == "mapping":
            return self.text.index(":", holder.keys[str(part)].end) + 1
        return self.text.rfind("-", line_start(self.text, place.start), place.start) + 1

    # Removing

    def _remove(self, chain: list[Place], parts: Parts) -> list[Edit]:
        holder = chain[len(parts) - 1].content
        count = len(holder.values) or len(holder.items)
        if count == 1 and not holder.flow:
            empty: Any = {} if holder.kind == "mapping" else []
            if len(parts) == 1:
                return [Edit(holder.start, line_end(self.text, holder.end), "{}\n")]
            return self._replace(chain[:-1], parts[:-1], empty)
        spans = _spans(holder, self.text)
        index = self._index(holder, parts[-1])
        if holder.flow:
            return [_flow_removal(spans, index)]
        start, end = spans[index]
        first = line_start(self.text, start)
        if self.text[first:start].strip():
            return [Edit(start, spans[index + 1][0], "")]
        return [Edit(first, line_end(self.text, end), "")]

    def _index(self, holder: Place, part: str | int) -> int:
        return list(holder.keys).index(str(part)) if holder.kind == "mapping" else int(part)


def _joined(head: str, lines: str) -> str:
    """A new value behind its dash or key, lines below it, without the last newline."""
    body = "\n" + lines.rstrip("\n") if lines else ""
    return (f" {head}" if head else "") + body


def _spans(holder: Place, text: str) -> list[tuple[int, int]]:
    if holder.kind == "mapping":
        pairs = ((holder.keys[key], value) for key, value in holder.values.items())
        return [(key.start, max(key.end, value.end)) for key, value in pairs]
    if holder.flow:
        return [(item.start, item.end) for item in holder.items]
    dashes: list[tuple[int, int]] = []
    for item in holder.items:
        dash = line_start(text, item.start) + holder.column - 1
        dashes.append((dash, item.end))
    return dashes


def _flow_removal(spans: list[tuple[int, int]], index: int) -> Edit:
    start, end = spans[index]
    if index + 1 < len(spans):
        return Edit(start, spans[index + 1][0], "")
    if index > 0:
        return Edit(spans[index - 1][1], end, "")
    return Edit(start, end, "")


def _nested(parts: Parts, value: Any, old: dict[str, Any]) -> Any:
    for part in reversed(parts[1:]):
        value = {str(part): value}
    return {**old, str(parts[0]): value} if parts else value
