"""Flow collections that become blocks when something larger comes in, so that it has lines.

`nodes: {a: {...}}` with a new node becomes a line for each node; what was written of the others
stays as it stood. A collection with comments, anchors or aliases inside is left alone.

Invariant: an opened text says the same as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coloop.spec.documents import Parts
from coloop.spec.text.emit import WIDTH, flow, is_leaf
from coloop.spec.text.reader import Place
from coloop.spec.text.stretches import Edit, chain_of, read, replaced

LISTS_OF_THINGS = frozenset({("nodes",), ("edges",), ("schedule", "phases")})
"""Collections whose entries have a line each, however short."""


def opened(text: str, parts: Parts, value: Any) -> str:
    """The text with the flow collections open that a new value at a place does not fit into."""
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
        is_wide = len(_line(text, place)) + len(flow(value)) + 4 > WIDTH
        if is_wide or parts[:depth] in LISTS_OF_THINGS or (is_direct and not is_leaf(value)):
            yield _block_of(text, place, parent.keys[str(parts[depth - 1])])
        return


def _is_plain(text: str, place: Place) -> bool:
    """Whether entries can be moved to lines of their own as they stand."""
    stretch = text[place.start : place.end]
    return place.anchor is None and not any(mark in stretch for mark in "#&*\n")


def _line(text: str, place: Place) -> str:
    start = text.rfind("\n", 0, place.start) + 1
    end = text.find("\n", place.end)
    return text[start : end if end >= 0 else len(text)]


def _block_of(text: str, place: Place, key: Place) -> list[Edit]:
    """The collection with an entry a line, each as it was written; a comment behind it stays with
    the key."""
    lead = " " * (key.column + 1)
    if place.kind == "sequence":
        entries = [f"- {text[item.start : item.end]}" for item in place.items]
    else:
        pairs = ((name, place.values[word]) for word, name in place.keys.items())
        entries = [
            f"{text[name.start : name.end]}: {text[item.start : item.end]}" for name, item in pairs
        ]
    start = place.start - (text[place.start - 1] == " ")
    found = text.find("\n", place.end)
    below = len(text) if found < 0 else found + 1
    lines = "".join(f"{lead}{entry.rstrip()}\n" for entry in entries)
    return [Edit(start, place.end, ""), Edit(below, below, lines if found >= 0 else f"\n{lines}")]
