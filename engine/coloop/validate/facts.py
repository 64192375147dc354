"""What the rules look at: a spec with its walk, lineage, phases and weights groups, each computed
once.

Rules are pure functions `(Facts) -> iterable of Diagnostic`. They must hold on a half-drawn loop:
edges may name nodes that do not exist, nodes may stand alone, phases may name anything.

Invariants: reading facts never raises; paths are relative to `root`, without which no file is read.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from coloop.errors import PresetNotFound, SpecProblem
from coloop.plan.phases import FlatPhase, flat_phases
from coloop.spec import presets
from coloop.spec.algorithm import (
    Algorithm,
    ResolvedRewards,
    RewardsAlgorithm,
    node_algorithms,
    off_policy_of,
    reads,
    resolve_rewards_algorithm,
)
from coloop.spec.diagnostics import Diagnostic, Fix, closest
from coloop.spec.graph import Edge, LoopSpec, reach
from coloop.spec.groups import rollout_of, training_of, weights_groups
from coloop.spec.lineage import Level, Levels, Lineage, Relation, compute_lineage, relate_pair
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.lineage.walk import Walk
from coloop.spec.nodes import BaseNode, DatasetNode, Node, model_of
from coloop.spec.paths import find
from coloop.spec.ports import PORTS
from coloop.spec.presets import HardwarePreset
from coloop.spec.rollout import Rollout
from coloop.spec.row_counts import Count
from coloop.spec.schedule import PhaseActions
from coloop.validate.sources import Glance, glances

N = TypeVar("N", bound=BaseNode)
Port = tuple[str, str]


class Facts:
    """Everything that rules read."""

    def __init__(
        self,
        spec: LoopSpec,
        root: Path | None = None,
        *,
        known_columns: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """
        Args:
            known_columns: by dataset node, the assumed columns of its source; default: those of
                files that were read whole.
        """
        self.spec = spec
        self.root = root
        self.nodes: Mapping[str, Node] = spec.nodes
        self.glances: Mapping[str, Glance] = glances(spec, root)
        self.known_columns = known_columns or {
            name: self.columns_of(name) for name, seen in self.glances.items() if seen.is_whole
        }
        self.lineage: Lineage
        self.lineage, self.lineage_findings = compute_lineage(spec, self.known_columns)
        self.walk = Walk(spec)
        self.learners = spec.graph.learners()
        self.groups = weights_groups(spec)
        self.group_of = {node: group for group in self.groups.values() for node in group.members}
        self.spelled = cache(partial(_spelled, spec))
        """A path in canonical form: without the port of the short form, edges by position;
        invalid paths unchanged."""
        self.training = cache(partial(training_of, spec))
        self.algorithms_of = cache(partial(node_algorithms, spec))
        self.teaching_ports_of = cache(spec.graph.teaching_ports)
        self._counts: dict[int, tuple[FlatPhase, RowCounts]] = {}
        """By the phase's identity; storing the phase keeps it alive."""

    def columns_of(self, dataset: str, *, everywhere: bool = False) -> frozenset[str]:
        """Mapped names and columns of a source that was read: of any row, or of every row."""
        seen, node = self.glances[dataset], self.nodes[dataset]
        mapped = frozenset(node.columns) if isinstance(node, DatasetNode) else frozenset()
        return mapped | (seen.common if everywhere else seen.columns or frozenset())

    def of(self, kind: type[N]) -> list[tuple[str, N]]:
        return [(name, node) for name, node in self.nodes.items() if isinstance(node, kind)]

    # ---- edges

    def place(self, edge: Edge) -> str:
        """The path of an edge in diagnostics and fixes."""
        return f"edges.{self.spec.graph.place_of(edge)}"

    def is_connected(self, node: str, port: str) -> bool:
        """Whether any edge, valid or not, ends at the port."""
        return bool(self.spec.graph.edges_into(node, port))

    def is_alone(self, node: str) -> bool:
        """Whether a node has no edges, as when it has just been drawn."""
        return not (self.spec.graph.edges_into(node) or self.spec.graph.edges_out_of(node))

    def is_used(self, node: str, port: str) -> bool:
        """Whether any edge, valid or not, starts at the port."""
        return bool(self.spec.graph.edges_out_of(node, port))

    def whence(self, *starts: str) -> set[str]:
        """These nodes and all from which their rows come, also through buffers.

        Rows in a buffer keep their scores. `Walk.upstream` ends at a buffer.
        """

        def givers(name: str) -> set[str]:
            if self.walk.kinds.get(name) == "buffer":
                return {edge.source.node for edge in self.walk.into(name)}
            return self.walk.upstream(name)

        return set(reach(starts, givers))

    def is_dead(self, edge: Edge, phase: FlatPhase | None = None) -> bool:
        """Whether the edge is dead in the phase; without one, in every phase."""
        if phase is None:
            return self.spec.graph.is_dead_throughout(edge)
        return self.spec.graph.is_dead(edge, phase.overrides)

    def alive(self, node: str, *ports: str, phase: FlatPhase | None = None) -> list[Edge]:
        """Edges into these ports that are not dead in the phase; without one, in some phase."""
        return [edge for edge in self.walk.into(node, *ports) if not self.is_dead(edge, phase)]

    def levels_of(self, edges: Iterable[Edge]) -> Levels:
        """Levels of the rows that edges bring."""
        return frozenset[Level]().union(*map(self.lineage.edge_levels, edges))

    def has_broken_input(self, node: str) -> bool:
        """Whether an edge ends at an unknown port of the node, so that some input was intended."""
        inputs = PORTS[self.walk.kinds[node]].inputs
        return any(edge.target.port not in inputs for edge in self.spec.graph.edges_into(node))

    @cached_property
    def has_broken_edges(self) -> bool:
        return len(self.walk.edges) < len(self.spec.edges)

    @cached_property
    def moved_paths(self) -> frozenset[str]:
        """Paths that an anneal or a trigger changes, normalized."""
        return frozenset(map(self.spelled, self.spec.graph.moved_paths))

    def values_in(self, phase: FlatPhase) -> Mapping[str, Any]:
        """Overrides of a phase, by normalized paths."""
        return self._in_one_spelling(phase.overrides)

    @cached_property
    def trigger_values(self) -> tuple[Mapping[str, Any], ...]:
        """Overrides of each trigger, by normalized paths."""
        triggers = self.spec.schedule.triggers
        return tuple(self._in_one_spelling(trigger.do.set) for trigger in triggers)

    def _in_one_spelling(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {self.spelled(path): value for path, value in values.items()}

    def whole_number(self, phase: FlatPhase, path: str, own: Any) -> Any:
        """Value of a path in a phase; `own` unless overridden by a whole number (other values are
        reported elsewhere)."""
        value = self.values_in(phase).get(path, own)
        return value if isinstance(value, int) else own

    # ---- learning

    @cached_property
    def teaching_ports(self) -> frozenset[Port]:
        return frozenset((n, port) for n in self.learners for port in self.teaching_ports_of(n))

    def algorithms(self, node: str, port: str) -> tuple[Algorithm, ...]:
        return self.algorithms_of(node).get(port, ())

    @cached_property
    def rewards(self) -> tuple[tuple[str, ResolvedRewards], ...]:
        """Each learner from rewards with its algorithm, resolved; one entry per algorithm."""
        return tuple(
            (name, resolve_rewards_algorithm(entry))
            for name in self.learners
            if (name, "rewards") in self.teaching_ports
            for entry in self.algorithms(name, "rewards")
            if isinstance(entry, RewardsAlgorithm)
        )

    def rewarded_levels(self, node: str) -> Levels:
        """Levels of a learner's own rows, from this step or a buffer, to which some live score
        relates."""
        scored = self.levels_of(self.alive(node, "rewards"))
        own = self.lineage.own_levels(node)
        return frozenset(
            level
            for level in own
            if any(relate_pair(level, other) is not Relation.NONE for other in scored)
        )

    def is_of_others(self, node: str, edge: Edge) -> bool:
        """Whether an edge brings an off-policy learner rows of other nodes, and no score of its
        own rows."""
        if edge.aggregate is not None or off_policy_of(self.spec, node) is None:
            return False
        return not self.lineage.edge_levels(edge) & self.lineage.own_levels(node)

    def buffers_in(self, levels: Iterable[Level]) -> list[str]:
        """Names of buffers from which some of the levels come."""
        return sorted(
            {level.node for level in levels if self.walk.kinds.get(level.node) == "buffer"}
        )

    def read_by(self, node: str, port: str) -> frozenset[str]:
        """Inputs that the algorithms of a teaching port read: `reference`, `values`, `prior`."""
        return frozenset[str]().union(*map(reads, self.algorithms(node, port)))

    def local(self, path: str) -> Path | None:
        """File of a path in the loop; None without `root`."""
        return None if self.root is None else self.root / os.path.expanduser(path)

    def model(self, node: str) -> Any:
        return model_of(self.nodes[node]) if node in self.nodes else None

    def rollout(self, node: str) -> Rollout | None:
        return rollout_of(self.spec, node)

    # ---- time

    @cached_property
    def phases(self) -> tuple[FlatPhase, ...]:
        """All phases in spec order; without any, one with all connected teaching ports live."""
        return flat_phases(self.spec)

    @cached_property
    def phase_names(self) -> tuple[str, ...]:
        return tuple(item.name for _, item in self.spec.schedule.items() if item.name)

    @cached_property
    def actions(self) -> tuple[tuple[str, PhaseActions], ...]:
        """All actions of phases and triggers, with their paths."""
        schedule = self.spec.schedule
        starts = [(f"{path}.do", item.do) for path, item in schedule.items() if item.do]
        fires = [
            (f"schedule.triggers.{i}.do", trigger.do) for i, trigger in enumerate(schedule.triggers)
        ]
        return (*starts, *fires)

    def counts(self, phase: FlatPhase, stand_ins: Mapping[str, Count] | None = None) -> RowCounts:
        """Row counts of one phase; `stand_ins` replaces those of some nodes."""
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
        """The hardware preset; None if its name is unknown."""
        try:
            return presets.hardware_of(self.spec.hardware)
        except PresetNotFound:
            return None


def a(word: str) -> str:
    """A word with its indefinite article."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


Rule = Callable[[Facts], Iterator[Diagnostic]]


def rules_of(family: ModuleType) -> list[Rule]:
    """The rules of a module in order: its public functions `(Facts) -> Iterator[Diagnostic]`."""
    wanted = {"facts": Facts, "return": Iterator[Diagnostic]}
    return [
        rule
        for name, rule in vars(family).items()
        if isinstance(rule, FunctionType)
        and rule.__module__ == family.__name__
        and not name.startswith("_")
        and rule.__annotations__ == wanted
    ]


def corrections(
    at: str, word: str, known: Iterable[str], title: str = "Change to {}"
) -> tuple[Fix, ...]:
    """A fix that sets `at` to the known name most similar to `word`; empty if none is similar."""
    return tuple(Fix.set(title.format(near), at, near) for near in closest(word, known, limit=1))


def _spelled(spec: LoopSpec, path: str) -> str:
    try:
        return ".".join(map(str, find(spec, path).parts))
    except SpecProblem:
        return path
