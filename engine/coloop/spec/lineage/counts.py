"""How many rows each table has in a step: as certain as the spec allows, and on average.

A count is exact if every row is sure to come, an upper bound if something may drop rows, and
unknown if trees grow or code decides. After a rounds region only the rows of the first round are
certain. The mean is a guess: `estimate` uses it, but no error may depend on it. Checks, plan and
run count over the edges that deliver in one phase, `estimate` over those of all phases, with the
lengths of texts.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import prod
from typing import Any

from coloop.spec.graph import Edge
from coloop.spec.groups import observed_tokens, reasons
from coloop.spec.levels import Level, Levels, Relation, ancestors, common_ancestor, ordered
from coloop.spec.lineage.lineage import Lineage
from coloop.spec.lineage.walk import ALWAYS_CONCAT, RoundsRegion, Walk, multiplied
from coloop.spec.ports import PORTS, PortType
from coloop.spec.reading import PromptTemplate
from coloop.spec.rollout import Rollout
from coloop.spec.row_counts import (
    NONE,
    UNKNOWN,
    Count,
    Counts,
    add_up,
    at_most,
    largest,
    of_all_rounds,
    repeated,
    smallest,
    without_greedy,
)
from coloop.spec.table_sizes import (
    CHARACTERS_PER_TOKEN,
    USUAL_SHARE,
    TableSize,
    filled,
    has_completion,
    joined,
    mean_written,
    one_after_another,
)
from coloop.spec.training import Gather


class RowCounts:
    """Counts of all tables of one phase, each computed once."""

    def __init__(
        self,
        lineage: Lineage,
        *,
        overrides: Mapping[str, Any],
        moved: frozenset[str] = frozenset(),
        delivers: Callable[[Edge], bool] = lambda edge: True,
        passes: Callable[[Edge], int] = lambda edge: 1,
        stand_ins: Mapping[str, Count] | None = None,
        is_probe: bool = False,
        nodes: Collection[str] | None = None,
        lengths: Mapping[str, TableSize] | None = None,
        is_characters: bool = False,
        written: Mapping[str, float] | None = None,
    ) -> None:
        """
        Args:
            overrides: paths and values that the phase and its groups (or a probe) set.
            moved: paths that an anneal or a trigger may change; their values are unknown.
            delivers: whether an edge brings anything in this phase.
            passes: how many passes of a refill an edge brings rows of at most; 1 without a refill.
            stand_ins: nodes whose rows a probe replaces, with the number of its rows.
            is_probe: no refills, no cuts to a number, no greedy extras.
            nodes: nodes to count, with everything upstream of them; None: all.
            lengths: by dataset, the lengths of its texts; None: lengths are not needed.
            is_characters: whether tokens are single characters.
            written: by generating node, the mean length of its completions where it is known.
        """
        self.spec, self.lineage = lineage.spec, lineage
        self._walk = lineage.walk
        self._overrides = overrides
        self._moved = moved
        self._delivers = delivers
        self._passes = passes
        self._stand_ins = stand_ins or {}
        self.is_probe = is_probe
        self.lengths = lengths or {}
        self.is_characters = is_characters
        self._written_tokens = written or {}
        self.per_character = 1.0 if is_characters else 1 / CHARACTERS_PER_TOKEN
        """Tokens per character."""
        self._growth: dict[str, RowGrowth] = {}
        for region in lineage.regions:
            self._growth |= _growth_in(self._walk, region)
        self._worked_on: dict[str, Count] = {}
        self._outside, self._first_round = _Seen(), _Seen()
        buffers = sum(node.about.outlives_step for node in lineage.spec.nodes.values())
        order = [name for name in self._walk.order if nodes is None or name in nodes]
        for _ in range(1 if lengths is None else 1 + buffers):  # texts return through buffers
            self._count(order)
        self._seen = self._outside

    def _count(self, order: Iterable[str]) -> None:
        self._outside.born.clear()
        self._first_round.born.clear()
        for name in order:
            growth = self._growth.get(name)
            self._seen = self._outside if growth is None else self._first_round
            given = self._given(name)
            self._first_round.keep(self.lineage, name, given)
            if growth is not None:
                given = {level: of_all_rounds(c, growth.all) for level, c in given.items()}
            self._outside.keep(self.lineage, name, given)

    def of(self, node: str, port: str) -> Count:
        """Rows that an output gives."""
        return add_up(self._seen.tables.get((node, port), {}).values())

    def of_edge(self, edge: Edge) -> Count:
        """Rows that flow along an edge; for `returns`, the rewarded rows of its source."""
        if edge.source.port == "returns":
            return self.taught(edge.source.node, "rewards")
        levels = _in_one_order(self.lineage.edge_levels(edge))
        return add_up(self._at(edge, level) for level in levels)

    def arriving(self, node: str, *ports: str) -> Count:
        """Rows of all edges into these ports, concatenated; the mean covers all rounds."""
        count = self.brought(node, *ports)
        return replace(count, mean=count.mean.times(self._growth.get(node, NO_GROWTH).all))

    def worked_on(self, node: str) -> Count:
        """Rows that a node works on after its join; the mean covers all rounds."""
        return self._worked_on[node]

    def brought(self, node: str, *ports: str) -> Count:
        """Rows of all edges into these ports in one round."""
        return add_up(self.of_edge(edge) for edge in self._edges(node, *ports))

    def _edges(self, node: str, *ports: str) -> list[Edge]:
        edges = self._walk.into(node, *ports)
        return [edge for edge in edges if self._delivers(edge) and not edge.rounds]

    def taught(self, node: str, port: str) -> Count:
        """Rows of an update at a teaching port, without greedy extras."""
        edges = [edge for edge in self._walk.into(node, port) if self._delivers(edge)]
        if port == "reference":
            return self._taught_by_several(edges)
        if port != "rewards":
            return without_greedy(add_up(self.of_edge(edge) for edge in edges))
        return without_greedy(largest(self._credited(node, edge) for edge in edges))

    def _taught_by_several(self, edges: Iterable[Edge]) -> Count:
        """Rows that at least one teacher reads, each once."""
        by_level: dict[Level, list[Count]] = {}
        for edge in filter(self.spec.graph.teaches, edges):
            for level in _in_one_order(self.lineage.edge_levels(edge)):
                by_level.setdefault(level, []).append(self._at(edge, level))
        return without_greedy(add_up(largest(counts) for counts in by_level.values()))

    def _credited(self, node: str, edge: Edge) -> Count:
        attachment = self.lineage.attachment(edge)
        if attachment.relation is Relation.SAME:
            own = _in_one_order(attachment.scored & attachment.receivers)
            return add_up(self._at(edge, level) for level in own)
        written = self.of(node, "rollouts")
        return written if self.of_edge(edge).is_exact else at_most(written)

    def value(self, path: str, written: Any) -> Any:
        """A value in this phase: the override, else the written one; None if it may change."""
        return None if path in self._moved else self._overrides.get(path, written)

    def _given(self, name: str) -> Counts:
        if name in self._stand_ins:
            return dict.fromkeys(self.levels(name), self._stand_ins[name])
        rows = self._joined(name)
        levels = _in_one_order(self.lineage.input_levels(name))
        growth = self._growth.get(name, NO_GROWTH).all
        worked = add_up(rows[level] for level in levels if level in rows)
        shown = self.shown_to(name, worked.mean.times(growth))
        self._worked_on[name] = replace(worked, mean=shown)
        return self.spec.nodes[name].counts_given(name, self, rows)

    def levels(self, name: str) -> Iterable[Level]:
        ports = PORTS[self._walk.kinds[name]].outputs
        return {level for port in ports for level in self.lineage.levels(name, port)}

    def shown_to(self, name: str, rows: TableSize) -> TableSize:
        """Rows as the template of a judge, a scorer or a model tool shows them."""
        template = getattr(self.spec.nodes[name], "template", None)
        if not isinstance(template, PromptTemplate):
            return rows
        texts = [template.text or "", *(m.content for m in template.messages or ())]
        mean, most = filled(rows, texts, self.per_character)
        return replace(
            rows,
            prompt=mean,
            prompt_max=most,
            written=0.0,
            written_max=0.0,
            alike=1.0 if has_completion(texts) else rows.alike,
        )

    def written(self, name: str, rows: Counts) -> Counts:
        """Rows that a node generates from its prompt rows."""
        each, rollout = self.completions(name), self._rollout(name)
        generated: Counts = {}
        for level in self.lineage.levels(name, "rollouts"):
            above = rows.get(level.parents[0]) if level.parents else None
            if above is None or rollout is None or each is None:
                generated[level] = UNKNOWN
                continue
            extra = int(rollout.greedy_extra and not self.is_probe)
            prompts = above.whole
            generated[level] = replace(
                above,
                rows=None if prompts is None else prompts * each,
                least=above.least * each,
                greedy=(prompts or 0) * extra,
                breakdown=""
                if prompts is None
                else f"{above.breakdown or prompts} x {each} completions",
                mean=self._texts(name, rollout, self.shown_to(name, above.mean), each + extra),
            )
        return generated

    def _texts(self, name: str, rollout: Rollout, prompts: TableSize, each: int) -> TableSize:
        longest, observed = float(rollout.max_new_tokens), observed_tokens(self.spec, name)
        if name in self._written_tokens:
            mean = min(self._written_tokens[name], longest)
        elif rollout.expected_tokens is None and self.is_characters:  # at least an answer
            mean = max(USUAL_SHARE * longest, min(longest, 1.5 * prompts.written + 1))
        else:
            mean = mean_written(rollout, reasons=reasons(self.spec, name))
        return TableSize(
            rows=prompts.rows * each,
            prompt=prompts.prompt,
            prompt_max=prompts.prompt_max,
            written=mean + observed / 2,
            written_max=longest + observed,
            alike=float(each),
            columns=prompts.columns,
        )

    def _rollout(self, name: str) -> Rollout | None:
        return getattr(self.spec.nodes[name], "rollout", None)

    def callees(self, name: str, port: str) -> list[Rollout]:
        """The `rollout` of each generating node that is connected to an input."""
        rollouts = [self._rollout(edge.source.node) for edge in self._edges(name, port)]
        return [rollout for rollout in rollouts if rollout is not None]

    def completions(self, name: str) -> int | None:
        """Texts that a node generates per prompt; None if none, or if it may change."""
        rollout = self._rollout(name)
        if rollout is None:
            return None
        path = f"nodes.{name}.rollout.completions_per_prompt"
        each = self.value(path, rollout.completions_per_prompt)
        return each if isinstance(each, int) else None

    def adds_greedy(self, name: str, count: Count) -> bool:
        """Whether a table of unknown size may include greedy texts."""
        rollouts = [self._rollout(writer) for writer in self._writers(name)]
        return count.rows is None and any(r is not None and r.greedy_extra for r in rollouts)

    def group_size(self, name: str) -> int | None:
        """Rows per prompt of the node that generated a node's rows; None if several or none did."""
        writers = self._writers(name)
        return self.completions(next(iter(writers))) if len(writers) == 1 else None

    def siblings(self, name: str) -> int:
        """Texts per prompt among a node's rows: the most of any node that wrote them, else 1."""
        return max((self.completions(writer) or 1 for writer in self._writers(name)), default=1)

    def _writers(self, name: str) -> set[str]:
        levels = self.lineage.input_levels(name)
        return {writer for level in levels for writer in self.lineage.writers(level)}

    # ---- joins

    def _joined(self, name: str) -> Counts:
        """Rows that a node works on, by level after its join, without rows that some score does not
        reach."""
        join = self.lineage.join(name)
        parts: dict[Level, list[Count]] = {}
        for level, inputs in join.parts:
            alive = [(edge, arriving) for edge, arriving in inputs if self._delivers(edge)]
            met = self._met(name, level, alive) if alive else NONE
            parts.setdefault(level, []).append(met)
        rows = {level: largest(counts) for level, counts in parts.items()}
        if not self._is_sure_of_scores(name):
            rows = {level: at_most(count) for level, count in rows.items()}
        section = self.spec.nodes[name]
        if isinstance(section.join, Gather):
            rows |= self._gathered(section.join.gather, join.levels, rows)
        return rows

    def _met(self, name: str, level: Level, inputs: list[tuple[Edge, Level]]) -> Count:
        """Rows where these inputs meet: those of the lowest level, or of siblings."""
        lowest = [self._at(edge, arriving) for edge, arriving in inputs if arriving == level]
        if lowest:
            others = [self._at(edge, arriving) for edge, arriving in inputs if arriving != level]
            least = smallest(lowest)
            if not others:
                return least
            mean = joined([least.mean, *(count.mean for count in others)])
            least = replace(least, mean=replace(mean, rows=least.mean.rows))
            return least if all(count.is_exact for count in others) else at_most(least)
        counts = {arriving: self._at(edge, arriving) for edge, arriving in inputs}
        siblings = {sibling: count for sibling, count in counts.items() if sibling in level.parents}
        if len(siblings) != len(level.parents):
            return UNKNOWN
        return self._siblings(siblings, is_crossed=self.spec.nodes[name].join == "cross")

    def _siblings(self, counts: Mapping[Level, Count], *, is_crossed: bool) -> Count:
        """Rows of sibling levels under their nearest common ancestor; crossed: all combinations."""
        levels = list(counts)
        shared = levels[0]
        for other in levels[1:]:
            ancestor = common_ancestor(shared, other)
            if ancestor is None:
                return UNKNOWN
            shared = ancestor
        mean = joined([count.mean for count in counts.values()])
        above = self._seen.born.get(shared, UNKNOWN)
        ways = [_way(shared, level) for level in levels]
        each = self._each(ways, is_crossed=is_crossed)
        if above.rows is None or each is None:
            most = [count.rows for count in counts.values()]
            known = [rows for rows in most if rows is not None]
            is_level = not is_crossed and len({way and len(way) for way in ways}) == 1
            bound = max(known, default=0) if is_level else prod(known)
            return Count(rows=bound if len(known) == len(most) else None, mean=mean)
        with_greedy = self._each(ways, is_crossed=is_crossed, is_whole=True) or each
        is_exact = above.is_exact and all(count.is_exact for count in counts.values())
        names = " and ".join(f"`{level}`" for level in levels)
        if is_exact:
            mean = replace(mean, rows=float(above.rows * with_greedy))
        return Count(
            rows=above.rows * each,
            is_exact=is_exact,
            least=above.least * each if is_exact else 0,
            greedy=above.rows * (with_greedy - each),
            breakdown=f"{above.rows} x {each} joined of {names}",
            mean=mean,
        )

    def _each(
        self, ways: Sequence[tuple[Level, ...] | None], *, is_crossed: bool, is_whole: bool = False
    ) -> int | None:
        """Joined rows per row of the level from which these ways lead down; None if not known.

        It is the product of the fan-outs of all steps. Steps that the join matches by position
        count once, with their smallest fan-out.

        Args:
            is_whole: whether greedy extras count as well.
        """
        steps: dict[tuple[int, int], int] = {}
        for number, way in enumerate(ways):
            if way is None:
                return None
            for depth, (high, low) in enumerate(pairwise(way)):
                fan = self._fan_out(high, low, is_whole=is_whole)
                if fan is None:
                    return None
                steps[number, depth] = fan
        equal = {step: {step} for step in steps}
        for (i, way), (j, other) in combinations(enumerate(ways), 2):
            for depth in _equal_places(way or (), other or (), is_crossed=is_crossed):
                merged = equal[i, depth] | equal[j, depth]
                equal.update(dict.fromkeys(merged, merged))
        return prod(
            min(steps[step] for step in places) for places in {frozenset(e) for e in equal.values()}
        )

    def _fan_out(self, high: Level, low: Level, *, is_whole: bool) -> int | None:
        counts = [self._seen.born.get(level, UNKNOWN) for level in (high, low)]
        above, below = (count.whole if is_whole else count.rows for count in counts)
        return below // above if below is not None and above and below % above == 0 else None

    def _gathered(self, by: str | None, levels: Iterable[Level], rows: Counts) -> Counts:
        counts: Counts = {}
        for level in levels:
            members = [member for member in rows if member in level.parents]
            if by is None:
                nearest = [member.parents[0] if member.parents else None for member in members]
            else:
                nearest = [self.lineage.ancestor_at(member, by) for member in members]
            above = {ancestor for ancestor in nearest if ancestor is not None}
            mean = one_after_another([rows[member].mean for member in members])
            if len(above) != 1 or len(nearest) != len(level.parents):
                counts[level] = Count(rows=None, mean=mean)
                continue
            count = self._seen.born.get(above.pop(), UNKNOWN)
            count = replace(count, greedy=0, mean=_merged(mean, count.mean.rows))
            is_sure = any(rows[member].is_exact and rows[member].least for member in members)
            counts[level] = count if is_sure else at_most(count)
        return counts

    def _is_sure_of_scores(self, name: str) -> bool:
        """Whether every connected score reaches all rows."""
        kind = self._walk.kinds[name]
        section = self.spec.nodes[name]
        if kind in ALWAYS_CONCAT or section.join == "concat":
            return True
        edges = [e for e in self._walk.score_edges(name) if self._delivers(e) and not e.rounds]
        return all(self.of_edge(edge).is_exact for edge in edges)

    def _at(self, edge: Edge, level: Level) -> Count:
        key = edge.source.node, edge.source.port
        count = repeated(self._seen.at(key, level), self._passes(edge))
        growth = self._growth.get(edge.source.node)
        if growth is None:
            return count
        take = self.lineage.take(edge)
        factor = 1.0 if take is None else growth.all if take == "all" else growth.last
        return replace(count, mean=self._first_round.at(key, level).mean.times(factor))


