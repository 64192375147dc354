"""Levels of what each node kind gives: where new rows are born and where the same rows are handed
on.

New rows are born in `dataset`, in a buffer when it is read, in `actor`, generative `verifier`,
`search`, `pairs`, `each`, and inside a tool that a policy calls; every other kind hands on the
rows of its join.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coloop.spec.graph import Edge
from coloop.spec.lineage.inputs import ROW_OUTPUTS
from coloop.spec.lineage.joins import Join, sides_of_pairs
from coloop.spec.lineage.levels import NO_LEVELS, Level, Levels, align, ancestors, born
from coloop.spec.nodes import Node, RewardNode, SearchNode, VerifierNode

if TYPE_CHECKING:
    from coloop.spec.lineage.descent import Descent

Given = Iterable[tuple[str, Levels]]


def given_levels(descent: Descent, name: str, node: Node, join: Join) -> Given:
    """The levels of each output of a node, from those that its inputs bring."""
    rows = join.levels
    match node.kind:
        case "dataset":
            root = frozenset({born(name) if node.unfold is None else born(name, born(name))})
            yield from (("rows", root), ("pairs", root))
        case "actor":
            written = _children(name, rows) | _called(descent, name)
            yield from (("rollouts", written), ("returns", written))
        case "critic":
            yield "values", rows
        case "reference":
            yield "log_probs", rows
        case "reward":
            yield "scores", _scored(node, join)
        case "verifier":
            yield from _judged(descent, name, node, join)
        case "template":
            yield "rows", rows if node.each is None else _children(name, rows)
        case "filter":
            yield from _kept(descent, name, rows)
        case "pairs":
            yield "pairs", _paired(descent, name, node.method, rows)
        case "buffer":
            yield from ((port, frozenset({born(name)})) for port in (*ROW_OUTPUTS, "scores"))
        case "tool":
            yield "rollouts", _brought(descent, descent.walk.into(name, "policy"), "rollouts")
        case "search":
            yield from _searched(descent, name, node, rows)


def _children(name: str, rows: Levels) -> Levels:
    return frozenset(born(name, level) for level in rows)


def _called(descent: Descent, name: str) -> Levels:
    """Rows that a policy writes inside another's trajectory: children of the caller's."""
    return frozenset(
        born(name, level)
        for caller in descent.walk.callers.get(name, ())
        for level in descent.levels(caller, "rollouts")
    )


def _scored(node: RewardNode | VerifierNode, join: Join) -> Levels:
    return join.members if node.per == "row" else join.levels


def _judged(descent: Descent, name: str, node: VerifierNode, join: Join) -> Given:
    scored = _scored(node, join)
    if descent.writes(name):
        called = _called(descent, name)
        yield "rollouts", _children(name, join.levels) | called
        scored = _children(name, scored) | called
    yield from (("scores", scored), ("step_scores", scored))


def _kept(descent: Descent, name: str, rows: Levels) -> Given:
    spare = _brought(descent, descent.walk.into(name, "spare"))
    for port in ROW_OUTPUTS:
        edges = descent.walk.into(name, port)
        if edges:
            yield port, _brought(descent, edges) | spare
    if descent.walk.into(name, "scores"):
        yield "scores", rows | spare


def _paired(descent: Descent, name: str, method: str, rows: Levels) -> Levels:
    match method:
        case "direct":
            edges = descent.walk.into(name, "chosen", "rejected")
            sides = sides_of_pairs([(edge, descent.edge_levels(edge)) for edge in edges])
            combinations = align(sides)[0] if all(sides) else ()
            return frozenset(born(name, *met) for met in combinations)
        case "relabel":
            return frozenset(
                born(name, *(level.parents if len(level.parents) == 2 else (level,)))
                for level in rows
            )
        case _:
            return frozenset(born(name, level, level) for level in rows)


def _searched(descent: Descent, name: str, node: SearchNode, rows: Levels) -> Given:
    labels_texts = node.method in ("monte_carlo", "binary_search") and any(
        carries_texts(descent, edge) for edge in descent.walk.into(name, "rows")
    )
    grown = rows if labels_texts else _children(name, rows)
    yield from (("rollouts", grown), ("step_scores", grown))
    yield "scores", rows if node.method == "and_or" else grown


def carries_texts(descent: Descent, edge: Edge) -> bool:
    """Whether the rows of an edge are rollouts, or descend from some."""
    source = edge.source.node
    if descent.spec.nodes[source].kind == "buffer":
        return bool(descent.walk.into(source, "rollouts"))
    levels = descent.edge_levels(edge)
    return bool(levels) and all(
        any(_is_written(descent, one) for one in ancestors(level)) for level in levels
    )


def _is_written(descent: Descent, level: Level) -> bool:
    return not level.joined and descent.spec.nodes[level.node].kind in ("actor", "verifier")


def _brought(descent: Descent, edges: list[Edge], port: str | None = None) -> Levels:
    tables = (descent.levels(e.source.node, port or e.source.port) for e in edges)
    return NO_LEVELS.union(*tables)
