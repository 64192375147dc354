"""Columns and scores that every table of a loop can give, followed along the levels.

A buffer's rows and a later round's rows depend on what comes after them in the graph. So tables
are computed in passes: at first a buffer is taken to give anything and a closing edge of rounds
nothing, then each pass starts from what the one before found, until nothing changes.

Invariant: a name that `Names` denies can be given by no ancestor in any round.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage.descent import Descent
from coloop.spec.lineage.inputs import ROW_OUTPUTS
from coloop.spec.lineage.joins import Join
from coloop.spec.lineage.levels import Level, Relation, ancestors, match
from coloop.spec.lineage.names import ANYTHING, NOTHING, Found, Names, merged, rooted, shared
from coloop.spec.lineage.written import (
    ROLLOUT_COLUMNS,
    TREE_COLUMNS,
    dataset_columns,
    pair_columns,
    template_columns,
)
from coloop.spec.nodes import DatasetNode, Node, PairsNode, SearchNode, TemplateNode

NamesOf = dict[Level, Names]
"""Names of a table's rows, level by level."""

MOST_PASSES: Final = 6


class Columns:
    """Names of every table; see the module. `known`: columns of sources that were looked into.

    `stand_ins`: nodes in whose place a probe puts rows of its own, with the columns of these.
    """

    def __init__(
        self,
        lineage: Descent,
        known: Mapping[str, frozenset[str]] | None = None,
        stand_ins: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.lineage = lineage
        self.spec: LoopSpec = lineage.spec
        self.walk = lineage.walk
        self._known = known or {}
        self._stand_ins = stand_ins or {}
        self._outputs: dict[tuple[str, str], NamesOf] = {}
        self._inputs: dict[str, NamesOf] = {}
        self._buffers: dict[str, Names] = {
            name: ANYTHING for name, node in self.spec.nodes.items() if node.kind == "buffer"
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
        """Names of the rows that an output gives or speaks of, level by level."""
        return self._outputs.get((node, port), {})

    def of_edge(self, edge: Edge) -> NamesOf:
        """Names of what flows along an edge."""
        return self.at(edge.source.node, edge.source.port)

    def inputs(self, node: str) -> NamesOf:
        """Names of the rows that a node works on, after its join, in whatever round."""
        return self._inputs.get(node, {})

    def given(self, node: str, port: str) -> frozenset[str]:
        """Bare and dotted names that every part of this output's rows can give."""
        tables = list(self.at(node, port).values())
        if not tables:
            return frozenset()
        names = shared(tables)
        dotted = {f"{n}.{c}" for n, columns in names.exact.items() for c in columns or ()}
        return frozenset(names.bare) | names.scores | dotted

    # ---- one pass

    def _run_pass(self) -> None:
        self._outputs.clear()
        for name in self.walk.order:
            node = self.spec.nodes[name]
            names = self._joined(name)
            self._inputs[name] = names
            columns = self._stand_ins.get(name)
            for port, table in self._written(name, node, names):
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
                self._part(edge, one).below(ancestors(level).get(one, 0)) for edge, one in inputs
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
        """Scores of an edge, and the columns of the rows that they bring along from here or
        above."""
        table = self.of_edge(edge)
        scorers = {edge.source.node}.union(*(part.scores for part in table.values()))
        found: NamesOf = {}
        for level, part in names.items():
            relation, scored = match(level, frozenset(table))
            if relation in (Relation.SAME, Relation.DOWN):
                above = ancestors(level)
                brought = [table[one].below(above[one]) for one in scored]
                part = merged([part, *brought])
            found[level] = part.with_scores(scorers)
        return found

    @staticmethod
    def _with_later_rounds(first: NamesOf, later: NamesOf) -> NamesOf:
        """In round 1 the closing edge brings nothing; what it brings later may be absent, no
        more."""
        if not later:
            return first
        extra = merged(list(later.values()))
        found: NamesOf = {}
        for level, part in first.items():
            both = merged([part, extra])
            bare = {**both.bare, **part.bare}
            found[level] = replace(both, bare=bare, hidden=part.hidden - bare.keys())
        return found

    # ---- what each kind gives

    def _written(self, name: str, node: Node, names: NamesOf) -> Iterable[tuple[str, NamesOf]]:
        match node.kind:
            case "dataset":
                table = self._loaded(name, node)
                yield "rows", table
                yield "pairs", table
            case "actor":
                table = self._rollouts(name, names)
                yield "rollouts", table
                yield "returns", table
            case "critic":
                yield "values", names
            case "reference":
                yield "log_probs", names
            case "reward":
                table = {level: part.with_scores([name]) for level, part in names.items()}
                yield "scores", self._per_row(name, table)
            case "verifier":
                table = self._rollouts(name, names) if self.lineage.writes(name) else names
                table = {level: part.with_scores([name]) for level, part in table.items()}
                yield "rollouts", table
                yield "scores", self._per_row(name, table)
                yield "step_scores", self._per_row(name, table)
            case "template":
                yield "rows", self._templated(name, node, names)
            case "filter":
                yield from self._kept(name, names)
            case "pairs":
                yield "pairs", self._paired(name, node, names)
            case "buffer":
                root = next(iter(self.lineage.levels(name, "rows")))
                table = {root: rooted(self._buffers[name], name, root)}
                for port in (*ROW_OUTPUTS, "scores"):
                    yield port, table
            case "tool":
                for edge in self.walk.into(name, "policy"):
                    yield "rollouts", self.at(edge.source.node, "rollouts")
            case "search":
                yield from self._searched(name, node, names)

    def _loaded(self, name: str, node: DatasetNode) -> NamesOf:
        root = next(iter(self.lineage.levels(name, "rows")))
        columns = self._known.get(name) or dataset_columns(node)
        names = NOTHING.own(name, columns if columns is not None else node.columns, root)
        return {root: names if columns is not None else names.opened(name)}

    def _rollouts(self, name: str, names: NamesOf) -> NamesOf:
        table: NamesOf = {}
        for level in self.lineage.levels(name, "rollouts"):
            parent = level.parents[0] if level.parents else level
            above = names.get(parent)
            if above is None:
                callers = self.walk.callers.get(name, ())
                above = next(
                    (t[parent] for c in callers if parent in (t := self.at(c, "rollouts"))), NOTHING
                )
            table[level] = self._with_tools(name, above.below(1).own(name, ROLLOUT_COLUMNS, level))
        return table

    def _with_tools(self, name: str, names: Names) -> Names:
        """Environments add columns under their own name."""
        tools = {edge.source.node: None for edge in self.walk.into(name, "tools")}
        return replace(names, exact={**names.exact, **tools})

    def _per_row(self, name: str, table: NamesOf) -> NamesOf:
        levels = self.lineage.levels(name, "scores")
        if levels <= table.keys():
            return table
        whole = merged(list(table.values())) if table else NOTHING
        return dict.fromkeys(levels, whole)

    def _templated(self, name: str, node: TemplateNode, names: NamesOf) -> NamesOf:
        columns = template_columns(node)
        table: NamesOf = {}
        for level, part in names.items():
            target = level
            if node.each is not None:
                target = next(
                    lv for lv in self.lineage.levels(name, "rows") if lv.parents == (level,)
                )
                part = part.below(1)
            part = part.dropped(node.drop)
            written = part.own(name, columns or (), target)
            table[target] = written if columns is not None else written.opened(name)
        return table

    def _kept(self, name: str, names: NamesOf) -> Iterable[tuple[str, NamesOf]]:
        spare: NamesOf = {}
        for edge in self.walk.into(name, "spare"):
            spare.update(self.of_edge(edge))
        for port in ROW_OUTPUTS:
            edges = self.walk.into(name, port)
            if edges:
                table = {
                    level: merged([part, names[level]]) if level in names else part
                    for edge in edges
                    for level, part in self.of_edge(edge).items()
                }
                yield port, _put_together(table, spare)
        if self.walk.into(name, "scores"):
            yield "scores", _put_together(names, spare)

    def _paired(self, name: str, node: PairsNode, names: NamesOf) -> NamesOf:
        table: NamesOf = {}
        judged = self.walk.into(name, "preference" if node.method == "relabel" else "scores")
        written = pair_columns(node, is_judged=bool(judged))
        sides = self._side_names(name) if node.method == "direct" else names
        for level in self.lineage.levels(name, "pairs"):
            parents = [sides[one].below(1) for one in level.parents if one in sides]
            if node.method == "relabel":
                parents = list(names.values())
            table[level] = _of_pair(level, merged(parents or [NOTHING])).own(name, written, level)
        return table

    def _side_names(self, name: str) -> NamesOf:
        found: NamesOf = {}
        for edge in self.walk.into(name, "chosen", "rejected"):
            for level, part in self.of_edge(edge).items():
                found[level] = merged([found[level], part]) if level in found else part
        return found

    def _searched(
        self, name: str, node: SearchNode, names: NamesOf
    ) -> Iterable[tuple[str, NamesOf]]:
        own = TREE_COLUMNS if node.method in ("puct", "and_or") else ROLLOUT_COLUMNS
        for port in ("rollouts", "step_scores", "scores"):
            table: NamesOf = {}
            for level in self.lineage.levels(name, port):
                if level in names:
                    table[level] = names[level].with_scores([name])
                else:
                    above = names.get(level.parents[0], NOTHING) if level.parents else NOTHING
                    grown = above.below(1).own(name, own, level)
                    table[level] = grown.with_scores([name])
            yield port, table

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


def _put_together(table: NamesOf, spare: NamesOf) -> NamesOf:
    return {**spare, **table}


def _of_pair(level: Level, names: Names) -> Names:
    """Columns that the two sides have each for itself are ambiguous, also where both sides are
    siblings of one level."""
    if len(set(level.parents)) != 1 or len(level.parents) != 2:
        return names
    side = level.parents[0]
    other = Level(f"{side.node} beside", side.parents)
    bare = {
        name: Found(found.distance, found.rows | {other}) if side in found.rows else found
        for name, found in names.bare.items()
    }
    return replace(names, bare=bare)
