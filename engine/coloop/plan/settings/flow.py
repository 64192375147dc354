"""How many rows pass through each port in a step, and how long they are.

Row counts follow from the graph, lengths from the datasets (`rows`) and what is made of them. Knows
nothing of models' sizes, memory or time.
Invariant: never raises on a half-drawn loop; what is not connected has no rows.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coloop.plan.settings.facts import Note
from coloop.plan.settings.rounds import RoundFactors
from coloop.plan.settings.rows import CHARACTERS_PER_TOKEN, Lengths, lengths_of
from coloop.plan.settings.searches import texts_of_search
from coloop.spec.data import InlineSource
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.homes import turns_of
from coloop.spec.nodes import BufferNode, DatasetNode, FilterNode, PairsNode, TemplateNode
from coloop.spec.ports import PORTS
from coloop.spec.training import Gather

CHARACTER_VOCABULARY = 1024
"""Vocabularies up to this size are taken to be of characters."""
DEFAULT_ROWS = 64
MEAN_OF_MAXIMUM = 0.5
"""Mean length of what is written over the most that may be written."""
ANSWER_TOKENS = 256.0
"""Most tokens of an answer of a tool, where the loop does not say it."""
SUM_TOKENS = 16.0
"""The same of a calculator's."""
LONGEST_CHAIN = 50
"""Nodes one after another that are followed call by call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table of one step, lengths in tokens."""

    rows: float = 0.0
    prompt: float = 0.0
    prompt_max: float = 0.0
    written: float = 0.0
    """Mean length of completion or target."""
    written_max: float = 0.0
    sides: int = 1
    """Texts of one row: two for pairs."""
    alike: float = 1.0
    """Texts that begin with the same prompt."""

    @property
    def length(self) -> float:
        """Mean length of prompt and what follows."""
        return self.prompt + self.written

    @property
    def length_max(self) -> float:
        """Greatest length."""
        return self.prompt_max + self.written_max


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
        self._is_characters = (smallest_vocabulary or 10**9) <= CHARACTER_VOCABULARY
        self._per_character = 1.0 if self._is_characters else 1 / CHARACTERS_PER_TOKEN
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
        return self._in_all_rounds(node, self._arriving(node, ports))

    def worked_on(self, node: str) -> TableSize:
        """The rows a scorer works on: its inputs joined, in all rounds."""
        return self._in_all_rounds(node, self._worked_on(node))

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

    def _arriving(self, node: str, ports: Iterable[str]) -> TableSize:
        """All edges into these ports, one after another, in one round."""
        return _concat([self._over(edge) for edge in self._edges(node, ports)])

    def _worked_on(self, node: str) -> TableSize:
        """The rows a scorer works on: its inputs joined, in one round."""
        section = self._spec.nodes[node]
        edges = self._edges(node, ("rollouts", "rows", "comparisons", "pairs", "scores"))
        if section.kind in ("reward", "verifier", "critic"):
            taught = ("pairs", "labels", "returns")
            edges = [edge for edge in edges if edge.target.port not in taught]
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
        section: Any = self._spec.nodes[node]
        match section.kind:
            case "dataset":
                return self._dataset(node, section, port)
            case "actor":
                return self._writer(node, section.rollout, self._arriving(node, ("prompts",)))
            case "verifier" if port == "rollouts" and section.rollout is not None:
                return self._writer(node, section.rollout, self._worked_on(node))
            case "template":
                return self._template(section, self._arriving_joined(node, section))
            case "filter":
                return self._filter(node, section)
            case "pairs":
                return self._pairs(node, section)
            case "buffer":
                return self._buffer(node, section)
            case "search":
                return self._search(node, section)
        return self._worked_on(node)

    def _arriving_joined(self, node: str, section: Any) -> TableSize:
        """Rows of a node that works on its main inputs."""
        edges = self._edges(node, ("rows", "rollouts", "pairs"))
        return self._joined(section, [self._over(edge) for edge in edges])

    def _joined(self, section: Any, inputs: list[TableSize]) -> TableSize:
        join = getattr(section, "join", "align")
        if join == "concat":
            return _concat(inputs)
        size = _align(inputs)
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
            ports = {"actor": "rollouts", "pairs": "pairs"}
            return self._of_round(node, ports.get(self._spec.nodes[node].kind, "rows")).rows
        return rows / 2

    def _dataset(self, node: str, section: DatasetNode, port: str) -> TableSize:
        found = self._lengths(section)
        rows = section.rows_per_step
        if rows is None and isinstance(section.source, InlineSource):
            rows = len(section.source.rows)
        if found.is_assumed:
            what = f"lengths of {section.source.type} rows are not known"
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
        return lengths_of(section, self._root, is_characters=self._is_characters)

    def lengths_found(self) -> Iterator[tuple[str, Lengths]]:
        """Datasets whose lengths the loop does not say by itself."""
        for name, section in self._spec.nodes.items():
            if isinstance(section, DatasetNode):
                found = self._lengths(section)
                if found.reason:
                    yield name, found

    def _note(self, node: str, field: str, message: str) -> None:
        self.notes.append(Note(message=message, node=node, field=field))

    def _writer(self, node: str, rollout: Any, prompts: TableSize) -> TableSize:
        each = rollout.completions_per_prompt + (1 if rollout.greedy_extra else 0)
        longest = float(rollout.max_new_tokens)
        observed = observed_tokens(self._spec, node)
        mean = _mean_written(rollout)
        if rollout.expected_tokens is None and self._is_characters:  # at least an answer
            mean = max(mean, min(longest, 1.5 * prompts.written + 1))
        return TableSize(
            rows=prompts.rows * each,
            prompt=prompts.prompt,
            prompt_max=prompts.prompt_max,
            written=mean + observed / 2,
            written_max=longest + observed,
            alike=float(each),
        )

    def _template(self, section: TemplateNode, rows: TableSize) -> TableSize:
        texts = [section.text or "", *(m.content for m in section.messages or ())]
        literal, names = _template_parts(" ".join(texts))
        is_own = any("completion" in name for name in names)
        scale = self._per_character
        prompt, longest = literal * scale, literal * scale
        for name in names:
            if "completion" in name:
                prompt, longest = prompt + rows.written, longest + rows.written_max
            elif "prompt" in name:
                prompt, longest = prompt + rows.prompt, longest + rows.prompt_max
            else:
                prompt, longest = prompt + 0.25 * rows.prompt, longest + 0.25 * rows.prompt_max
        if not any(texts):
            prompt, longest = rows.prompt, rows.prompt_max
        written, written_max = rows.written, rows.written_max
        if section.target is not None:
            literal, names = _template_parts(section.target)
            written = literal * scale + (rows.written if names else 0.0)
            written_max = literal * scale + (rows.written_max if names else 0.0)
        return replace(
            rows,
            prompt=prompt,
            prompt_max=longest,
            written=written,
            written_max=written_max,
            alike=1.0 if is_own else rows.alike,
        )

    def _filter(self, node: str, section: FilterNode) -> TableSize:
        """At most what its limits allow; what its rules cut is not known before the run."""
        rows = self._arriving_joined(node, section)
        siblings = self._siblings(node)
        limits = [rows.rows]
        if section.per_group is not None:
            limits.append(rows.rows * min(section.per_group.max / siblings, 1.0))
        if section.fill is not None:
            groups = section.fill.groups
            wanted = section.fill.rows or (groups * siblings if isinstance(groups, int) else None)
            limits += [float(wanted)] if wanted else []
        if section.resample is not None and section.resample.rows:
            limits = [float(section.resample.rows)]
        if section.up_to:
            limits = [float(section.up_to)]
        alike = rows.alike
        if section.per_group is not None:
            alike = min(alike, float(section.per_group.max))
        return replace(rows, rows=min(limits), alike=alike)

    def _pairs(self, node: str, section: PairsNode) -> TableSize:
        rows = self._arriving(node, ("rollouts",))
        if section.method == "relabel":
            return replace(self._arriving(node, ("pairs",)), sides=2)
        if section.method == "direct":
            sides = [self._arriving(node, (port,)) for port in ("chosen", "rejected")]
            return replace(_align(sides), sides=2, alike=2.0)
        siblings = self._siblings(node)
        groups = rows.rows / siblings
        per_group = 1.0 if section.method == "best_worst" else siblings * (siblings - 1) / 2
        return replace(rows, rows=groups * per_group, sides=2, alike=2 * per_group)

    def _siblings(self, node: str) -> float:
        """Completions of one prompt above a node; 1 where no writer is found."""
        for above in self._spec.graph.upstream([node]):
            rollout = getattr(self._spec.nodes.get(above), "rollout", None)
            if rollout is not None and rollout.completions_per_prompt > 1:
                return float(rollout.completions_per_prompt)
        return 1.0

    def _buffer(self, node: str, section: BufferNode) -> TableSize:
        held = self._arriving(node, ("rows", "rollouts", "pairs", "seed"))
        drawn = section.rows_per_step or section.capacity
        return replace(held, rows=float(drawn), alike=float(held.sides))

    def _search(self, node: str, section: Any) -> TableSize:
        rows = self._arriving(node, ("rows",))
        factor = texts_of_search(section)
        policies: list[Any] = [
            self._spec.nodes.get(edge.source.node) for edge in self._edges(node, ("policy",))
        ]
        rollouts = [one.rollout for one in policies if getattr(one, "rollout", None) is not None]
        written_max = max((float(one.max_new_tokens) for one in rollouts), default=0.0)
        if section.budget.tokens and written_max and rows.rows:
            factor = min(factor, section.budget.tokens / (written_max * rows.rows))
        return replace(
            rows,
            rows=rows.rows * max(factor, 1.0),
            alike=max(factor, 1.0),
            written=max(map(_mean_written, rollouts), default=0.0),
            written_max=written_max,
        )


