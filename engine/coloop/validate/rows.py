"""How many rows a step brings, as far as the spec is certain of it.

A count is exact where every row is bound to come, an upper bound where something may cut rows,
and unknown where rows go round, trees grow, or code decides. The prediction of `estimate` guesses
where this module is silent; a rule that calls something an error must not guess.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from coloop.spec.graph import Edge
from coloop.spec.lineage import Level, Relation
from coloop.spec.nodes import (
    ActorNode,
    BufferNode,
    DatasetNode,
    FilterNode,
    Node,
    PairsNode,
    TemplateNode,
    VerifierNode,
)
from coloop.spec.ports import PORTS
from coloop.validate.facts import Facts, PhaseFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Rows of a table in one step."""

    rows: int | None
    """At most so many; `None`: nobody knows."""
    is_exact: bool = False
    ladder: str = ""
    """How the number comes about, e.g. `32 rows of problems x 8 completions`."""


UNKNOWN: Final = Count(rows=None)
NONE: Final = Count(rows=0, is_exact=True)
Counts = dict[Level, Count]
"""Rows of a table, level by level."""


class RowCounts:
    """Counts of all tables of one phase, each computed once."""

    def __init__(self, facts: Facts, phase: PhaseFacts) -> None:
        self._facts = facts
        self._phase = phase
        self._tables: dict[tuple[str, str], Counts] = {}
        self._looping = {node for region in facts.lineage.regions for node in region.nodes}
        for name in facts.walk.order:
            given = self._given(name, facts.nodes[name])
            for port in PORTS[facts.walk.kinds[name]].outputs:
                levels = facts.lineage.levels(name, port)
                self._tables[name, port] = {level: given.get(level, UNKNOWN) for level in levels}

    def of(self, node: str, port: str) -> Count:
        """Rows that an output gives."""
        return _sum(self._tables.get((node, port), {}).values())

    def of_edge(self, edge: Edge) -> Count:
        """Rows that flow along an edge."""
        return self.of(edge.source.node, edge.source.port)

    def taught(self, node: str, port: str) -> Count:
        """Rows that an update at a teaching port is made of."""
        edges = [e for e in self._facts.walk.into(node, port) if not self._is_dead(e)]
        if port != "rewards":
            return _sum(self.of_edge(edge) for edge in edges)
        own = self._facts.lineage.attachment
        return _largest(
            self.of_edge(edge) if own(edge).relation is Relation.SAME else self.of(node, "rollouts")
            for edge in edges
        )

    def value(self, path: str, written: Any) -> Any:
        """A value in this phase: the phase's own, else what is written."""
        return self._phase.overrides.get(path, written)

    def _is_dead(self, edge: Edge) -> bool:
        return self._facts.is_dead(edge, self._phase)

    def _given(self, name: str, node: Node) -> Counts:
        """Counts of every level that a node gives, new or handed on."""
        if name in self._looping:
            return {}
        rows = self._joined(name)
        match node:
            case DatasetNode():
                return dict.fromkeys(self._levels(name), self._loaded(name, node))
            case BufferNode():
                drawn = self.value(f"nodes.{name}.rows_per_step", node.rows_per_step)
                count = _whole(drawn, f"{drawn} rows of `{name}`")
                return dict.fromkeys(self._levels(name), count)
            case ActorNode() | VerifierNode() if self._facts.lineage.writes(name):
                return {**rows, **self._written(name, node, rows)}
            case TemplateNode() if node.code is not None:
                return {level: _at_most(count) for level, count in rows.items()}
            case FilterNode():
                return self._kept(name, node, rows)
            case PairsNode():
                return dict.fromkeys(self._levels(name), self._paired(name, node))
            case _:
                return rows

    def _levels(self, name: str) -> Iterable[Level]:
        ports = PORTS[self._facts.walk.kinds[name]].outputs
        return {level for port in ports for level in self._facts.lineage.levels(name, port)}

    def _loaded(self, name: str, node: DatasetNode) -> Count:
        rows = self.value(f"nodes.{name}.rows_per_step", node.rows_per_step)
        if rows is None and node.source.type == "inline":
            rows = len(node.source.rows)
        return UNKNOWN if node.unfold is not None else _whole(rows, f"{rows} rows of `{name}`")

    def _written(self, name: str, node: ActorNode | VerifierNode, rows: Counts) -> Counts:
        each = self._completions(name)
        found: Counts = {}
        for level in self._facts.lineage.levels(name, "rollouts"):
            above = rows.get(level.parents[0]) if level.parents else None
            if above is None or above.rows is None or each is None:
                found[level] = UNKNOWN
                continue
            ladder = f"{above.ladder or above.rows} x {each} completions"
            found[level] = replace(above, rows=above.rows * each, ladder=ladder)
        return found

    def _completions(self, name: str) -> int | None:
        rollout = self._facts.rollout(name)
        if rollout is None:
            return None
        path = f"nodes.{name}.rollout.completions_per_prompt"
        each = self.value(path, rollout.completions_per_prompt)
        return each if isinstance(each, int) else None

    def _kept(self, name: str, node: FilterNode, rows: Counts) -> Counts:
        if node.fill is not None:
            return {level: self._filled(name, node, count) for level, count in rows.items()}
        if node.up_to is not None:
            return {level: Count(rows=node.up_to) for level in rows}
        if node.resample is not None:
            drawn = node.resample.rows
            return {lv: replace(c, rows=drawn) if drawn else c for lv, c in rows.items()}
        cuts = bool(node.keep) or node.per_group is not None
        return {level: _at_most(c) for level, c in rows.items()} if cuts else rows

    def _filled(self, name: str, node: FilterNode, count: Count) -> Count:
        fill = node.fill
        assert fill is not None
        each = self._group_size(name)
        if isinstance(fill.groups, int) and fill.surplus == "drop" and each is not None:
            ladder = f"{fill.groups} groups x {each} completions"
            exact = node.per_group is None
            return Count(rows=fill.groups * each, is_exact=exact, ladder=ladder)
        if fill.rows is not None and fill.surplus == "drop":
            return Count(rows=fill.rows)
        return Count(rows=None if count.rows is None else count.rows * fill.max_rounds)

    def _group_size(self, name: str) -> int | None:
        """Rows that the one writer before a node writes for each prompt."""
        lineage = self._facts.lineage
        writers = {w for level in lineage.input_levels(name) for w in lineage.writers(level)}
        return self._completions(next(iter(writers))) if len(writers) == 1 else None

    def _paired(self, name: str, node: PairsNode) -> Count:
        counts = [self.of_edge(edge) for edge in self._facts.walk.row_edges(name)]
        if node.method in ("direct", "relabel"):
            return _at_most(_largest(counts))
        rows, each = _sum(counts).rows, self._group_size(name)
        if rows is None or not each:
            return UNKNOWN
        pairs = 1 if node.method == "best_worst" else each * (each - 1) // 2
        return Count(rows=rows // each * pairs)

    def _joined(self, name: str) -> Counts:
        """Counts of a node's join: those of the lowest input, for each level that comes out."""
        join = self._facts.lineage.join(name)
        if join.levels != join.members:
            return {}
        parts: dict[Level, list[Count]] = {}
        for level, inputs in join.parts:
            alive = [(edge, one) for edge, one in inputs if not self._is_dead(edge)]
            if alive:
                lowest = [self._at(edge, one) for edge, one in alive if one == level]
                parts.setdefault(level, []).append(_smallest(lowest or [UNKNOWN]))
        return {level: _largest(counts) for level, counts in parts.items()}

    def _at(self, edge: Edge, level: Level) -> Count:
        return self._tables.get((edge.source.node, edge.source.port), {}).get(level, UNKNOWN)


def _whole(rows: Any, ladder: str) -> Count:
    return Count(rows=rows, is_exact=True, ladder=ladder) if isinstance(rows, int) else UNKNOWN


def _at_most(count: Count) -> Count:
    return replace(count, is_exact=False)


def _sum(counts: Iterable[Count]) -> Count:
    parts = list(counts)
    if len(parts) == 1:
        return parts[0]
    total = 0
    for part in parts:
        if part.rows is None:
            return UNKNOWN
        total += part.rows
    ladder = " + ".join(part.ladder for part in parts if part.ladder)
    return Count(rows=total, is_exact=all(part.is_exact for part in parts), ladder=ladder)


def _largest(counts: Iterable[Count]) -> Count:
    parts = list(counts)
    if any(part.rows is None for part in parts):
        return UNKNOWN
    return max(parts, key=lambda part: part.rows or 0, default=NONE)


def _smallest(counts: list[Count]) -> Count:
    known = [count for count in counts if count.rows is not None]
    if not known:
        return UNKNOWN
    least = min(known, key=lambda count: count.rows or 0)
    exact = len(known) == len(counts) and all(count.is_exact for count in known)
    return replace(least, is_exact=exact)
