"""How many rows pass through each port in a step, and how long they are.

Row counts follow from the graph, lengths from the datasets (`rows`) and what is made of them. Knows
nothing of models' sizes, memory or time.
Invariant: never raises on a half-drawn loop; what is not connected has no rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coloop.plan.settings.facts import Note
from coloop.plan.settings.rows import CHARACTERS_PER_TOKEN, Lengths, lengths_of
from coloop.spec.data import InlineSource
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.groups import turns_of
from coloop.spec.lineage.walk import RoundsFlow, RoundsRegion, Walk, multiplied
from coloop.spec.nodes import DatasetNode
from coloop.spec.ports import PORTS
from coloop.spec.rollout import Rollout
from coloop.spec.table_sizes import TableSize, joined, mean_written, one_after_another
from coloop.spec.training import Gather

CHARACTER_VOCABULARY = 1024
"""Vocabularies up to this size are taken to be of characters."""
DEFAULT_ROWS = 64
ANSWER_TOKENS = 256.0
"""Most tokens of an answer of a tool, where the loop does not say it."""
SUM_TOKENS = 16.0
"""The same of a calculator's."""
LONGEST_CHAIN = 50
"""Nodes one after another that are followed call by call."""


def observed_tokens(spec: LoopSpec, node: str) -> float:
    """Most tokens that tools say in a text of a writer."""
    turns = turns_of(spec, node)
    if turns is None:
        return 0.0
    if turns.observation_tokens is not None:
        return float(turns.answers * turns.observation_tokens)
    tools = [edge.source.node for edge in spec.graph.edges_into(node, "tools")]
    are_sums = all(getattr(spec.nodes.get(tool), "type", None) == "calculator" for tool in tools)
    return turns.answers * (SUM_TOKENS if are_sums else ANSWER_TOKENS)


