"""Edits of a loop document as data: what differs between two documents, and what a change does.

Edges are compared by what they say (`a.x -> b.y` and `{from: a.x, to: b.y}` are the same), numbers
by value, so that an edit on the page touches nothing else in the text. `apply_changes(old,
diff(old, new))` equals `new` up to such spellings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Change
from coloop.spec.documents import (
    Parts,
    edge_names,
    holds,
    insert_in,
    join_path,
    look_along,
    path_problem,
    position_of,
    remove_in,
    renamed_key,
    set_in,
    split_path,
    words_of_key,
)

TEACHING = frozenset({"rewards", "demonstrations", "pairs", "labels", "returns", "reference"})


def locate(document: Mapping[str, Any], path: str) -> Parts:
    """Keys and positions of a path in a plain document; the end of it need not exist."""
    here: Any = document
    parts: list[str | int] = []
    words = split_path(path)
    while words:
        word, count = words[0], 1
        if isinstance(here, list):
            index = position_of(here, word)
            if index is None or index > len(here):
                known = [name for item in here for name in edge_names(item)[:1] if name]
                message = f"the path `{path}` does not exist: there is no `{word}`"
                raise path_problem(message, path, word, known)
            part: str | int = index
        elif parts[-1:] == ["algorithm"] and word in TEACHING and "name" in _mapping(here):
            words = words[1:]
            continue
        else:
            count = words_of_key(_mapping(here), words, tuple(parts))
            part = ".".join(words[:count])
        words = words[count:]
        parts.append(part)
        here = look_along(here, (part,))
    return tuple(parts)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def apply_changes(document: dict[str, Any], changes: Sequence[Change]) -> dict[str, Any]:
    """A copy of the document with these changes."""
    for change in changes:
        document = apply_change(document, change)
    return document


def apply_change(document: dict[str, Any], change: Change) -> dict[str, Any]:
    op, parts = normal_change(document, change)
    if op == "rename":
        return _renamed(document, parts, str(change.value))
    new: dict[str, Any]
    try:
        if op == "remove":
            new = remove_in(document, parts)
        else:
            new = (set_in if op == "set" else insert_in)(document, parts, change.value)
    except SpecProblem:
        raise path_problem(f"the path `{change.path}` has no place here", change.path) from None
    return new


def normal_change(document: dict[str, Any], change: Change) -> tuple[str, Parts]:
    """A change in terms of `set`, `insert`, `remove`, `rename` at a place."""
    if change.op == "add_edge":
        parts = locate(document, change.path or "edges")
        edges = document.get("edges")
        if not isinstance(edges, list):
            return "insert", ("edges", 0)
        return "insert", parts if len(parts) > 1 else ("edges", len(edges))
    if change.op == "remove_edge":
        if change.path in ("", "edges"):
            return "remove", ("edges", _edge_position(document, change.value))
        return "remove", locate(document, change.path)
    parts = locate(document, change.path)
    if not parts:
        if change.op == "set" and isinstance(change.value, dict):
            return "set", parts
        raise path_problem("the whole loop can only be set, to a mapping", change.path)
    if change.op == "set" and isinstance(parts[-1], int):
        items = look_along(document, parts[:-1])
        if isinstance(items, list) and parts[-1] == len(items):
            return "insert", parts
    if change.op in ("remove", "rename") and not holds(look_along(document, parts[:-1]), parts[-1]):
        raise path_problem(f"the path `{change.path}` does not exist", change.path)
    return change.op, parts


def _edge_position(document: dict[str, Any], edge: Any) -> int:
    wanted = set(edge_names(edge)) - {""}
    for index, item in enumerate(document.get("edges") or []):
        if wanted & set(edge_names(item)):
            return index
    raise path_problem(f"there is no edge {edge!r}"[:200], "edges")


def _renamed(document: dict[str, Any], parts: Parts, name: str) -> dict[str, Any]:
    holder = look_along(document, parts[:-1])
    if not isinstance(holder, dict) or name in holder:
        raise path_problem(f"`{join_path(parts)}` cannot become `{name}`", join_path(parts))
    new = renamed_key(holder, parts[-1], name)
    return set_in(document, parts[:-1], new)  # type: ignore[no-any-return]


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The smallest sensible changes that turn one document into the other."""
    return list(_differences(old, new, ()))


