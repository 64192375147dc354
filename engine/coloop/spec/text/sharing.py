"""Takes what is about to change out of what aliases share.

An alias on the way to the change is written out; the anchor of what changes, or goes, moves to its
first alias outside. The document says the same before and after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coloop.spec.documents import Parts, look_along
from coloop.spec.text.emit import flow
from coloop.spec.text.reader import Place, Reading
from coloop.spec.text.stretches import Edit, chain_of, content_start, read, replaced


def set_apart(text: str, op: str, parts: Parts) -> str:
    """The same document, in which no alias shares what is about to change."""
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
    """Give the anchor of what changes to its first alias outside."""
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
    """The data that stands at a place."""
    waiting: list[tuple[Place, Any]] = [(reading.place, reading.data)] if reading.place else []
    while waiting:
        place, value = waiting.pop()
        if place is wanted:
            return value
        waiting += [(inner, value[key]) for key, inner in place.values.items()]
        waiting += list(zip(place.items, value if place.items else (), strict=False))
    return None


def _content_text(text: str, place: Place, value: Any) -> str:
    """A value on one line, in its own words where they are on one line."""
    own = text[content_start(text, place) : place.end]
    is_simple = place.flow or (place.kind == "scalar" and place.style not in ("|", ">"))
    has_marks = any(inner.anchor is not None for inner in _all_places(place) if inner is not place)
    if is_simple and "\n" not in own and not has_marks and own:
        return own
    return flow(value)
