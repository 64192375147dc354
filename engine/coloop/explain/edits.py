"""Loops to explain with, and ways to change them.

A change is written as data, so that it can stand in a file: `[set, path, value]`, `[del, path]`,
`[add, edge]`, `[cut, edge]`, `[edge, edge, options]`; an option that is null is taken away.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from coloop.spec.text.reader import data_of

LOOPS = Path(__file__).parent / "loops"

Edit = Sequence[Any]
Document = dict[str, Any]


@cache
def _load(name: str) -> Document:
    loaded: Document = data_of((LOOPS / f"{name}.yaml").read_text("utf-8"))
    return loaded


def ends(edge: Any) -> str:
    """An edge without its options, `node.port -> node.port`."""
    if isinstance(edge, str):
        return " -> ".join(side.strip() for side in edge.split("->"))
    return f"{edge['from']} -> {edge['to']}"


def split(path: str) -> list[str]:
    """Parts of a path; a quoted part (`set."nodes.a.b"`) is one."""
    parts: list[str] = []
    for index, chunk in enumerate(path.split('"')):
        parts += [chunk] if index % 2 else [part for part in chunk.split(".") if part]
    return parts


def changed(loop: str, *edits: Edit) -> Document:
    """A loop of `loops/` with changes."""
    document = copy.deepcopy(_load(loop))
    for edit in edits:
        _apply(document, *edit)
    return document


def _apply(document: Document, what: str, where: Any, value: Any = None) -> None:
    edges = document["edges"]
    match what:
        case "add":
            edges.append(where)
        case "cut":
            edges.remove(edges[_place(edges, where)])
        case "edge":
            place = _place(edges, where)
            edges[place] = _with_options(edges[place], value)
        case _:
            owner, key = _owner(document, where)
            if what == "del":
                del owner[key]
            else:
                owner[key] = copy.deepcopy(value)


def _place(edges: Sequence[Any], wanted: str) -> int:
    found = next((i for i, edge in enumerate(edges) if ends(edge) == wanted), None)
    assert found is not None, f"no edge {wanted}"
    return found


def _with_options(edge: Any, options: Document) -> Document:
    source, target = ends(edge).split(" -> ")
    old = edge if isinstance(edge, dict) else {"from": source, "to": target}
    return {key: value for key, value in {**old, **options}.items() if value is not None}


def _owner(document: Any, path: str) -> tuple[Any, Any]:
    """The mapping or list that holds the last part of a path, and that part."""
    here, parts = document, split(path)
    for part in parts[:-1]:
        here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
    last: Any = parts[-1]
    return here, int(last) if isinstance(here, list) else last


def touched_edges(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Ends of the edges that changes name, as they were and as they are."""
    found: list[str] = []
    for what, where, *rest in edits:
        if what in ("add", "cut", "edge"):
            old = ends(where) if "->" in str(where) or isinstance(where, dict) else str(where)
            found.append(old)
            if what == "edge":
                found.append(ends(_with_options(where, rest[0])))
    return tuple(dict.fromkeys(found))


def touched_paths(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Paths of the values that changes name."""
    return tuple(edit[1] for edit in edits if edit[0] in ("set", "del"))