class _Seen:
    """Counts of all tables; those of a rounds region are of its first round, or of all rounds."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Counts] = {}
        self.born: Counts = {}

    def at(self, key: tuple[str, str], level: Level) -> Count:
        return self.tables.get(key, {}).get(level, UNKNOWN)

    def keep(self, lineage: Lineage, name: str, given: Counts) -> None:
        for level, count in given.items():
            self.born.setdefault(level, count)
        for port, output in PORTS[lineage.walk.kinds[name]].outputs.items():
            levels = _in_one_order(lineage.levels(name, port))
            table = {level: given.get(level, UNKNOWN) for level in levels}
            if output.type is PortType.PAIRS:
                table = {level: replace(c, mean=c.mean.as_pairs) for level, c in table.items()}
            self.tables[name, port] = table


def _merged(members: TableSize, rows: float) -> TableSize:
    ratio = members.rows / rows if rows else 1.0
    return replace(
        members,
        rows=rows or members.rows,
        written=members.written * ratio,
        written_max=members.written_max * ratio,
        alike=max(members.alike / ratio, 1.0) if ratio else 1.0,
    )


def _way(above: Level, below: Level) -> tuple[Level, ...] | None:
    """The levels from `above` down to `below`, both included; None without exactly one way."""
    way = [below]
    while way[-1] != above:
        parents = [parent for parent in way[-1].parents if above in ancestors(parent)]
        if len(parents) != 1:
            return None
        way.append(parents[0])
    return tuple(reversed(way))


def _equal_places(
    way: tuple[Level, ...], other: tuple[Level, ...], *, is_crossed: bool
) -> Iterable[int]:
    """Depths at which joined rows have the same position: along the common part of both ways, and
    below it at all steps of equally long ways, else at the first; there at none if crossed."""
    common = sum(1 for a, b in zip(way, other, strict=False) if a == b) - 1
    below = min(len(way), len(other)) - 1 - common
    if is_crossed:
        below = 0
    elif len(way) != len(other):
        below = min(below, 1)
    return range(common + below)


def _in_one_order(levels: Levels) -> Iterable[Level]:
    """Levels in a fixed order, so that float sums are the same in every process."""
    return levels if len(levels) < 2 else ordered(levels)


# How rows grow over rounds: tables of one round become those of all, or of the last.
#
# one     every round is like the first
# lines   from the second on as many rows as came to the end of the first, at every node
# all     every round multiplies the one before by what came of each of its rows

BRANCH_LIMIT = 64.0
"""Assumed maximum rows of a round, relative to the first, in a tree with a filter."""


@dataclass(frozen=True, slots=True)
class RowGrowth:
    """Mean number of rows of all rounds together and of the last, relative to the first."""

    all: float = 1.0
    last: float = 1.0


NO_GROWTH = RowGrowth()


def _growth_in(walk: Walk, region: RoundsRegion) -> dict[str, RowGrowth]:
    texts, rounds = multiplied(walk, region), float(region.rounds)
    ends = float(max((texts.get(edge.source.node, 1) for edge in region.edges), default=1))
    branch = region.edges[0].branch or "one"
    if rounds == 1:
        return {}
    if branch == "all":
        return dict.fromkeys(region.nodes, _tree(walk, region, ends))
    growth = {}
    for node in region.nodes:
        later = 1.0 if branch == "one" else ends / texts.get(node, 1)
        growth[node] = RowGrowth(1.0 + (rounds - 1.0) * later, later)
    return growth


def _tree(walk: Walk, region: RoundsRegion, each: float) -> RowGrowth:
    cuts = any(walk.spec.nodes[node].about.sifts for node in region.nodes)
    limit = BRANCH_LIMIT if cuts else float("inf")
    turns = min(region.rounds, 64)
    last = min(each ** (turns - 1), limit)
    whole = sum(min(each**turn, limit) for turn in range(turns))
    return RowGrowth(whole, last)
