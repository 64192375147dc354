"""Plain documents and the paths into them: how a path is spelled, and edits that copy.

A path is keys and list positions joined by dots. A dot inside of a key needs no mark where the
key is there: the longest key that fits is taken. Where a path says itself what it is (a phase's
`set` maps paths to values), all that follows is one key. A backslash before a dot settles it.
Documents are what YAML and JSON carry. Nothing here knows the fields of the language, except that
an edge may be written as text.

Invariant: no function changes what it is given.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.fields import look
from coloop.spec.graph import Edge

Parts = tuple[str | int, ...]

_PARTS = re.compile(r"(?:[^.\\]|\\.)+")


def split_path(path: str) -> tuple[str, ...]:
    """The parts of a path; a dot in a key has a backslash, `edges.a.x->b.y` keeps its edge."""
    if path.startswith("edges.") and "->" in path:
        left, _, right = path[len("edges.") :].partition("->")
        target = right.strip().split(".")
        edge = f"{left.strip()}->{'.'.join(target[:2])}"
        return ("edges", edge, *target[2:])
    return tuple(re.sub(r"\\(.)", r"\1", part) for part in _PARTS.findall(path))


def holds_paths(parts: Parts) -> bool:
    """Whether the keys of the mapping at a place are paths themselves."""
    return parts[:1] == ("schedule",) and parts[-1] == "set"


def words_of_key(here: Mapping[str, Any], words: Sequence[str], parts: Parts) -> int:
    """How many words of a path make up the key of the mapping `here`, which stands at `parts`."""
    is_of_paths = holds_paths(parts)
    if words[0] in here and not is_of_paths:
        return 1
    for count in range(len(words), 0, -1):
        if ".".join(words[:count]) in here:
            return count
    return len(words) if is_of_paths else 1


def join_path(parts: Iterable[str | int]) -> str:
    """A path of keys and positions as text."""
    return ".".join(str(part).replace("\\", "\\\\").replace(".", "\\.") for part in parts)


def edge_names(item: Any) -> tuple[str, ...]:
    """The id (or nothing) and `a.x->b.y` of an edge, as text, mapping or `Edge`."""
    if isinstance(item, str):
        return ("", "->".join(side.strip() for side in item.split("->")))
    if isinstance(item, Edge):
        return (item.id or "", f"{item.source}->{item.target}")
    if isinstance(item, Mapping) and "from" in item and "to" in item:
        return (str(item.get("id") or ""), f"{item['from']}->{item['to']}")
    return ()


def set_in(data: Any, parts: Parts, value: Any) -> Any:
    """Plain data with another value at a place; missing mappings on the way are made."""
    if not parts:
        return copy.deepcopy(value)
    head, rest = parts[0], parts[1:]
    if isinstance(data, (list, tuple)):
        if not isinstance(head, int) or not 0 <= head <= len(data):
            raise _no_place(parts)
        items = list(data)
        new = set_in(items[head] if head < len(items) else None, rest, value)
        return [*items[:head], new, *items[head + 1 :]]
    if isinstance(data, str) and "->" in data:
        source, _, target = data.partition("->")
        data = {"from": source.strip(), "to": target.strip()}
    if data is not None and not isinstance(data, Mapping):
        raise _no_place(parts)
    mapping = dict(data or {})
    mapping[str(head)] = set_in(mapping.get(str(head)), rest, value)
    return mapping


def remove_in(data: Any, parts: Parts) -> Any:
    """Plain data without the value at a place."""
    if not parts:
        raise _no_place(parts)
    head, rest = parts[0], parts[1:]
    if isinstance(data, (list, tuple)) and isinstance(head, int) and 0 <= head < len(data):
        items = list(data)
        if not rest:
            return [*items[:head], *items[head + 1 :]]
        return [*items[:head], remove_in(items[head], rest), *items[head + 1 :]]
    if not isinstance(data, Mapping) or head not in data:
        raise _no_place(parts)
    if not rest:
        return {key: item for key, item in data.items() if key != head}
    return {**data, head: remove_in(data[head], rest)}


def insert_in(data: Any, parts: Parts, value: Any) -> Any:
    """Plain data with an item before the one at a place of a list."""
    *way, index = parts
    found = look_along(data, tuple(way))
    items = list(found) if isinstance(found, (list, tuple)) else []
    is_list = found is None or isinstance(found, (list, tuple))
    if not is_list or not isinstance(index, int) or not 0 <= index <= len(items):
        raise _no_place(parts)
    return set_in(data, tuple(way), [*items[:index], copy.deepcopy(value), *items[index:]])


def look_along(data: Any, parts: Parts) -> Any:
    """The value at a place of plain data, or nothing."""
    for part in parts:
        data = look(data, part)
    return data


def _no_place(parts: Parts) -> SpecProblem:
    path = ".".join(map(str, parts))
    diagnostic = Diagnostic(
        code="structure.unknown_path", message=f"there is no path `{path}`", field=path
    )
    return SpecProblem(diagnostic.describe(), (diagnostic,))
