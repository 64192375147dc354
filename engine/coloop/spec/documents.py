"""Plain documents (what YAML and JSON carry), the paths into them, and versions of the language.

A path is keys and list positions joined by dots. Where no key is the next word, the longest key
with dots that exists is taken; after a phase's `set`, whose keys are paths, a new key is all that
follows. A backslash before a dot keeps it in its key. No function changes its arguments.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Diagnostic, closest, did_you_mean, error
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
    """Whether the keys of the mapping at this path are paths themselves."""
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


def position_of(items: Sequence[Any], word: str) -> int | None:
    """Index of the list item that a word names (by index, edge or `name`); None: no such name."""
    if word.isdigit():
        return int(word)
    return next((i for i, item in enumerate(items) if word in names_of(item)), None)


def names_of(item: Any) -> tuple[str, ...]:
    name = look(item, "name")
    return (*edge_names(item), name) if isinstance(name, str) else edge_names(item)


def path_problem(message: str, path: str, word: str = "", known: Iterable[str] = ()) -> SpecProblem:
    """A path that does not exist, with what `word` in it probably means."""
    hint = did_you_mean(word, known)
    diagnostic = Diagnostic(code="structure.unknown_path", message=message, hint=hint, field=path)
    return SpecProblem(diagnostic.describe(), (diagnostic,))


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
    holder = look_along(data, tuple(way))
    items = list(holder) if isinstance(holder, (list, tuple)) else []
    is_list = holder is None or isinstance(holder, (list, tuple))
    if not is_list or not isinstance(index, int) or not 0 <= index <= len(items):
        raise _no_place(parts)
    return set_in(data, tuple(way), [*items[:index], copy.deepcopy(value), *items[index:]])


def look_along(data: Any, parts: Parts) -> Any:
    """The value at a place of plain data, or nothing."""
    for part in parts:
        data = look(data, part)
    return data


def holds(holder: Any, part: str | int) -> bool:
    if isinstance(holder, Mapping):
        return part in holder
    return isinstance(holder, (list, tuple)) and isinstance(part, int) and 0 <= part < len(holder)


def renamed_key(mapping: Mapping[str, Any], old: str | int, new: str) -> dict[str, Any]:
    """A mapping with another name for a key, at the same place."""
    return {(new if key == old else key): value for key, value in mapping.items()}


def _no_place(parts: Parts) -> SpecProblem:
    path = ".".join(map(str, parts))
    return path_problem(f"there is no path `{path}`", path)


# Versions of the language: a document of an older version is brought up to date, step by step.

VERSION = 1
"""The version that this program reads and writes."""


def migrate(document: dict[str, Any]) -> tuple[dict[str, Any], Diagnostic | None]:
    """The document in the current version, or why it cannot be migrated."""
    problem = check_version(document)
    if problem is not None:
        return document, problem
    version = document["coloop"]
    while version < VERSION:
        document = MIGRATIONS[version](document)
        version += 1
    return document, None


def check_version(document: dict[str, Any]) -> Diagnostic | None:
    """Why the version of a document cannot be read, or nothing."""
    if "coloop" not in document:
        near = closest("coloop", [key for key in document if isinstance(key, str)])
        instead = f"; found `{near[0]}`" if near else ""
        return error(
            "version.missing",
            "coloop",
            f"`coloop`, the version of the language, is missing{instead}",
            f"write `coloop: {VERSION}` as the first line",
        )
    version = document["coloop"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        message = f"found {version!r}, expected a whole number up to {VERSION}"[:200]
        return error("version.unknown", "coloop", message, f"write `coloop: {VERSION}`")
    if version > VERSION:
        message = f"the file is of version {version}; this program reads up to {VERSION}"
        return error("version.newer", "coloop", message, "install a newer coloop")
    return None


def _from_0(document: dict[str, Any]) -> dict[str, Any]:
    """From 0, the draft: a node's `type` becomes `kind`, `group_size` `completions_per_prompt`."""
    nodes = document.get("nodes")
    renamed = {
        name: _node_from_0(node) if isinstance(node, dict) else node
        for name, node in (nodes.items() if isinstance(nodes, dict) else ())
    }
    return {**document, "coloop": 1, "nodes": renamed if isinstance(nodes, dict) else nodes}


def _node_from_0(node: dict[str, Any]) -> dict[str, Any]:
    if "kind" not in node and "type" in node:
        node = renamed_key(node, "type", "kind")
    rollout = node.get("rollout")
    if isinstance(rollout, dict) and "group_size" in rollout:
        rollout = renamed_key(rollout, "group_size", "completions_per_prompt")
        node = {**node, "rollout": rollout}
    return node


MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {0: _from_0}
"""By version n, the pure function from its document to that of n + 1. Old files load for ever; each
version has a fixture."""
