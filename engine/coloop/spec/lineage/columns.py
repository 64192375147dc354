"""Columns and scores that every table of a loop can give, followed along the levels.

A buffer's rows and a later round's rows depend on what comes after them in the graph, so tables are
computed in passes until nothing changes, at most `MOST_PASSES` times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.levels import Level, Relation, ancestors, match
from coloop.spec.lineage.walk import ROW_OUTPUTS
from coloop.spec.names import ANYTHING, NOTHING, ROLLOUT_COLUMNS, Names, NamesOf, merged, shared

if TYPE_CHECKING:
    from coloop.spec.lineage.lineage import Join, Lineage

MOST_PASSES: Final = 6


class Columns:
    """Names of every table.

    Args:
        known: by dataset node, the columns found in its source.
        stand_ins: nodes whose rows a probe replaces, with the columns of the probe's rows.
    """

    def __init__(
        self,
        lineage: Lineage,
        known: Mapping[str, frozenset[str]] | None = None,
        stand_ins: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.lineage = lineage
        self.spec: LoopSpec = lineage.spec
        self.walk = lineage.walk
        self.known = known or {}
        self._stand_ins = stand_ins or {}
        self._outputs: dict[tuple[str, str], NamesOf] = {}
        self._inputs: dict[str, NamesOf] = {}
        self._buffers: dict[str, Names] = {
            name: ANYTHING for name, node in self.spec.nodes.items() if node.about.outlives_step
        }
        self._closing: dict[int, NamesOf] = {}
        for _ in range(MOST_PASSES):
            self._run_pass()
            buffers = {name: self._buffer_names(name) for name in self._buffers}
            closing = {
                id(edge): self.of_edge(edge) for region in lineage.regions for edge in region.edges
            }
            if buffers == self._buffers and closing == self._closing:
                break
            self._buffers, self._closing = buffers, closing

    def at(self, node: str, port: str) -> NamesOf:
        """Names, by level, of the rows that an output gives or that its scores refer to."""
        return self._outputs.get((node, port), {})

    def of_edge(self, edge: Edge) -> NamesOf:
        return self.at(edge.source.node, edge.source.port)

    def inputs(self, node: str) -> NamesOf:
        """Names of the rows that a node works on, after its join, over all rounds."""
        return self._inputs.get(node, {})

    # ---- one pass

    def _run_pass(self) -> None:
        self._outputs.clear()
        for name in self.walk.order:
            self._inputs[name] = self._joined(name)
            columns = self._stand_ins.get(name)
            for port, table in self.spec.nodes[name].columns_given(name, self):
                if columns is not None:
                    table = {level: NOTHING.own(name, columns, level) for level in table}
                self._outputs[name, port] = table

    def _joined(self, name: str) -> NamesOf:
        join = self.lineage.join(name)
        names = self._names_of_join(name, join)
        later = self.lineage.later_join(name)
        if later is not None:
            names = self._with_later_rounds(names, self._names_of_join(name, later))
        return names

    def _names_of_join(self, name: str, join: Join) -> NamesOf:
        parts: dict[Level, list[Names]] = {}
        for level, inputs in join.parts:
            tables = [
                self._part(edge, above).below(ancestors(level).get(above, 0))
                for edge, above in inputs
            ]
            if tables:
                parts.setdefault(level, []).append(merged(tables))
        names = {level: shared(tables) for level, tables in parts.items()}
        for edge in self.walk.score_edges(name):
            names = self._with_scores(names, edge)
        if join.levels == join.members:
            return names
        return {
            level: shared([names[m].below(1) for m in level.parents if m in names] or [NOTHING])
            for level in join.levels
        }

    def _part(self, edge: Edge, level: Level) -> Names:
        table = self._closing.get(id(edge), {}) if edge.rounds else self.of_edge(edge)
        return table.get(level, NOTHING)

    def _with_scores(self, names: NamesOf, edge: Edge) -> NamesOf:
        """`names` with the scores of an edge, and its columns if it scores these or ancestors."""
        table = self.of_edge(edge)
        scorers = {edge.source.node}.union(*(part.scores for part in table.values()))
        with_scores: NamesOf = {}
        for level, part in names.items():
            relation, scored = match(level, frozenset(table))
            if relation in (Relation.SAME, Relation.DOWN):
                above = ancestors(level)
                brought = [
                    table[scored_level].below(above[scored_level]) for scored_level in scored
                ]
                part = merged([part, *brought])
            with_scores[level] = part.with_scores(scorers)
        return with_scores

    @staticmethod
    def _with_later_rounds(first: NamesOf, later: NamesOf) -> NamesOf:
        """Names of round 1, plus those that the closing edge may add in later rounds."""
        if not later:
            return first
        extra = merged(list(later.values()))
        table: NamesOf = {}
        for level, part in first.items():
            both = merged([part, extra])
            bare = {**both.bare, **part.bare}
            table[level] = replace(both, bare=bare, hidden=part.hidden - bare.keys())
        return table

    # ---- what kinds ask for

    def rollouts(self, name: str) -> NamesOf:
        names = self.inputs(name)
        table: NamesOf = {}
        for level in self.lineage.levels(name, "rollouts"):
            parent = level.parents[0] if level.parents else level
            above = names.get(parent)
            if above is None:
                callers = self.walk.callers.get(name, ())
                above = next(
                    (t[parent] for c in callers if parent in (t := self.at(c, "rollouts"))), NOTHING
                )
            own = above.below(1).own(name, ROLLOUT_COLUMNS, level)
            # environments add columns under their own name
            tools = {edge.source.node: None for edge in self.walk.into(name, "tools")}
            table[level] = replace(own, exact={**own.exact, **tools})
        return table

    def per_row(self, name: str, table: NamesOf) -> NamesOf:
        """`table` by the levels that a node's scores refer to; merged if it lacks any of them."""
        levels = self.lineage.levels(name, "scores")
        if levels <= table.keys():
            return table
        whole = merged(list(table.values())) if table else NOTHING
        return dict.fromkeys(levels, whole)

    def kept(self, name: str) -> Names:
        """Names of the rows that a buffer keeps."""
        return self._buffers[name]

    def of_edges(self, edges: Iterable[Edge]) -> NamesOf:
        table: NamesOf = {}
        for edge in edges:
            for level, part in self.of_edge(edge).items():
                table[level] = merged([table[level], part]) if level in table else part
        return table

    def _buffer_names(self, name: str) -> Names:
        ports: dict[str, list[Names]] = {}
        for edge in self.walk.into(name, *ROW_OUTPUTS, "scores", "seed"):
            ports.setdefault(edge.target.port, []).extend(self.of_edge(edge).values())
        rows = [part for port, parts in ports.items() if port != "scores" for part in parts]
        scored = ports.get("scores", [])
        if not rows:
            return shared(scored) if scored else NOTHING
        names = shared(rows)
        return merged([names, shared(scored)]) if scored else names
