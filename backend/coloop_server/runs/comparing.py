"""Differences between two loops in words, without those that do not affect a run."""

import json
from collections.abc import Mapping
from typing import Any

from coloop.spec.changes import apply_change, diff
from coloop.spec.diagnostics import Change
from coloop.spec.documents import split_path
from coloop.spec.io import parse, to_dict
from coloop_server.language import require_document
from coloop_server.runs.schemas import SpecChange

DEFAULT = "its default"
ABSENT = "not there"


def compare(old: str, new: str) -> list[SpecChange]:
    here, goal = meaning(old), meaning(new)
    told = []
    for change in diff(here, goal):
        before = value_at(here, change)
        here = apply_change(here, change)
        after = None if change.op == "remove" else change.value
        told.append(SpecChange(path=change.path, old=before, new=after, **said(change, before)))
    return told


def meaning(text: str) -> dict[str, Any]:
    """The document without explicit defaults; unchanged if it is invalid."""
    spec = parse(text).spec
    return require_document(text) if spec is None else to_dict(spec, is_bare=True)


def value_at(document: Any, change: Change) -> Any:
    """The value at the path of a change; None if there is none."""
    if change.op == "insert":
        return None
    here = document
    for word in split_path(change.path):
        if isinstance(here, list) and word.isdecimal() and int(word) < len(here):
            here = here[int(word)]
        elif isinstance(here, dict):
            here = here.get(word)
        else:
            return None
    return here


def said(change: Change, before: Any) -> Mapping[str, str]:
    """A change in words: its place, old and new value, and all in one line."""
    words = split_path(change.path)
    if change.op == "rename":
        where, old, new = f"node `{words[-1]}`", f"`{words[-1]}`", f"`{change.value}`"
        return sides(where, old, new, f"`{words[-1]}` is called `{change.value}`")
    if words[0] == "edges" and len(words) == 2:
        return edge_said(change, before)
    if words[0] == "nodes" and len(words) == 2:
        return node_said(words[1], change, before)
    where = f"{words[1]} · {'.'.join(words[2:])}" if words[0] == "nodes" else change.path
    if change.op == "insert":
        return sides(where, ABSENT, shown(change.value), f"{where}: {shown(change.value)} added")
    old = DEFAULT if before is None else shown(before)
    new = DEFAULT if change.op == "remove" else shown(change.value)
    return sides(where, old, new, f"{where}: {old} → {new}")


def node_said(name: str, change: Change, before: Any) -> Mapping[str, str]:
    where = f"node `{name}`"
    if change.op == "remove":
        return sides(where, kind_of(before), ABSENT, f"{where} removed")
    kind = kind_of(change.value)
    return sides(where, ABSENT, kind, f"{where} added ({kind})")


def kind_of(node: Any) -> str:
    return str(node.get("kind", "there")) if isinstance(node, dict) else "there"


def edge_said(change: Change, before: Any) -> Mapping[str, str]:
    if change.op == "remove":
        return sides(f"edge {shown(before)}", "there", ABSENT, f"edge {shown(before)} removed")
    new = shown(change.value)
    if before is None:
        return sides(f"edge {new}", ABSENT, "there", f"edge {new} added")
    return sides(f"edge {shown(before)}", shown(before), new, f"edge {shown(before)} → {new}")


def sides(where: str, before: str, after: str, words: str) -> Mapping[str, str]:
    return {"where": where, "before": before, "after": after, "words": words}


def shown(value: Any) -> str:
    if isinstance(value, dict) and {"from", "to"} <= value.keys():
        more = {key: part for key, part in value.items() if key not in ("from", "to")}
        return f"`{value['from']} -> {value['to']}`" + (f" {shown(more)}" if more else "")
    if isinstance(value, str):
        return f"`{value}`"
    return json.dumps(value, ensure_ascii=False, default=str)
