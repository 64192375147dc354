"""Search in all saved loops: loops by name, nodes by name, kind or model.

The database selects the loops whose text contains the words. Only those are parsed, until there
are enough hits. The nodes of a revision are cached.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from coloop_server import language
from coloop_server.database.tables import LoopRow
from coloop_server.loops import repository
from coloop_server.loops.schemas import LoopHit

MAX_CACHED_REVISIONS = 500
_NODES = re.compile(r"(?m)^nodes:[ \t]*(?:#.*)?\n((?:[ \t]+.*\n?|\s*\n|#.*\n)*)")
_ENTRY = re.compile(r"(?m)^([ \t]+)[^\s#]")
_ALIAS = re.compile(r"(?m)<<:|\b(?:model|kind|path|architecture):[ \t]*\*")


class Node(NamedTuple):
    name: str
    kind: str
    model: str | None

    @property
    def text(self) -> str:
        return " ".join((self.name, self.kind, self.model or "")).casefold().replace("_", " ")


def find(session: Session, query: str, limit: int) -> list[LoopHit]:
    """The first hits: loops whose name, and nodes whose text, contains every word of the query."""
    words = query.casefold().replace("_", " ").split()
    hits: list[LoopHit] = []
    if not words:
        return hits
    for row in repository.mentioning(session, words):
        if _has_all(row.name.casefold().replace("_", " "), words):
            hits.append(_hit(row))
        nodes = _nodes(row.revision, row.yaml) if _may_match(row.yaml, words) else ()
        hits += (_hit(row, node) for node in nodes if _has_all(node.text, words))
        if len(hits) >= limit:
            break
    return hits[:limit]


def _hit(row: LoopRow, node: Node | None = None) -> LoopHit:
    name, kind, model = node or (None, None, None)
    return LoopHit(loop=row.id, loop_name=row.name, node=name, kind=kind, model=model)


def _may_match(yaml: str, words: list[str]) -> bool:
    """Whether a node may match: a cheap check, because parsing takes a hundred times as long.

    False only where `nodes` is a block whose entries can be told apart by their indentation, and no
    entry has all the words.
    """
    block = _NODES.search(yaml)
    first = _ENTRY.search(block[1]) if block is not None else None
    if block is None or first is None or _ALIAS.search(yaml):
        return True
    indent = first[1]
    inside = rf"(?:[ \t]{{{2 * len(indent) + 1},}}.*\n?)*"
    told = re.compile(rf"\bkind:[ \t]*([^\s,}}]+)|\bmodel:[ \t]*(\{{[^}}]*\}}|.*(?:\n{inside})?)")
    for entry in re.split(rf"(?m)^{re.escape(indent)}(?=[^\s#])", block[1]):
        parts = [entry.partition(":")[0], *(kind + model for kind, model in told.findall(entry))]
        if _has_all(" ".join(parts).casefold().replace("_", " "), words):
            return True
    return False


def _has_all(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


@lru_cache(maxsize=MAX_CACHED_REVISIONS)
def _nodes(revision: str, yaml: str) -> tuple[Node, ...]:
    """The nodes of a saved revision. The cache is safe, as a revision determines its text."""
    document = language.document(yaml) or {}
    nodes = document.get("nodes")
    return tuple(_read_nodes(nodes)) if isinstance(nodes, dict) else ()


def _read_nodes(nodes: dict[str, Any]) -> Iterator[Node]:
    for name, node in nodes.items():
        if isinstance(node, dict):
            yield Node(name, str(node.get("kind", "")), _model(node.get("model")))


def _model(model: Any) -> str | None:
    """The strings that identify the model: `Qwen/Qwen3-0.6B`, `tiny-qwen3`, `actor`."""
    if isinstance(model, str):
        return model
    if not isinstance(model, dict):
        return None
    texts = (value for key, value in model.items() if key != "type" and isinstance(value, str))
    return " ".join(texts) or None
