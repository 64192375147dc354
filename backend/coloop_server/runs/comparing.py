"""What differs between two loops, in words: what means something to a run, and nothing else."""

import json
from typing import Any

from coloop.diagnostics import Change
from coloop.spec.changes import apply_change, diff
from coloop.spec.documents import split_path
from coloop.spec.io import parse, to_dict
from coloop_server.language import require_document
from coloop_server.runs.schemas import SpecChange

DEFAULT = "its default"


def compare(old: str, new: str) -> list[SpecChange]:
    """What has to be changed in one text to get the other."""
    here, goal = meaning(old), meaning(new)
    told = []
    for change in diff(here, goal):
        before = value_at(here, change)
        here = apply_change(here, change)
        after = None if change.op == "remove" else change.value
        words = in_words(change, before)
        told.append(SpecChange(path=change.path, words=words, old=before, new=after))
    return told


def meaning(text: str) -> dict[str, Any]:
    """The document without defaults that are written out; as it is where it cannot be read."""
    spec = parse(text).spec
    return require_document(text) if spec is None else to_dict(spec, is_bare=True)


def value_at(document: Any, change: Change) -> Any:
    """What stands where something is to be changed; None where nothing does."""
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


def in_words(change: Change, before: Any) -> str:
    words = split_path(change.path)
    if change.op == "rename":
        return f"`{words[-1]}` is called `{change.value}`"
    if words[0] == "edges" and len(words) == 2:
        return edge_words(change, before)
    if words[0] == "nodes" and len(words) == 2:
        if change.op == "remove":
            return f"node `{words[1]}` removed"
        kind = change.value.get("kind") if isinstance(change.value, dict) else None
        return f"node `{words[1]}` added" + (f" ({kind})" if kind else "")
    where = f"{words[1]} · {'.'.join(words[2:])}" if words[0] == "nodes" else change.path
    if change.op == "insert":
        return f"{where}: {shown(change.value)} added"
    after = DEFAULT if change.op == "remove" else shown(change.value)
    return f"{where}: {DEFAULT if before is None else shown(before)} → {after}"


def edge_words(change: Change, before: Any) -> str:
    if change.op == "remove":
        return f"edge {shown(before)} removed"
    if before is None:
        return f"edge {shown(change.value)} added"
    return f"edge {shown(before)} → {shown(change.value)}"


def shown(value: Any) -> str:
    if isinstance(value, dict) and {"from", "to"} <= value.keys():
        more = {key: one for key, one in value.items() if key not in ("from", "to")}
        return f"`{value['from']} -> {value['to']}`" + (f" {shown(more)}" if more else "")
    if isinstance(value, str):
        return f"`{value}`"
    return json.dumps(value, ensure_ascii=False, default=str)
