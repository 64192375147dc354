"""The rows that a node works on: its inputs joined by lineage.

`align` and `cross` meet in the same levels (they differ in which rows meet), `concat` puts levels
side by side, `gather` makes a child of all descendants of one row.

Invariant: an input that brings no levels (nothing is connected further up) does not take part, so
a half-drawn graph is joined as far as it goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coloop.spec.graph import Edge
from coloop.spec.levels import (
    NO_LEVELS,
    Level,
    Levels,
    align,
    ancestors,
    gathered,
    join_levels,
    ordered,
)
from coloop.spec.lineage.walk import ALWAYS_CONCAT
from coloop.spec.training import Gather

if TYPE_CHECKING:
    from coloop.spec.lineage.descent import Descent

Table = tuple[Edge, Levels]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The rows that one node works on."""

    levels: Levels
    """Levels of the rows after the join."""
    members: Levels
    """The same before rows were gathered; equal to `levels` without `gather`."""
    parts: tuple[tuple[Level, tuple[tuple[Edge, Level], ...]], ...] = ()
    """For each level before gathering the levels of the inputs that meet in it."""
    apart: tuple[Edge, Edge] | None = None
    """Two inputs that share no ancestor, though the join needs one."""
    gather_missing: Levels = NO_LEVELS
    """Levels that have no ancestor at the node by which they should be gathered."""


EMPTY_JOIN = Join(levels=NO_LEVELS, members=NO_LEVELS)


def join_inputs(descent: Descent, name: str, edges: list[Edge]) -> Join:
    """The join of what these edges bring to a node."""
    node = descent.spec.nodes[name]
    tables = [(edge, levels) for edge in edges if (levels := descent.edge_levels(edge))]
    if not tables:
        return EMPTY_JOIN
    mode = "concat" if node.kind in ALWAYS_CONCAT else node.join
    if node.sides:
        return _join_sides(tables, node.sides)
    apart = node.about.apart_without
    is_apart = apart is not None and all(edge.target.port != apart for edge, _ in tables)
    if mode == "concat" or is_apart:
        return _side_by_side(tables)
    join = _aligned(tables)
    return _gather(descent, mode.gather, join) if isinstance(mode, Gather) else join


def _side_by_side(tables: list[Table]) -> Join:
    parts = tuple((level, ((edge, level),)) for edge, table in tables for level in table)
    levels = frozenset(level for level, _ in parts)
    return Join(levels=levels, members=levels, parts=parts)


def _aligned(tables: list[Table]) -> Join:
    combinations, places = align([levels for _, levels in tables])
    edges = [edge for edge, _ in tables]
    parts = tuple((join_levels(met), tuple(zip(edges, met, strict=True))) for met in combinations)
    levels = frozenset(level for level, _ in parts)
    apart = None if places is None else (edges[places[0]], edges[places[1]])
    return Join(levels=levels, members=levels, parts=parts, apart=apart)


def _join_sides(tables: list[Table], ports: tuple[str, ...]) -> Join:
    sides = [
        NO_LEVELS.union(*(levels for edge, levels in tables if edge.target.port == port))
        for port in ports
    ]
    if not all(sides):
        return EMPTY_JOIN
    combinations, places = align(sides)
    levels = frozenset(join_levels(met) for met in combinations)
    by_port = {edge.target.port: edge for edge, _ in reversed(tables)}
    apart = None if places is None else (by_port[ports[0]], by_port[ports[1]])
    return Join(levels=levels, members=levels, apart=apart)


def _gather(descent: Descent, by: str | None, join: Join) -> Join:
    found: dict[Level, list[Level]] = {}
    missing: set[Level] = set()
    for level in ordered(join.members):
        above = _gathering_level(descent, level, by)
        if above is None:
            missing.add(level)
        else:
            found.setdefault(above, []).append(level)
    levels = frozenset(gathered(above.node, tuple(below)) for above, below in found.items())
    return replace(join, levels=levels, gather_missing=frozenset(missing))


def _gathering_level(descent: Descent, level: Level, by: str | None) -> Level | None:
    if by is None:
        return level.parents[0] if level.parents else None
    rows = descent.rows_of(by) if by in descent.spec.nodes else NO_LEVELS
    found = [(away, one) for one, away in ancestors(level).items() if away and one in rows]
    return min(found, key=lambda item: item[0])[1] if found else None
