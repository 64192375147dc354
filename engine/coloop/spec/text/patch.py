"""Edits the text of a loop and leaves every other character as it is.

Each change becomes the replacement of one stretch of text, found by the places that the reader
keeps: comments, key order, quotes, anchors and number formats outside of it stay. Where a change
would touch a value that aliases share, the alias is written out or the anchor moves to its first
alias, so that only what was named changes. At the end the text is read again and must say what
was asked for; if it does not, or if there are very many edits, the loop is written anew without
comments, so that no edit is ever lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coloop.errors import SpecProblem
from coloop.spec.changes import apply_change, apply_changes, normal_change, same_documents
from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.documents import look_along
from coloop.spec.migrate import VERSION, migrate
from coloop.spec.text.edits import Editor
from coloop.spec.text.emit import to_yaml
from coloop.spec.text.opening import opened
from coloop.spec.text.reader import data_of
from coloop.spec.text.sharing import set_apart
from coloop.spec.text.stretches import read, replaced

MOST_EDITS = 100
"""Edits one after another, each with a reading of the text. For more of them it is written anew."""


def patch(text: str, changes: Sequence[Change | Mapping[str, Any]]) -> str:
    """The text after these changes; raises `SpecProblem` for text or paths that give no sense."""
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
        found = Diagnostic(code="yaml.not_a_mapping", message="the document is no mapping")
        raise SpecProblem(found.describe(), (found,))
    return document


def _carried_out(
    text: str, document: dict[str, Any], batch: list[Change], expected: dict[str, Any]
) -> str:
    """The text that says what was asked for; where comments are in the way, on one line."""
    for in_blocks in (True, False):
        new = _edited(text, document, batch, in_blocks)
        reading = read(new)
        if not reading.diagnostics and same_documents(reading.data, expected):
            return new
    return _anew(expected)


def _anew(document: dict[str, Any]) -> str:
    """The document as a text of its own; `SpecProblem` for a value that a loop cannot hold."""
    text = to_yaml(document)
    _document(text)
    return text


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