class Flow:
    """Table sizes of one loop, computed where they are asked for."""

    def __init__(
        self, spec: LoopSpec, smallest_vocabulary: int | None, root: Path | None = None
    ) -> None:
        """
        Args:
            root: folder for relative paths; without it no file is opened.
        """
        self._spec, self._root = spec, root
        self.is_characters = (smallest_vocabulary or 10**9) <= CHARACTER_VOCABULARY
        self.per_character = 1.0 if self.is_characters else 1 / CHARACTERS_PER_TOKEN
        self._sizes: dict[tuple[str, str], TableSize] = {}
        self._open: set[tuple[str, str]] = set()
        self._rounds = RoundFactors(spec)
        self.notes: list[Note] = []
        for node in self._long_chains():
            for edge in spec.graph.edges_out_of(node):
                self._of_round(node, edge.source.port)

    def output(self, node: str, port: str) -> TableSize:
        """The table that a node gives at a port, in all rounds."""
        return self._in_all_rounds(node, self._of_round(node, port))

    def arriving(self, node: str, ports: Iterable[str]) -> TableSize:
        """All edges into these ports, one after another, in all rounds."""
        return self._in_all_rounds(node, self.arriving_once(node, ports))

    def worked_on(self, node: str) -> TableSize:
        """The rows a scorer works on: its inputs joined, in all rounds."""
        return self._in_all_rounds(node, self.worked_on_once(node))

    def _in_all_rounds(self, node: str, size: TableSize) -> TableSize:
        return replace(size, rows=size.rows * self._rounds.of(node))

    def _of_round(self, node: str, port: str) -> TableSize:
        """The table of one round, the first where they differ."""
        key = (node, port)
        if key in self._sizes:
            return self._sizes[key]
        if key in self._open or node not in self._spec.nodes:
            return TableSize()
        self._open.add(key)
        size = self._compute(node, port)
        self._open.discard(key)
        self._sizes[key] = size
        return size

    def _long_chains(self) -> list[str]:
        """Nodes of loops with chains that are too long to be followed call by call, each after
        those that feed it; what a circle holds is left out."""
        depth: dict[str, int] = {}
        waiting: dict[str, set[str]] = {}
        following: dict[str, list[str]] = {}
        for name, section in self._spec.nodes.items():
            ports = PORTS[section.kind].inputs
            read = [port for port, one in ports.items() if one.phase != "learn"]
            givers = {
                edge.source.node for edge in self._edges(name, read)
            } & self._spec.nodes.keys()
            waiting[name] = givers
            for giver in givers:
                following.setdefault(giver, []).append(name)
        ready = [name for name, givers in waiting.items() if not givers]
        order: list[str] = []
        while ready:
            name = ready.pop()
            order.append(name)
            for target in following.get(name, ()):
                depth[target] = max(depth.get(target, 0), depth.get(name, 0) + 1)
                waiting[target].discard(name)
                if not waiting[target]:
                    ready.append(target)
        return order if max(depth.values(), default=0) > LONGEST_CHAIN else []

    def arriving_once(self, node: str, ports: Iterable[str]) -> TableSize:
        """All edges into these ports, one after another, in one round."""
        return one_after_another([self._over(edge) for edge in self._edges(node, ports)])

    def worked_on_once(self, node: str) -> TableSize:
        """The rows a scorer works on: its inputs joined, in one round."""
        section = self._spec.nodes[node]
        edges = self._edges(node, ("rollouts", "rows", "comparisons", "pairs", "scores"))
        edges = [edge for edge in edges if not section.about.inputs[edge.target.port].teaching]
        return self._joined(section, [self._over(edge) for edge in edges])

    def taught(self, node: str, port: str) -> TableSize:
        """The rows that an update at a teaching port is made of."""
        if port == "rewards":
            return self.output(node, "rollouts")
        if port == "returns":
            inner = self.worked_on(node)
            return inner if inner.rows else self.arriving(node, (port,))
        return self.arriving(node, (port,))

    def _edges(self, node: str, ports: Iterable[str]) -> list[Edge]:
        wanted = set(ports)
        return [
            edge
            for edge in self._spec.graph.edges_into(node)
            if edge.target.port in wanted
            and not edge.rounds
            and not self._spec.graph.is_dead_throughout(edge)
        ]

    def _over(self, edge: Edge) -> TableSize:
        size = self._of_round(edge.source.node, edge.source.port)
        return replace(size, rows=size.rows * self._rounds.along(edge))

    def _compute(self, node: str, port: str) -> TableSize:
        return self._spec.nodes[node].size_given(node, port, self)

    def brought_once(self, node: str) -> TableSize:
        """Its rows, rollouts and pairs, joined, in one round."""
        section = self._spec.nodes[node]
        edges = self._edges(node, ("rows", "rollouts", "pairs"))
        return self._joined(section, [self._over(edge) for edge in edges])

    def _joined(self, section: Any, inputs: list[TableSize]) -> TableSize:
        join = getattr(section, "join", "align")
        if join == "concat":
            return one_after_another(inputs)
        size = joined(inputs)
        if isinstance(join, Gather):
            anchor = self._anchor_rows(join.gather, size.rows)
            ratio = size.rows / anchor if anchor else 1.0
            longest = size.written_max * ratio
            return replace(
                size,
                rows=anchor or size.rows,
                written=size.written * ratio,
                written_max=longest,
                alike=max(size.alike / ratio, 1.0),
            )
        return size

    def _anchor_rows(self, node: str | None, rows: float) -> float:
        if node is not None and node in self._spec.nodes:
            return self._of_round(node, self._spec.nodes[node].about.first_rows).rows
        return rows / 2

    def loaded(self, node: str, section: DatasetNode, port: str) -> TableSize:
        """What a dataset gives, with the lengths of its texts; what is assumed is noted."""
        found = self._lengths(section)
        rows = section.rows_per_step
        if rows is None and isinstance(section.source, InlineSource):
            rows = len(section.source.rows)
        if found.is_assumed:
            what = f"the lengths of {section.source.type} rows are not known"
            self._note(node, "source", f"{what}: {round(found.prompt_max)} tokens assumed")
        if rows is None:
            rows = DEFAULT_ROWS
            self._note(node, "rows_per_step", f"rows of a step are not given: {rows} assumed")
        sides = 2 if port == "pairs" else 1
        return TableSize(
            rows=float(rows),
            prompt=found.prompt,
            prompt_max=found.prompt_max,
            written=found.answer,
            written_max=found.answer_max,
            sides=sides,
            alike=float(sides),
        )

    def _lengths(self, section: DatasetNode) -> Lengths:
        return lengths_of(section, self._root, is_characters=self.is_characters)

    def lengths_found(self) -> Iterator[tuple[str, Lengths]]:
        """Datasets whose lengths the loop does not say by itself."""
        for name, section in self._spec.nodes.items():
            if isinstance(section, DatasetNode):
                found = self._lengths(section)
                if found.reason:
                    yield name, found

    def _note(self, node: str, field: str, message: str) -> None:
        self.notes.append(Note(message=message, node=node, field=field))

    def written(self, node: str, rollout: Rollout, prompts: TableSize) -> TableSize:
        """What a node writes to these prompts."""
        each = rollout.completions_per_prompt + (1 if rollout.greedy_extra else 0)
        longest = float(rollout.max_new_tokens)
        observed = observed_tokens(self._spec, node)
        mean = mean_written(rollout)
        if rollout.expected_tokens is None and self.is_characters:  # at least an answer
            mean = max(mean, min(longest, 1.5 * prompts.written + 1))
        return TableSize(
            rows=prompts.rows * each,
            prompt=prompts.prompt,
            prompt_max=prompts.prompt_max,
            written=mean + observed / 2,
            written_max=longest + observed,
            alike=float(each),
        )

    def rollouts_of(self, node: str, port: str) -> list[Rollout]:
        """How the nodes write that an input calls, those of them that write."""
        nodes = [self._spec.nodes.get(e.source.node) for e in self._edges(node, (port,))]
        return [one.rollout for one in nodes if getattr(one, "rollout", None) is not None]  # type: ignore[union-attr, misc]

    def siblings(self, node: str) -> float:
        """Completions of one prompt above a node; 1 where no writer is found."""
        for above in self._spec.graph.upstream([node]):
            rollout = getattr(self._spec.nodes.get(above), "rollout", None)
            if rollout is not None and rollout.completions_per_prompt > 1:
                return float(rollout.completions_per_prompt)
        return 1.0


