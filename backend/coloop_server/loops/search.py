"""A node or a loop by name, kind or model, in all saved loops.

The database finds the loops whose text has the words; only those are read, until there are hits
enough, and what was read of a saved state is kept.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from coloop_server import language
from coloop_server.database.tables import LoopRow
from coloop_server.loops import repository
from coloop_server.loops.schemas import LoopHit

KEPT_STATES = 500


class Node(NamedTuple):
    name: str
    kind: str
    model: str | None

    @property
    def text(self) -> str:
        return " ".join((self.name, self.kind, self.model or "")).casefold().replace("_", " ")


def find(session: Session, query: str, limit: int) -> list[LoopHit]:
    """The first hits. Every word of the query is in the name of the loop, or in one node."""
    words = query.casefold().replace("_", " ").split()
    found: list[LoopHit] = []
    if not words:
        return found
    for row in repository.mentioning(session, words):
        if _has_all(row.name.casefold().replace("_", " "), words):
            found.append(_hit(row))
        found += (
            _hit(row, node) for node in _nodes(row.revision, row.yaml) if _has_all(node.text, words)
        )
        if len(found) >= limit:
            break
    return found[:limit]


def _hit(row: LoopRow, node: Node | None = None) -> LoopHit:
    name, kind, model = node or (None, None, None)
    return LoopHit(loop=row.id, loop_name=row.name, node=name, kind=kind, model=model)


def _has_all(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


@lru_cache(maxsize=KEPT_STATES)
def _nodes(revision: str, yaml: str) -> tuple[Node, ...]:
    """The nodes of a saved state. A revision names exactly one text."""
    document = language.document(yaml) or {}
    nodes = document.get("nodes")
    return tuple(_read_nodes(nodes)) if isinstance(nodes, dict) else ()


def _read_nodes(nodes: dict[str, Any]) -> Iterator[Node]:
    for name, node in nodes.items():
        if isinstance(node, dict):
            yield Node(name, str(node.get("kind", "")), _model(node.get("model")))


def _model(model: Any) -> str | None:
    """`Qwen/Qwen3-0.6B`, `tiny-qwen3`, `actor`: the texts that say which model it is."""
    if isinstance(model, str):
        return model
    if not isinstance(model, dict):
        return None
    said = (value for key, value in model.items() if key != "type" and isinstance(value, str))
    return " ".join(said) or None
