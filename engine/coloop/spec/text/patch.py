"""Edits the text of a loop and leaves every other character as it is.

Each change replaces one range of the text. A value that aliases share is set apart first. The
result is read again and must say what was asked for; if it does not, or if there are very many
edits, the loop is written anew without comments, so that no edit is ever lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coloop.errors import SpecProblem
from coloop.spec.changes import apply_change, apply_changes, normal_change, same_documents
from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.documents import VERSION, Parts, look_along, migrate
from coloop.spec.text.edits import (
    Edit,
    Editor,
    chain_of,
    content_start,
    line_end,
    line_start,
    read,
    replaced,
)
from coloop.spec.text.emit import WIDTH, flow, is_leaf, to_yaml
from coloop.spec.text.reader import Place, Reading, data_of

MOST_EDITS = 100
"""Maximum batches of changes, each of which reads the text again; with more it is written anew."""


def patch(text: str, changes: Sequence[Change | Mapping[str, Any]]) -> str:
    """The text after these changes; raises `SpecProblem` for invalid text or paths."""
    wanted = [change if isinstance(change, Change) else Change(**change) for change in changes]
    document = _document(text)
    if isinstance(document.get("coloop"), int) and document["coloop"] < VERSION:
        document = migrate(document)[0]
        text = to_yaml(document)
    batches = list(_batches(document, wanted))
    if len(batches) > MOST_EDITS:
        return _anew(apply_changes(document, wanted))
    for batch in batches:
        expected = document
        for change in batch:
            expected = apply_change(expected, change)
        text = _carried_out(text, document, batch, expected)
        document = expected
    return text


def _document(text: str) -> dict[str, Any]:
    document = data_of(text)
    if not isinstance(document, dict):
        found = Diagnostic(code="yaml.not_a_mapping", message="the document is not a mapping")
        raise SpecProblem(found.describe(), (found,))
    return document


def _carried_out(
    text: str, document: dict[str, Any], batch: list[Change], expected: dict[str, Any]
) -> str:
    """The text after these changes: new values in blocks, else on one line, else all anew."""
    for in_blocks in (True, False):
        new = _edited(text, document, batch, in_blocks)
        reading = read(new)
        if not reading.diagnostics and same_documents(reading.data, expected):
            return new
    return _anew(expected)


def _anew(document: dict[str, Any]) -> str:
    """The document as new text; raises `SpecProblem` for a value that a loop cannot hold."""
    text = to_yaml(document)
    _document(text)
    return text


def _batches(document: dict[str, Any], changes: list[Change]) -> Iterator[list[Change]]:
    """Groups of changes that need only one reading: new values of existing scalars."""
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
        text = set_apart(text, op, parts)
        if in_blocks and op in ("set", "insert"):
            text = opened(text, parts, change.value)
    reading = read(text)
    edits = [
        edit
        for change in batch
        for edit in Editor(text, reading, in_blocks).edits(
            *normal_change(document, change), change.value
        )
    ]
    return replaced(text, edits)


# Flow collections that become blocks when something larger comes in, so that it has lines.
#
# `nodes: {a: {...}}` with a new node becomes a line for each node; what was written of the others
# stays as it stood. A collection with comments, anchors or aliases inside is left alone.
#
# Invariant: an opened text says the same as before.

LISTS_OF_THINGS = frozenset({("nodes",), ("edges",), ("schedule", "phases")})
"""Collections whose entries have a line each, however short."""


def opened(text: str, parts: Parts, value: Any) -> str:
    """The text with flow collections expanded that a new value does not fit into."""
    for _ in parts:
        reading = read(text)
        if reading.place is None:
            return text
        edits = next(_openings(text, reading.place, parts, value), None)
        if edits is None:
            return text
        text = replaced(text, edits)
    return text


def _openings(text: str, root: Place, parts: Parts, value: Any) -> Iterator[list[Edit]]:
    chain = list(chain_of(root, parts))
    if len(chain) > len(parts):
        return
    for depth in range(1, len(chain)):
        place, parent = chain[depth], chain[depth - 1].content
        if not place.flow or parent.flow or parent.kind != "mapping":
            continue
        if not (place.values or place.items) or not _is_plain(text, place):
            return
        is_direct = depth == len(parts) - 1
        line = text[line_start(text, place.start) : line_end(text, place.end)].rstrip("\n")
        is_wide = len(line) + len(flow(value)) + 4 > WIDTH
        if is_wide or parts[:depth] in LISTS_OF_THINGS or (is_direct and not is_leaf(value)):
            yield _block_of(text, place, parent.keys[str(parts[depth - 1])])
        return


def _is_plain(text: str, place: Place) -> bool:
    """Whether entries can be moved to separate lines unchanged."""
    stretch = text[place.start : place.end]
    return place.anchor is None and not any(mark in stretch for mark in "#&*\n")


def _block_of(text: str, place: Place, key: Place) -> list[Edit]:
    """The collection with one entry per line; a comment behind it stays with the key."""
    lead = " " * (key.column + 1)
    if place.kind == "sequence":
        entries = [f"- {text[item.start : item.end]}" for item in place.items]
    else:
        pairs = ((name, place.values[word]) for word, name in place.keys.items())
        entries = [
            f"{text[name.start : name.end]}: {text[item.start : item.end]}" for name, item in pairs
        ]
    start = place.start - (text[place.start - 1] == " ")
    below = line_end(text, place.end)
    tail = "" if text[:below].endswith("\n") else "\n"
    lines = "".join(f"{lead}{entry.rstrip()}\n" for entry in entries)
    return [Edit(start, place.end, ""), Edit(below, below, tail + lines)]


# Takes what is about to change out of what aliases share.
#
# An alias on the way to the change is written out; the anchor of what changes, or goes, moves to
# its first alias outside. The document says the same before and after.


def set_apart(text: str, op: str, parts: Parts) -> str:
    """The same document without aliases to the value that is about to change."""
    for _ in range(1000):
        reading = read(text)
        assert reading.place is not None
        chain = list(chain_of(reading.place, parts))
        edit = _write_out_alias(text, reading, chain, parts, op) or _move_anchor(
            text, reading, chain, op
        )
        if edit is None:
            return text
        text = replaced(text, edit)
    return text


def _write_out_alias(
    text: str, reading: Reading, chain: list[Place], parts: Parts, op: str
) -> list[Edit] | None:
    is_whole = len(chain) == len(parts) + 1 and op in ("set", "remove", "insert", "rename")
    for depth, place in enumerate(chain):
        if place.kind != "alias" or (is_whole and depth == len(chain) - 1):
            continue
        value = look_along(reading.data, parts[:depth])
        return [Edit(place.start, place.end, _content_text(text, place.content, value))]
    return None


def _move_anchor(text: str, reading: Reading, chain: list[Place], op: str) -> list[Edit] | None:
    """Move the anchor of a changed value to its first alias outside."""
    assert reading.place is not None
    last = chain[-1]
    goes = list(_all_places(last)) if op in ("set", "remove") else []
    anchors = [place for place in (*chain, *goes) if place.anchor and place.kind != "alias"]
    if not anchors:
        return None
    held = {id(place) for place in goes}
    aliases = [place for place in _all_places(reading.place) if place.kind == "alias"]
    for anchored in anchors:
        users = [a for a in aliases if a.target is anchored and id(a) not in held]
        if not users:
            continue
        first = min(users, key=lambda alias: alias.start)
        name = f"&{anchored.anchor} "
        value = _value_of(reading, anchored)
        start = content_start(text, anchored)
        return [
            Edit(anchored.start, start, ""),
            Edit(first.start, first.end, name + _content_text(text, anchored, value)),
        ]
    return None


def _all_places(place: Place) -> Iterator[Place]:
    waiting = [place]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += [*here.values.values(), *here.items]


def _value_of(reading: Reading, wanted: Place) -> Any:
    waiting: list[tuple[Place, Any]] = [(reading.place, reading.data)] if reading.place else []
    while waiting:
        place, value = waiting.pop()
        if place is wanted:
            return value
        waiting += [(inner, value[key]) for key, inner in place.values.items()]
        waiting += list(zip(place.items, value if place.items else (), strict=False))
    return None


def _content_text(text: str, place: Place, value: Any) -> str:
    """A value on one line, in its original spelling if that is on one line."""
    own = text[content_start(text, place) : place.end]
    has_marks = any(inner.anchor is not None for inner in _all_places(place) if inner is not place)
    if place.is_inline and "\n" not in own and not has_marks and own:
        return own
    return flow(value)
