"""Levels of every port of a loop, the rows that its nodes work on, and how scores reach them.

Everything is decided here from the spec alone, never per row: the runtime asks which way an edge
runs and only then looks at rows. Nodes are visited in the order of the walk, so nothing recurses,
and a half-drawn graph (missing edges, cycles) gives empty sets instead of errors.

Joins: `align` and `cross` meet in the same levels (they differ in which rows meet), `concat` puts
levels side by side, `gather` makes a child of all descendants of one row. An input that brings no
levels (nothing is connected further up) does not take part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lean import record
from coloop.spec.levels import (
    NO_LEVELS,
    Level,
    Levels,
    Relation,
    align,
    ancestors,
    birth,
    born,
    children,
    common_ancestor,
    gathered,
    join_levels,
    match,
    ordered,
    relate,
)
from coloop.spec.lineage.columns import Columns
from coloop.spec.lineage.walk import (
    ALWAYS_CONCAT,
    OWN_ROLLOUT_INPUTS,
    ROW_OUTPUTS,
    RoundsRegion,
    Take,
    Walk,
)
from coloop.spec.training import Gather

Table = tuple[Edge, Levels]


@record
class Join:
    """The rows that one node works on."""

    levels: Levels
    """Levels of the rows after the join."""
    members: Levels
    """Levels before gathering; equal to `levels` without `gather`."""
    parts: tuple[tuple[Level, tuple[tuple[Edge, Level], ...]], ...] = ()
    """For each level before gathering, the levels of the inputs that meet in it."""
    apart: tuple[Edge, Edge] | None = None
    """Two inputs without a common ancestor, where the join needs one."""
    gather_missing: Levels = NO_LEVELS
    """Levels without an ancestor at the node they should be gathered by."""


EMPTY_JOIN = Join(levels=NO_LEVELS, members=NO_LEVELS)


def join_inputs(lineage: Lineage, name: str, edges: list[Edge]) -> Join:
    node = lineage.spec.nodes[name]
    tables = [(edge, levels) for edge in edges if (levels := lineage.edge_levels(edge))]
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
    return _gather(lineage, mode.gather, join) if isinstance(mode, Gather) else join


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


def _gather(lineage: Lineage, by: str | None, join: Join) -> Join:
    by_ancestor: dict[Level, list[Level]] = {}
    missing: set[Level] = set()
    for level in ordered(join.members):
        above = _gathering_level(lineage, level, by)
        if above is None:
            missing.add(level)
        else:
            by_ancestor.setdefault(above, []).append(level)
    levels = frozenset(gathered(above.node, tuple(below)) for above, below in by_ancestor.items())
    return replace(join, levels=levels, gather_missing=frozenset(missing))


def _gathering_level(lineage: Lineage, level: Level, by: str | None) -> Level | None:
    if by is None:
        return level.parents[0] if level.parents else None
    return lineage.ancestor_at(level, by, least=1) if by in lineage.spec.nodes else None


@record
class Attachment:
    """How the scores of one edge reach the rows that receive them."""

    relation: Relation
    """The nearest relation of any receiving level to any scored level."""
    receivers: Levels
    scored: Levels
    via: str | None = None
    """For `side`, the node whose rows are the nearest common ancestors (`join` for joined rows)."""

    @property
    def rises(self) -> bool:
        """Whether scores go up to an ancestor of their rows; the edge then needs an `aggregate`."""
        return self.relation in (Relation.UP, Relation.SIDE)


class Lineage:
    """Levels of all tables, joins of all nodes, and the questions about them.

    Invariants:
    - A node's levels are those of round 1; a rounds region does not deepen them.
    - Where a node has row inputs, only these make the rows that it works on; scores have to reach
      them. Without row inputs the scored rows themselves are its rows, save those of edges with
      `aggregate`.
    """

    relate = staticmethod(relate)
    match = staticmethod(match)

    def __init__(
        self,
        spec: LoopSpec,
        known_columns: Mapping[str, frozenset[str]] | None = None,
        dead: frozenset[str] = frozenset(),
    ) -> None:
        """
        Args:
            known_columns: by dataset node, the columns found in its source.
            dead: keys of edges that bring nothing.
        """
        self.spec = spec
        self.walk = Walk(spec, dead)
        self._known_columns = known_columns
        self._joins: dict[str, Join] = {}
        self._outputs: dict[tuple[str, str], Levels] = {}
        for name in self.walk.order:
            self._joins[name] = join_inputs(self, name, self._receiving_edges(name))
            for port, levels in spec.nodes[name].levels_given(name, self):
                self._outputs[name, port] = levels

    @cached_property
    def names(self) -> Columns:
        """Columns and scores of every table, level by level."""
        return Columns(self, self._known_columns)

    # ---- tables

    def levels(self, node: str, port: str) -> Levels:
        """Levels of the rows that this output gives, or that its scores, log-probs or values refer
        to."""
        return self._outputs.get((node, port), NO_LEVELS)

    def edge_levels(self, edge: Edge) -> Levels:
        return self.levels(edge.source.node, edge.source.port)

    def input_levels(self, node: str) -> Levels:
        return self.join(node).levels

    def join(self, node: str) -> Join:
        return self._joins.get(node, EMPTY_JOIN)

    def later_join(self, node: str) -> Join | None:
        """The join from round 2 on, where edges with `rounds` end at this node."""
        edges = self.walk.row_edges(node)
        if not any(edge.rounds for edge in edges):
            return None
        return join_inputs(self, node, edges)

    def labels_texts(self, node: str) -> bool:
        """Whether a search passes its input rows on, with labels added."""
        return self.levels(node, "rollouts") == self.input_levels(node)

    def brings_texts(self, node: str) -> bool:
        """Whether generated rows, or descendants of them, reach the `rows` input of a node."""
        return any(self._carries_texts(edge) for edge in self.walk.into(node, "rows"))

    def _carries_texts(self, edge: Edge) -> bool:
        source = edge.source.node
        if self.spec.nodes[source].about.outlives_step:
            return bool(self.walk.into(source, "rollouts"))
        levels = self.edge_levels(edge)
        return bool(levels) and all(
            any(
                not above.joined and "credit" in self.spec.nodes[above.node].about.stages
                for above in ancestors(level)
            )
            for level in levels
        )

    def called(self, node: str) -> Levels:
        """Levels of texts that a node generates inside its callers' trajectories."""
        callers = self.walk.callers.get(node, ())
        return NO_LEVELS.union(*(children(node, self.levels(c, "rollouts")) for c in callers))

    def brought(self, edges: Iterable[Edge], port: str | None = None) -> Levels:
        """Levels of rows that these edges bring, or that output `port` of their sources gives."""
        tables = (self.levels(e.source.node, port or e.source.port) for e in edges)
        return NO_LEVELS.union(*tables)

    def rows_of(self, node: str) -> Levels:
        """Levels of the rows that a node gives, else of those that it works on: what its bare id
        means in `group_by` and `gather`."""
        given = {level for port in ROW_OUTPUTS for level in self.levels(node, port)}
        return frozenset(given) if given else self.input_levels(node)

    def births_of(self, node: str) -> frozenset[str]:
        """Nodes in which the rows that a node gives are born (`join`: where siblings were joined),
        and the node itself, under whose name a probe puts rows of its own."""
        levels = self.rows_of(node)
        return frozenset({node, *map(birth, levels)})

    def own_levels(self, node: str) -> Levels:
        """Levels of rows that this node wrote: its rollouts, searches and episodes with its policy,
        buffers of these."""
        return self._own_levels.get(node, NO_LEVELS)

    def writers(self, level: Level) -> frozenset[str]:
        """The policies that wrote rows of this level (a buffer's rows keep theirs)."""
        return self._writers.get(level, frozenset())

    # ---- questions

    def attachment(self, edge: Edge) -> Attachment:
        """How the scores (or log-probs) of an edge reach the rows of its target."""
        receivers, scored = self._receivers(edge), self.edge_levels(edge)
        relation = relate(receivers, scored)
        via = None
        if relation is Relation.SIDE:
            bridge = next(
                above
                for receiver in ordered(receivers)
                for level in ordered(scored)
                if (above := common_ancestor(receiver, level)) is not None
            )
            via = birth(bridge)
        return Attachment(relation=relation, receivers=receivers, scored=scored, via=via)

    def ancestor_at(self, level: Level, node: str, *, least: int = 0) -> Level | None:
        """The nearest ancestor of `level` that is a row of `node`, at least `least` births above (0
        includes the level itself); None if there is none."""
        rows = self.rows_of(node)
        candidates = [
            (births, above)
            for above, births in ancestors(level).items()
            if births >= least and above in rows
        ]
        return min(candidates, key=lambda item: item[0])[1] if candidates else None

    @property
    def regions(self) -> tuple[RoundsRegion, ...]:
        return self.walk.regions

    def region_of(self, node: str) -> RoundsRegion | None:
        return self._region_of.get(node)

    # How rows leave a region of rounds, and where rows of several of its rounds flow.
    #
    #   ask ── alice ──┬─ (ask)          inside: one round at a time
    #                  ├─ exact ── keep  `take: all`: rows of all rounds, from here on
    #                  └─ judge          `take: last`: those of the last one, and what ended before
    #
    # A buffer's rows are new rows and of no round.

    def take(self, edge: Edge) -> Take | None:
        """Which rows an edge out of a region of rounds takes; None where it does not leave one."""
        region = self.region_of(edge.source.node)
        if region is None or self._is_inside(edge, region):
            return None
        if edge.take is not None:
            return edge.take
        about = self.spec.nodes[edge.target.node].about
        is_generate = about.inputs[edge.target.port].phase == "generate"
        return "last" if is_generate or about.takes_last_round else "all"

    def rounds_along(self, edge: Edge) -> frozenset[str]:
        """Names of the regions from which an edge brings rows of several rounds."""
        return self._rounds_along(edge, self._carried)

    def _rounds_along(self, edge: Edge, carried: Mapping[str, frozenset[str]]) -> frozenset[str]:
        region = self.region_of(edge.source.node)
        if region is None:
            return carried.get(edge.source.node, frozenset())
        return frozenset() if self._is_inside(edge, region) else frozenset({region.name})

    def _is_inside(self, edge: Edge, region: RoundsRegion) -> bool:
        """Whether an edge delivers in each round; teaching ports are only served after the last."""
        return edge.target.node in region.nodes and self.walk.moves_rows(edge)

    @cached_property
    def _region_of(self) -> dict[str, RoundsRegion]:
        return {node: region for region in self.regions for node in region.nodes}

    @cached_property
    def _carried(self) -> dict[str, frozenset[str]]:
        """By node, names of the regions from which it has rows of several rounds."""
        carried: dict[str, frozenset[str]] = {}
        for name in self.walk.order if self.regions else ():
            if not self.spec.nodes[name].about.outlives_step:
                edges = [edge for edge in self.walk.forward_edges if edge.target.node == name]
                regions = (self._rounds_along(edge, carried) for edge in edges)
                carried[name] = frozenset().union(*regions)
        return carried

    def writes(self, node: str) -> bool:
        """Whether a node writes text: an actor, or a generative verifier with `rollout`."""
        return self.spec.nodes[node].writes_texts

    def _receiving_edges(self, name: str) -> list[Edge]:
        rows = [edge for edge in self.walk.row_edges(name) if not edge.rounds]
        if rows:
            return rows
        return [edge for edge in self.walk.score_edges(name) if edge.aggregate is None]

    # ---- receivers

    def _receivers(self, edge: Edge) -> Levels:
        name, port = edge.target.node, edge.target.port
        if port == OWN_ROLLOUT_INPUTS:
            return self.own_levels(name)
        node = self.spec.nodes[name]
        apart = node.about.apart_without
        if apart is not None and not self.walk.into(name, apart):
            return self._graded(name, edge)
        return self.join(name).members

    def _graded(self, name: str, edge: Edge) -> Levels:
        """Rows that an `evaluate` without rollouts grades: those scored at `scores`, else those of
        other score edges without `aggregate`."""
        ends = (edge.source, edge.target)
        others = [e for e in self.walk.score_edges(name) if (e.source, e.target) != ends]
        others = [e for e in others if e.aggregate is None]
        grading = [e for e in others if e.target.port == "scores"] or others
        if edge.aggregate is None and (edge.target.port == "scores" or not grading):
            return self.edge_levels(edge)
        return frozenset(level for e in grading for level in self.edge_levels(e))

    @cached_property
    def _writers(self) -> dict[Level, frozenset[str]]:
        writers: dict[Level, set[str]] = {}
        for name in self.spec.nodes:
            if self.writes(name):
                for level in self.levels(name, "rollouts"):
                    writers.setdefault(level, set()).add(name)
        for policy, drivers in self.walk.driven.items():
            for driver in drivers:
                for level in self.levels(driver, "rollouts"):
                    writers.setdefault(level, set()).add(policy)
        buffers = [name for name, node in self.spec.nodes.items() if node.about.outlives_step]
        for _ in buffers:
            for name in buffers:
                holds = writers.setdefault(born(name), set())
                for edge in self.walk.into(name, "rollouts", "scores"):
                    for level in self.edge_levels(edge):
                        holds |= writers.get(level, set())
        return {level: frozenset(names) for level, names in writers.items()}

    @cached_property
    def _own_levels(self) -> dict[str, Levels]:
        by_node: dict[str, set[Level]] = {}
        for level, names in self._writers.items():
            for name in names:
                by_node.setdefault(name, set()).add(level)
        return {name: frozenset(levels) for name, levels in by_node.items()}


class Lineages:
    """The lineage of a loop in each of its phases, without the edges that are dead there."""

    def __init__(self, spec: LoopSpec) -> None:
        self._spec = spec
        self._known: dict[frozenset[str], Lineage] = {}

    def at(self, overrides: Mapping[str, Any]) -> Lineage:
        """The lineage under the values that a phase sets."""
        dead = self._spec.graph.dead_edges(overrides)
        return self._of(dead)

    @cached_property
    def throughout(self) -> Lineage:
        """The lineage over the edges that live in any phase."""
        return self._of(_dead_throughout(self._spec))

    def _of(self, dead: frozenset[str]) -> Lineage:
        if dead not in self._known:
            self._known[dead] = Lineage(self._spec, dead=dead)
        return self._known[dead]


def lineage_throughout(
    spec: LoopSpec, known_columns: Mapping[str, frozenset[str]] | None = None
) -> Lineage:
    """The lineage of a loop over the edges that live in any phase."""
    return Lineage(spec, known_columns, _dead_throughout(spec))


def _dead_throughout(spec: LoopSpec) -> frozenset[str]:
    return frozenset(edge.key for edge in spec.edges if spec.graph.is_dead_throughout(edge))
