"""Levels of every port of a loop, and how each score edge reaches the rows that receive it.

Everything is decided here from the spec alone, never per row: the runtime asks this module which way an
edge runs and only then looks at rows. Nodes are visited in the order of the walk, so nothing recurses and
a half-drawn graph (missing edges, cycles) gives empty sets instead of errors.

Invariants:
- A node's levels are those of round 1; a rounds region does not deepen them.
- Where a node has row inputs, only these make the rows that it works on; scores have to reach them.
  Without row inputs the scored rows themselves are its rows, save those of edges with `aggregate`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from coloop.spec.lineage.inputs import (
    ALWAYS_CONCAT,
    OWN_ROLLOUT_INPUTS,
    ROW_OUTPUTS,
)
from coloop.spec.lineage.levels import (
    JOINED,
    NO_LEVELS,
    Level,
    Levels,
    Relation,
    align,
    ancestors,
    born,
    common_ancestor,
    gathered,
    join_levels,
    match,
    ordered,
    relate,
)
from coloop.spec.lineage.walk import RoundsRegion, Walk
from coloop.spec.loop import Edge, LoopSpec
from coloop.spec.nodes import Node
from coloop.spec.training import Gather


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """How the scores of one edge reach the rows that receive them."""

    relation: Relation
    """The nearest relation of any receiving level to any scored level."""
    receivers: Levels
    scored: Levels
    via: str | None = None
    """`side`: the node whose rows are the nearest common ancestors (`join` for joined rows)."""

    @property
    def rises(self) -> bool:
        """Whether scores have to go up somewhere, so that the edge needs an `aggregate`."""
        return self.relation in (Relation.UP, Relation.SIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The rows that one node works on."""

    levels: Levels
    """Levels of the rows after the join."""
    members: Levels
    """The same before rows were gathered; equal to `levels` without `gather`."""
    apart: tuple[Edge, Edge] | None = None
    """Two inputs that share no ancestor, though the join needs one."""
    gather_missing: Levels = NO_LEVELS
    """Levels that have no ancestor at the node by which they should be gathered."""


EMPTY_JOIN = Join(levels=NO_LEVELS, members=NO_LEVELS)


