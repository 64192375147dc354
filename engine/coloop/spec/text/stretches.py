"""Stretches of a loop's text: edits of it, and the places on the way to a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from coloop.spec.documents import Parts
from coloop.spec.text.reader import Place
from coloop.spec.text.reader import read as read_text

read = lru_cache(maxsize=8)(read_text)
"""Readings are never changed, and one edit looks at the same text several times."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One stretch of text and what takes its place."""

    start: int
    end: int
    text: str


def replaced(text: str, edits: list[Edit]) -> str:
    """The text with stretches replaced, in its own newlines."""
    is_crlf = "\r\n" in text
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        new = edit.text.replace("\n", "\r\n") if is_crlf else edit.text
        text = text[: edit.start] + new + text[edit.end :]
    return text


def chain_of(root: Place, parts: Parts) -> Iterator[Place]:
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


def content_start(text: str, place: Place) -> int:
    """Where a value begins behind its anchor."""
    start = place.start
    if place.anchor is not None and text.startswith(f"&{place.anchor}", start):
        start += len(place.anchor) + 1
        while start < place.end and text[start] in " \t":
            start += 1
    return start