def _mean_written(rollout: Any) -> float:
    """Mean tokens of a completion, as the loop expects it."""
    longest = float(rollout.max_new_tokens)
    if rollout.expected_tokens is None:
        return MEAN_OF_MAXIMUM * longest
    return min(float(rollout.expected_tokens), longest)


def _concat(tables: list[TableSize]) -> TableSize:
    rows = sum(table.rows for table in tables)
    if not rows:
        return TableSize()
    return TableSize(
        rows=rows,
        prompt=sum(t.rows * t.prompt for t in tables) / rows,
        prompt_max=max(t.prompt_max for t in tables),
        written=sum(t.rows * t.written for t in tables) / rows,
        written_max=max(t.written_max for t in tables),
        sides=max(t.sides for t in tables),
        alike=sum(t.rows * t.alike for t in tables) / rows,
    )


def _align(tables: list[TableSize]) -> TableSize:
    """Rows joined by lineage: as many as the finest input has."""
    if not tables:
        return TableSize()
    finest = max(tables, key=lambda table: table.rows)
    return replace(
        finest,
        prompt_max=max(t.prompt_max for t in tables),
        written_max=max(t.written_max for t in tables),
    )


def _template_parts(text: str) -> tuple[int, list[str]]:
    """Characters outside of Jinja's braces, and the names inside."""
    names = re.findall(r"{{\s*(.*?)\s*}}", text, re.S)
    return len(re.sub(r"{{.*?}}|{%.*?%}|{#.*?#}", "", text, flags=re.S)), names