def _differences(old: Any, new: Any, path: Parts) -> Iterable[Change]:
    if same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _mapping_differences(old, new, path)
        return
    if isinstance(old, list) and isinstance(new, list):
        are_mappings = bool(old) and all(isinstance(item, Mapping) for item in [*old, *new])
        if path == ("edges",) or are_mappings:
            yield from _list_differences(old, new, path)
            return
    yield _change("set", path, new)


def _mapping_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], path: Parts
) -> Iterable[Change]:
    if "" in old or "" in new:
        yield _change("set", path, new)
        return
    renamed = _renames(old, new) if path == ("nodes",) else {}
    for before, after in renamed.items():
        yield _change("rename", (*path, before), after)
    kept = {renamed.get(key, key): value for key, value in old.items()}
    for key in kept:
        if key not in new:
            yield _change("remove", (*path, key))
    for key, value in new.items():
        if key in kept:
            yield from _differences(kept[key], value, (*path, key))
        else:
            yield _change("set", (*path, key), value)


def _renames(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    gone = [key for key in old if key not in new]
    come = [key for key in new if key not in old]
    pairs: dict[str, str] = {}
    for before in gone:
        after = [key for key in come if same(old[before], new[key]) and key not in pairs.values()]
        if len(after) == 1:
            pairs[before] = after[0]
    return pairs


def _list_differences(old: list[Any], new: list[Any], path: Parts) -> Iterable[Change]:
    """Changes from the end to the front, so that earlier indices stay valid."""
    matcher = SequenceMatcher(None, _texts(old), _texts(new), autojunk=False)
    for op, a, b, c, d in reversed(matcher.get_opcodes()):
        if op == "equal":
            continue
        common = min(b - a, d - c)
        for index in range(b - 1, a + common - 1, -1):
            yield _change("remove", (*path, index))
        for offset in range(d - c - 1, common - 1, -1):
            yield _change("insert", (*path, a + common), new[c + offset])
        for offset in range(common):
            yield from _item_differences(old[a + offset], new[c + offset], (*path, a + offset))


def _item_differences(old: Any, new: Any, path: Parts) -> Iterable[Change]:
    before, after = as_edge(old), as_edge(new)
    same_ends = (
        isinstance(before, Mapping)
        and isinstance(after, Mapping)
        and before.get("from") == after.get("from")
        and before.get("to") == after.get("to")
    )
    if path[0] == "edges" and len(path) == 2 and not same_ends:
        yield _change("set", path, new)
    elif path[0] == "edges" and len(path) == 2:
        yield from _mapping_differences(before, after, path)
    else:
        yield from _differences(old, new, path)


def _texts(items: list[Any]) -> list[str]:
    return [json.dumps(_normal(as_edge(item)), sort_keys=True, default=str) for item in items]


def as_edge(item: Any) -> Any:
    """An edge as a mapping; anything else as it is."""
    if isinstance(item, str) and item.count("->") == 1:
        source, _, target = item.partition("->")
        return {"from": source.strip(), "to": target.strip()}
    return item


def _normal(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int() | float():
            return float(value)
        case Mapping():
            return {key: _normal(item) for key, item in value.items()}
        case list() | tuple():
            return [_normal(item) for item in value]
    return value


def same(old: Any, new: Any) -> bool:
    """Whether two values mean the same; `true` is not `1`, but `1` is `1.0`."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(same(a, b) for a, b in zip(old, new, strict=True))
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    return bool(old == new) and (isinstance(old, str) == isinstance(new, str))


def same_documents(old: Any, new: Any) -> bool:
    """Whether two documents say the same; an edge may be text or mapping."""
    return same(_edges_open(old), _edges_open(new))


def _edges_open(document: Any) -> Any:
    edges = document.get("edges") if isinstance(document, Mapping) else None
    if not isinstance(edges, list):
        return document
    return {**document, "edges": [as_edge(edge) for edge in edges]}


def _change(op: Any, path: Parts, value: Any = None) -> Change:
    return Change(op=op, path=join_path(path), value=value)