# How rows grow over rounds: tables of one round become those of all, or of the last.
#
# one     every round is like the first lines   from the second on as many rows as came to the end
# of the first, at every node all     every round multiplies the one before by what came of each
# of its rows

BRANCH_LIMIT = 64.0
"""How far a tree is taken to grow in which a filter cuts."""


@dataclass(frozen=True, slots=True)
class RowGrowth:
    """Rows over those of the first round."""

    all: float = 1.0
    last: float = 1.0


NO_GROWTH = RowGrowth()


class RoundFactors:
    """What rounds make of the rows of each node and edge of a loop."""

    def __init__(self, spec: LoopSpec) -> None:
        walk = Walk(spec)
        self._flow = RoundsFlow(walk)
        self._growth: dict[str, RowGrowth] = {}
        for region in walk.regions:
            self._growth |= _growth_in(walk, region)

    def of(self, node: str) -> float:
        """Rows of all rounds over those of the first."""
        return self._growth.get(node, NO_GROWTH).all

    def along(self, edge: Edge) -> float:
        """Rows that an edge brings over those that its source gives in one round."""
        growth = self._growth.get(edge.source.node, NO_GROWTH)
        match self._flow.take(edge):
            case None:
                return 1.0
            case "all":
                return growth.all
        return growth.last


def _growth_in(walk: Walk, region: RoundsRegion) -> dict[str, RowGrowth]:
    texts, rounds = multiplied(walk, region), float(region.rounds)
    ends = float(max((texts.get(edge.source.node, 1) for edge in region.edges), default=1))
    branch = region.edges[0].branch or "one"
    found = {}
    for node in region.nodes:
        match branch:
            case "one":
                found[node] = RowGrowth(rounds, 1.0)
            case "lines":
                later = ends / texts.get(node, 1) if rounds > 1 else 1.0
                found[node] = RowGrowth(1.0 + (rounds - 1.0) * later, later)
            case "all":
                found[node] = _tree(walk, region, ends)
    return found


def _tree(walk: Walk, region: RoundsRegion, each: float) -> RowGrowth:
    cuts = any(walk.spec.nodes[node].about.sifts for node in region.nodes)
    limit = BRANCH_LIMIT if cuts else float("inf")
    turns = min(region.rounds, 64)
    last = min(each ** (turns - 1), limit)
    whole = sum(min(each**turn, limit) for turn in range(turns))
    return RowGrowth(min(whole, limit), last)