class Lineage:
    """Which table's rows descend from which; built by `compute_lineage`."""

    def __init__(self, spec: LoopSpec) -> None:
        self.spec = spec
        self.walk = Walk(spec)
        self._joins: dict[str, Join] = {}
        self._outputs: dict[tuple[str, str], Levels] = {}
        for name in self.walk.order:
            node = spec.nodes[name]
            join = self._join(name, node, self._receiving_edges(name))
            self._joins[name] = join
            for port, levels in self._written(name, node, join):
                self._outputs[name, port] = levels

    # ---- tables

    def levels(self, node: str, port: str) -> Levels:
        """Levels of the rows that this output gives, or that its scores, log-probs or values are of."""
        return self._outputs.get((node, port), NO_LEVELS)

    def edge_levels(self, edge: Edge) -> Levels:
        """Levels of what flows along an edge."""
        return self.levels(edge.source.node, edge.source.port)

    def input_levels(self, node: str) -> Levels:
        """Levels of the rows that a node works on, after its join."""
        return self.join(node).levels

    def join(self, node: str) -> Join:
        """The join at a node, with what is wrong with it."""
        return self._joins.get(node, EMPTY_JOIN)

    def later_join(self, node: str) -> Join | None:
        """The join from round 2 on, where edges with `rounds` end at this node."""
        edges = self.walk.row_edges(node)
        if not any(edge.rounds for edge in edges):
            return None
        return self._join(node, self.spec.nodes[node], edges)

    def rows_of(self, node: str) -> Levels:
        """Levels of the rows that a node hands on: what its bare id means in `group_by` and `gather`."""
        found = {level for port in ROW_OUTPUTS for level in self.levels(node, port)}
        return frozenset(found) if found else self.input_levels(node)

    def own_levels(self, node: str) -> Levels:
        """Levels of rows that this node wrote: its rollouts, searches with its policy, buffers of both."""
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
                level
                for receiver in ordered(receivers)
                for one in ordered(scored)
                if (level := common_ancestor(receiver, one)) is not None
            )
            via = JOINED if bridge.joined else bridge.node
        return Attachment(relation=relation, receivers=receivers, scored=scored, via=via)

    def ancestor_at(self, level: Level, node: str) -> Level | None:
        """The nearest ancestor of `level` (or the level itself) that is a row of `node`."""
        rows = self.rows_of(node)
        found = [(away, one) for one, away in ancestors(level).items() if one in rows]
        return min(found, key=lambda item: item[0])[1] if found else None

    @staticmethod
    def relate(receivers: Levels, scored: Levels) -> Relation:
        """Where a scored table stands, seen from the receivers; see `levels.relate`."""
        return relate(receivers, scored)

    @staticmethod
    def match(receiver: Level, scored: Levels) -> tuple[Relation, Levels]:
        """The relation that counts for one receiving level; see `levels.match`."""
        return match(receiver, scored)

    @staticmethod
    def common_ancestor(a: Level, b: Level) -> Level | None:
        """The nearest level from which both descend."""
        return common_ancestor(a, b)

    @property
    def regions(self) -> tuple[RoundsRegion, ...]:
        """The parts of the graph that run for several rounds."""
        return self.walk.regions

    def region_of(self, node: str) -> RoundsRegion | None:
        """The rounds region that holds a node."""
        return next((region for region in self.regions if node in region.nodes), None)

    def writes(self, node: str) -> bool:
        """Whether a node writes text: an actor, or a generative verifier with `rollout`."""
        section = self.spec.nodes[node]
        match section.kind:
            case "actor":
                return True
            case "verifier":
                return section.method == "generative" and section.rollout is not None
            case _:
                return False

    # ---- joins

    def _receiving_edges(self, name: str) -> list[Edge]:
        """Edges that make the rows of a node in round 1."""
        rows = [edge for edge in self.walk.row_edges(name) if not edge.rounds]
        if rows:
            return rows
        return [edge for edge in self.walk.score_edges(name) if edge.aggregate is None]

    def _join(self, name: str, node: Node, edges: list[Edge]) -> Join:
        tables = [(edge, levels) for edge in edges if (levels := self.edge_levels(edge))]
        if not tables:
            return EMPTY_JOIN
        mode = "concat" if node.kind in ALWAYS_CONCAT else getattr(node, "join", None) or "align"
        if mode == "concat" or self._grades_tables_apart(node, tables):
            levels = frozenset(level for _, table in tables for level in table)
            return Join(levels=levels, members=levels)
        parts = self._sides(name) if node.kind == "pairs" else []
        combinations, index = align(parts or [table for _, table in tables])
        apart = None if index is None else _neighbours(tables, index, bool(parts))
        levels = frozenset(join_levels(combination) for combination in combinations)
        if isinstance(mode, Gather):
            return self._gather(mode.gather, levels, apart)
        return Join(levels=levels, members=levels, apart=apart)

    @staticmethod
    def _grades_tables_apart(node: Node, tables: list[tuple[Edge, Levels]]) -> bool:
        """An `evaluate` without rollouts measures each score table for itself."""
        return node.kind == "evaluate" and all(edge.target.port != "rollouts" for edge, _ in tables)

    def _gather(self, by: str, members: Levels, apart: tuple[Edge, Edge] | None) -> Join:
        found: dict[Level, list[Level]] = {}
        missing: set[Level] = set()
        for level in ordered(members):
            above = self._gathering_level(level, by)
            if above is None:
                missing.add(level)
            else:
                found.setdefault(above, []).append(level)
        levels = frozenset(gathered(above.node, tuple(below)) for above, below in found.items())
        return Join(levels=levels, members=members, apart=apart, gather_missing=frozenset(missing))

    def _gathering_level(self, level: Level, by: str) -> Level | None:
        if by == "parent":
            return level.parents[0] if level.parents else None
        rows = self.rows_of(by) if by in self.spec.nodes else NO_LEVELS
        found = [(away, one) for one, away in ancestors(level).items() if away and one in rows]
        return min(found, key=lambda item: item[0])[1] if found else None

    # ---- what each kind gives

    def _written(self, name: str, node: Node, join: Join) -> Iterable[tuple[str, Levels]]:
        rows = join.levels
        match node.kind:
            case "dataset":
                root = born(name) if node.unfold is None else born(name, born(name))
                yield "rows", frozenset({root})
                yield "pairs", frozenset({root})
            case "actor":
                written = self._children(name, rows) | self._called(name)
                yield "rollouts", written
                yield "returns", written
            case "critic":
                yield "values", rows
            case "reference":
                yield "log_probs", rows
            case "reward":
                yield "scores", join.members if node.per == "row" else rows
            case "verifier":
                if self.writes(name):
                    rows = self._children(name, rows) | self._called(name)
                    yield "rollouts", rows
                elif node.per == "row":
                    rows = join.members
                yield "scores", rows
                yield "step_scores", rows
            case "template":
                yield "rows", rows if node.each is None else self._children(name, rows)
            case "filter":
                yield from self._kept(name, rows)
            case "pairs":
                yield "pairs", self._paired(name, node.method, rows)
            case "buffer":
                root = frozenset({born(name)})
                for port in ("rows", "rollouts", "pairs", "scores"):
                    yield port, root
            case "tool":
                policies = [e.source.node for e in self.walk.into(name, "policy")]
                yield (
                    "rollouts",
                    frozenset(
                        level for policy in policies for level in self.levels(policy, "rollouts")
                    ),
                )
            case "search":
                grown = (
                    rows if self._labels_texts(name, node.method) else self._children(name, rows)
                )
                yield "rollouts", grown
                yield "step_scores", grown
                yield "scores", rows if node.method == "and_or" else grown

    @staticmethod
    def _children(name: str, rows: Levels) -> Levels:
        return frozenset(born(name, level) for level in rows)

    def _called(self, name: str) -> Levels:
        """Rows that a policy writes inside another's trajectory: children of the caller's."""
        return frozenset(
            born(name, level)
            for caller in self.walk.callers.get(name, ())
            for level in self._written_by_caller(caller)
        )

    def _written_by_caller(self, caller: str) -> Levels:
        return self.levels(caller, "rollouts")

    def _kept(self, name: str, rows: Levels) -> Iterable[tuple[str, Levels]]:
        spare = frozenset(
            level for edge in self.walk.into(name, "spare") for level in self.edge_levels(edge)
        )
        for port in ROW_OUTPUTS:
            edges = self.walk.into(name, port)
            if edges:
                kept = frozenset(level for edge in edges for level in self.edge_levels(edge))
                yield port, kept | spare
        if self.walk.into(name, "scores"):
            yield "scores", rows | spare

    def _paired(self, name: str, method: str, rows: Levels) -> Levels:
        match method:
            case "direct":
                sides = self._sides(name)
                if not all(sides):
                    return NO_LEVELS
                combinations, _ = align(sides)
                return frozenset(born(name, *combination) for combination in combinations)
            case "relabel":
                return frozenset(
                    born(name, *(level.parents if len(level.parents) == 2 else (level,)))
                    for level in rows
                )
            case _:
                return frozenset(born(name, level, level) for level in rows)

    def _sides(self, name: str) -> list[Levels]:
        """What a `direct` pairs node sets against each other; empty for the other methods."""
        return [
            frozenset(lv for edge in self.walk.into(name, port) for lv in self.edge_levels(edge))
            for port in self.walk.row_inputs(name)
            if port in ("chosen", "rejected")
        ]

    def _labels_texts(self, name: str, method: str) -> bool:
        """Whether a search labels texts that are there already instead of growing new ones."""
        edges = self.walk.into(name, "rows")
        return method in ("monte_carlo", "binary_search") and any(
            self.carries_texts(edge) for edge in edges
        )

    def carries_texts(self, edge: Edge) -> bool:
        """Whether the rows of an edge have a completion: rollouts, or rows that descend from some."""
        source = self.spec.nodes[edge.source.node]
        if edge.source.port == "rollouts" or source.kind == "buffer":
            return bool(self.walk.into(edge.source.node, "rollouts")) or source.kind != "buffer"
        return all(
            any(self._writes_level(one) for one in ancestors(level))
            for level in self.edge_levels(edge)
        )

    def _writes_level(self, level: Level) -> bool:
        return not level.joined and self.spec.nodes[level.node].kind in ("actor", "verifier")

    # ---- receivers

    def _receivers(self, edge: Edge) -> Levels:
        name, port = edge.target.node, edge.target.port
        if port == OWN_ROLLOUT_INPUTS:
            return self.own_levels(name)
        node = self.spec.nodes[name]
        if node.kind == "evaluate" and not self.walk.into(name, "rollouts"):
            return self._graded(name, edge)
        return self.join(name).members

    def _graded(self, name: str, edge: Edge) -> Levels:
        """What an `evaluate` without rollouts grades: its `scores` tables, or for an edge with
        `aggregate` whatever else is there without one."""
        others = [e for e in self.walk.score_edges(name) if e.aggregate is None and e is not edge]
        grading = [e for e in others if e.target.port == "scores"] or others
        if edge.aggregate is None and (edge.target.port == "scores" or not grading):
            return self.edge_levels(edge)
        return frozenset(level for e in grading for level in self.edge_levels(e))

    @cached_property
    def _writers(self) -> dict[Level, frozenset[str]]:
        found: dict[Level, set[str]] = {}
        for name in self.spec.nodes:
            if self.writes(name):
                for level in self.levels(name, "rollouts"):
                    found.setdefault(level, set()).add(name)
        for policy, searches in self.walk.driven.items():
            for search in searches:
                for level in self.levels(search, "rollouts"):
                    found.setdefault(level, set()).add(policy)
        buffers = [name for name, node in self.spec.nodes.items() if node.kind == "buffer"]
        for _ in buffers:
            for name in buffers:
                holds = found.setdefault(born(name), set())
                for edge in self.walk.into(name, "rollouts", "scores"):
                    for level in self.edge_levels(edge):
                        holds |= found.get(level, set())
        return {level: frozenset(names) for level, names in found.items()}

    @cached_property
    def _own_levels(self) -> dict[str, Levels]:
        found: dict[str, set[Level]] = {}
        for level, names in self._writers.items():
            for name in names:
                found.setdefault(name, set()).add(level)
        return {name: frozenset(levels) for name, levels in found.items()}


def _neighbours(
    tables: list[tuple[Edge, Levels]], index: int, is_direct: bool
) -> tuple[Edge, Edge]:
    """The two edges to name where a join found no common ancestor."""
    if is_direct:
        sides = {edge.target.port: edge for edge, _ in reversed(tables)}
        return sides["chosen"], sides["rejected"]
    return tables[index - 1][0], tables[index][0]
