"""What the rules look at: a spec with its walk, lineage, phases and weights groups, each computed
once.

Rules are small pure functions `(Facts) -> iterable of Diagnostic`. They must hold on a half-drawn
loop: edges may name nodes that do not exist, nodes may stand alone, phases may name anything.

Invariants: looking at facts never raises; paths count from `root`, without it no file is looked
at, and a confined check looks at none outside of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coloop.errors import PresetNotFound, SpecProblem
from coloop.spec import presets
from coloop.spec.algorithm import (
    Algorithm,
    ResolvedRewards,
    RewardsAlgorithm,
    node_algorithms,
    reads,
    resolve_rewards_algorithm,
)
from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Diagnostic, Fix, Severity
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.groups import WeightsGroup, training_of, weights_groups
from coloop.spec.lineage import Level, Levels, Lineage, Relation, compute_lineage, relate_pair
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.lineage.walk import Walk
from coloop.spec.nodes import ActorNode, DatasetNode, Node, VerifierNode, model_of
from coloop.spec.paths import find
from coloop.spec.placement import Hardware
from coloop.spec.ports import PORTS
from coloop.spec.presets import HardwarePreset
from coloop.spec.rollout import Rollout
from coloop.spec.row_counts import Count
from coloop.spec.schedule import Phase, PhaseActions, PhaseGroup
from coloop.spec.training import Training
from coloop.validate.sources import Glance, glances, leading_out

Port = tuple[str, str]
"""A node and one of its ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFacts:
    """One phase as it runs; a schedule without phases is one phase without a name."""

    name: str | None
    path: str
    """Where it is written, e.g. `schedule.phases.1`."""
    section: Phase | None
    overrides: Mapping[str, Any]
    """Paths and values of its own `set` and of the groups around it."""
    live: frozenset[Port]
    """Connected teaching ports that it makes live."""
    fills: tuple[str, ...]
    """Buffers that it writes: those of `fill` and of `until`."""
    times: int
    """How often it runs."""
    fired: int | None = None
    """The trigger whose `set` is in force, by its number; `None`: none has fired."""
    is_sure: bool = True
    """Whether the phase runs so once that trigger has fired: no other sets the same."""

    @property
    def severity(self) -> Severity:
        """Severity of an error in it: a warning if another trigger may prevent it."""
        return Severity.ERROR if self.is_sure else Severity.WARNING

    @property
    def label(self) -> str:
        """How a message calls it."""
        label = "the schedule" if self.name is None else f"phase `{self.name}`"
        if self.fired is None:
            return label
        return f"{label} once trigger {self.fired} has fired{'' if self.is_sure else ' last'}"


class Facts:
    """Everything that rules read; see the module."""

    def __init__(
        self,
        spec: LoopSpec,
        root: Path | None = None,
        *,
        is_confined: bool = False,
        known_columns: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """
        Args:
            known_columns: by dataset node, the columns that its source is taken to have; else
                those of files that were seen whole.
        """
        self.spec = spec
        self.root = root
        self.is_confined = is_confined
        self.nodes: Mapping[str, Node] = spec.nodes
        self.numbers: Mapping[int, int] = {id(edge): i for i, edge in enumerate(spec.edges)}
        self.glances: Mapping[str, Glance] = glances(spec, root, is_confined=is_confined)
        self.known_columns = known_columns or {
            name: self.columns_of(name) for name, seen in self.glances.items() if seen.is_whole
        }
        self.lineage: Lineage
        self.lineage, self.lineage_findings = compute_lineage(spec, self.known_columns)
        self.walk = Walk(spec)
        self._reads: dict[Port, frozenset[str]] = {}
        self._trainings: dict[str, Training] = {}
        self._spellings: dict[str, str] = {}
        self._leading_out: dict[str, str | None] = {}
        self._counts: dict[int, tuple[PhaseFacts, RowCounts]] = {}
        """By the phase's identity; a phase that is kept here keeps its own."""

    def columns_of(self, dataset: str, *, everywhere: bool = False) -> frozenset[str]:
        """Columns of a source that was looked into, mapped names included: those of some row, or
        of every row."""
        seen, node = self.glances[dataset], self.nodes[dataset]
        mapped = frozenset(node.columns) if isinstance(node, DatasetNode) else frozenset()
        return mapped | (seen.common if everywhere else seen.columns or frozenset())

    # ---- edges

    def place(self, edge: Edge) -> str:
        """The path of an edge, as diagnostics and fixes name it."""
        return f"edges.{self.numbers[id(edge)]}"

    def is_connected(self, node: str, port: str) -> bool:
        """Whether any edge ends at the port, sensible or not."""
        return (node, port) in self._drawn_targets

    def is_alone(self, node: str) -> bool:
        """Whether no edge begins or ends at a node: it has just been drawn."""
        drawn = self._drawn_targets | self._drawn_sources
        return all(name != node for name, _ in drawn)

    def is_used(self, node: str, port: str) -> bool:
        """Whether any edge starts at the port, sensible or not."""
        return (node, port) in self._drawn_sources

    def whence(self, *starts: str) -> set[str]:
        """Nodes from which rows of these come, by way of buffers as well: their rows keep scores.

        `Walk.upstream` ends at a buffer, whose rows come from other rounds.
        """
        reached: set[str] = set()
        waiting = [*starts]
        while waiting:
            fresh = self.walk.upstream(*waiting) - reached
            reached |= fresh
            buffers = [one for one in fresh if self.walk.kinds.get(one) == "buffer"]
            waiting = [edge.source.node for one in buffers for edge in self.walk.into(one)]
        return reached

    def is_dead(self, edge: Edge, phase: PhaseFacts | None = None) -> bool:
        """Whether the edge is dead in the phase; without one, in every phase."""
        if phase is None:
            return self.spec.graph.is_dead_throughout(edge)
        return self.spec.graph.is_dead(edge, phase.overrides)

    def has_broken_input(self, node: str) -> bool:
        """Whether an edge ends at a port that the node does not have: some input is meant by it."""
        return node in self._broken_inputs

    @cached_property
    def _broken_inputs(self) -> frozenset[str]:
        return frozenset(
            edge.target.node
            for edge in self.spec.edges
            if (kind := self.walk.kinds.get(edge.target.node)) is not None
            and edge.target.port not in PORTS[kind].inputs
        )

    @cached_property
    def has_broken_edges(self) -> bool:
        """Whether some edge names an unknown node or port."""
        return len(self.walk.edges) < len(self.spec.edges)

    @cached_property
    def moved_paths(self) -> frozenset[str]:
        """Paths that an anneal or a trigger changes, in one spelling."""
        return frozenset(map(self.spelled, self.spec.graph.moved_paths))

    def values_in(self, phase: PhaseFacts) -> Mapping[str, Any]:
        """What is set in a phase, by paths in one spelling."""
        return self._in_one_spelling(phase.overrides)

    @cached_property
    def trigger_values(self) -> tuple[Mapping[str, Any], ...]:
        """What each trigger sets, likewise."""
        triggers = self.spec.schedule.triggers
        return tuple(self._in_one_spelling(trigger.do.set) for trigger in triggers)

    def _in_one_spelling(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.spelled(path): value for path, value in values.items()}

    def whole_number(self, phase: PhaseFacts, path: str, own: Any) -> Any:
        """What stands at a path in a phase; `own` where that sets no whole number, which is told
        elsewhere."""
        value = self.values_in(phase).get(path, own)
        return value if isinstance(value, int) else own

    def spelled(self, path: str) -> str:
        """A path as its place is named in full: without the port of an algorithm in the short form,
        edges by position; as it is written where it names nothing."""
        if path not in self._spellings:
            try:
                parts = find(self.spec, path).parts
            except SpecProblem:
                self._spellings[path] = path
            else:
                self._spellings[path] = ".".join(map(str, parts))
        return self._spellings[path]

    @cached_property
    def _drawn_targets(self) -> frozenset[Port]:
        return frozenset((edge.target.node, edge.target.port) for edge in self.spec.edges)

    @cached_property
    def _drawn_sources(self) -> frozenset[Port]:
        return frozenset((edge.source.node, edge.source.port) for edge in self.spec.edges)

    # ---- learning

    @cached_property
    def teaching_ports(self) -> frozenset[Port]:
        """Teaching ports at which an edge ends."""
        return frozenset(port for port in self._drawn_targets if self._teaches(port))

    def _teaches(self, port: Port) -> bool:
        kind = self.walk.kinds.get(port[0])
        found_port = PORTS[kind].inputs.get(port[1]) if kind is not None else None
        return found_port is not None and found_port.teaching

    def teaching_ports_of(self, node: str) -> tuple[str, ...]:
        """The connected teaching ports of one node, in the order of the port table."""
        kind = self.walk.kinds.get(node)
        if kind is None:
            return ()
        return tuple(p for p in PORTS[kind].teaching if (node, p) in self.teaching_ports)

    @cached_property
    def learners(self) -> tuple[str, ...]:
        """Nodes with a connected teaching port, in the order of the spec."""
        taught = {node for node, _ in self.teaching_ports}
        return tuple(node for node in self.nodes if node in taught)

    def algorithms(self, node: str, port: str) -> tuple[Algorithm, ...]:
        """What a node does with a teaching port."""
        return self._algorithms.get(node, {}).get(port, ())

    @cached_property
    def _algorithms(self) -> Mapping[str, Mapping[str, tuple[Algorithm, ...]]]:
        return {node: node_algorithms(self.spec, node) for node in self.nodes}

    @cached_property
    def rewards(self) -> tuple[tuple[str, ResolvedRewards], ...]:
        """Learners from rewards, with their algorithms completed by the presets."""
        return tuple(
            (name, resolve_rewards_algorithm(one))
            for name in self.learners
            if (name, "rewards") in self.teaching_ports
            for one in self.algorithms(name, "rewards")
            if isinstance(one, RewardsAlgorithm)
        )

    def rewarded_levels(self, node: str) -> Levels:
        """Levels of the rows that a learner from rewards is credited for: of what it wrote, in this
        step or before a buffer, what some live edge scores."""
        scored = [
            level
            for edge in self.walk.into(node, "rewards")
            if not self.is_dead(edge)
            for level in self.lineage.edge_levels(edge)
        ]
        own = self.lineage.own_levels(node)
        return frozenset(
            level
            for level in own
            if any(relate_pair(level, one) is not Relation.NONE for one in scored)
        )

    def buffers_in(self, levels: Iterable[Level]) -> list[str]:
        """Buffers that some of the levels come out of, by name."""
        return sorted({one.node for one in levels if self.walk.kinds.get(one.node) == "buffer"})

    def read_by(self, node: str, port: str) -> frozenset[str]:
        """What the algorithms of a teaching port read besides: `reference`, `values`, `prior`."""
        if (node, port) not in self._reads:
            found_inputs = (reads(one) for one in self.algorithms(node, port))
            self._reads[node, port] = frozenset[str]().union(*found_inputs)
        return self._reads[node, port]

    @cached_property
    def groups(self) -> Mapping[str, WeightsGroup]:
        return weights_groups(self.spec)

    @cached_property
    def group_of(self) -> Mapping[str, WeightsGroup]:
        """The weights group of each node that has weights."""
        return {node: group for group in self.groups.values() for node in group.members}

    def is_outside(self, path: str) -> bool:
        """Whether a path, or what it holds, leads out of `root`, where that is not allowed."""
        return self.leading_out(path) is not None

    def leading_out(self, path: str) -> str | None:
        """What of a path leads out of `root` where that is not allowed, in words."""
        if not self.is_confined or self.root is None:
            return None
        if path not in self._leading_out:
            self._leading_out[path] = leading_out(self.root, path)
        return self._leading_out[path]

    def model(self, node: str) -> Any:
        """The `model` section of a node, or nothing."""
        return self._models.get(node)

    @cached_property
    def _models(self) -> Mapping[str, Any]:
        found_models = ((name, model_of(node)) for name, node in self.nodes.items())
        return {name: model for name, model in found_models if model is not None}

    def rollout(self, node: str) -> Rollout | None:
        """The `rollout` section of a node, or nothing."""
        return self._rollouts.get(node)

    @cached_property
    def _rollouts(self) -> Mapping[str, Rollout]:
        writers = (ActorNode, VerifierNode)
        return {
            name: node.rollout
            for name, node in self.nodes.items()
            if isinstance(node, writers) and node.rollout is not None
        }

    def training(self, node: str) -> Training:
        """How the weights of a node are updated."""
        if node not in self._trainings:
            self._trainings[node] = training_of(self.spec, node)
        return self._trainings[node]

    # ---- time

    @cached_property
    def phases(self) -> tuple[PhaseFacts, ...]:
        """All phases in the order they are written."""
        schedule = self.spec.schedule
        if not schedule.phases:
            whole = PhaseFacts(
                name=None,
                path="schedule",
                section=None,
                overrides={},
                live=self.teaching_ports,
                fills=as_tuple(schedule.fill),
                times=1,
            )
            return (whole,)
        return tuple(self._phases_in(schedule.phases, "schedule.phases", {}, 1))

    @cached_property
    def phase_names(self) -> frozenset[str]:
        return frozenset(_names_in(self.spec.schedule.phases))

    @cached_property
    def actions(self) -> tuple[tuple[str, PhaseActions], ...]:
        """Everything that is done when a phase starts or a trigger fires, with its path."""
        found = list(_actions_in(self.spec.schedule.phases, "schedule.phases"))
        for index, trigger in enumerate(self.spec.schedule.triggers):
            found.append((f"schedule.triggers.{index}.do", trigger.do))
        return tuple(found)

    def _phases_in(
        self, items: Iterable[Any], path: str, overrides: Mapping[str, Any], times: int
    ) -> Iterator[PhaseFacts]:
        for index, item in enumerate(items):
            place, values = f"{path}.{index}", {**overrides, **item.set}
            if isinstance(item, PhaseGroup):
                inner = f"{place}.phases"
                yield from self._phases_in(item.phases, inner, values, times * item.repeat)
                continue
            until = (name.removesuffix(".full") for name in as_tuple(item.until))
            yield PhaseFacts(
                name=item.name,
                path=place,
                section=item,
                overrides=values,
                live=frozenset(port for name in item.learn for port in self._named_ports(name)),
                fills=tuple(dict.fromkeys((*as_tuple(item.fill), *until))),
                times=times,
            )

    def _named_ports(self, name: str) -> Iterator[Port]:
        node, _, port = name.partition(".")
        for one in self.teaching_ports_of(node):
            if port in ("", one):
                yield node, one

    def counts(self, phase: PhaseFacts, stand_ins: Mapping[str, Count] | None = None) -> RowCounts:
        """Rows of every table in one phase, where those of some nodes are known otherwise."""
        if stand_ins is None and (counted := self._counts.get(id(phase))) is not None:
            return counted[1]
        counts = RowCounts(
            self.lineage,
            overrides=phase.overrides,
            moved=self.moved_paths,
            delivers=lambda edge: not self.is_dead(edge, phase),
            stand_ins=stand_ins,
        )
        if stand_ins is None:
            self._counts[id(phase)] = phase, counts
        return counts

    # ---- machine

    @cached_property
    def hardware(self) -> HardwarePreset | None:
        """The machine in force, or nothing where its name is unknown."""
        return hardware_of(self.spec.hardware)


def a(word: str) -> str:
    """A word with its article."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def found(
    code: str,
    message: str,
    *,
    severity: Severity = Severity.ERROR,
    hint: str | None = None,
    node: str | None = None,
    field: str | None = None,
    text_line: int | None = None,
    fixes: tuple[Fix, ...] = (),
) -> Diagnostic:
    """One finding; an error where nothing else is said."""
    return Diagnostic(
        code=code,
        severity=severity,
        message=message,
        hint=hint,
        node=node,
        field=field,
        text_line=text_line,
        fixes=fixes,
    )


def _names_in(items: Iterable[Any]) -> Iterator[str]:
    for item in items:
        if item.name is not None:
            yield item.name
        if isinstance(item, PhaseGroup):
            yield from _names_in(item.phases)


def _actions_in(items: Iterable[Any], path: str) -> Iterator[tuple[str, PhaseActions]]:
    for index, item in enumerate(items):
        if item.do is not None:
            yield f"{path}.{index}.do", item.do
        if isinstance(item, PhaseGroup):
            yield from _actions_in(item.phases, f"{path}.{index}.phases")


MAIN_POOL = "main"
"""The pool over everything, where a loop names none."""


def hardware_of(section: Hardware) -> HardwarePreset | None:
    """The machine in force, or nothing where its name is unknown."""
    try:
        if section.gpu is not None:
            return presets.custom_hardware(
                nodes=section.nodes or 1,
                gpus_per_node=section.gpus_per_node or 1,
                gpu=section.gpu,
            )
        return presets.hardware(section.preset_name or "cpu")
    except PresetNotFound:
        return None
