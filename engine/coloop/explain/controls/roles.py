"""Who learns from whom in a loop: the main learner, its partners, and when they train together.

The main learner is the one that the loop's main metric measures: `run.best`, else the first metric
of the first evaluation, else the mean score of the first scorer without weights. A partner is
another learner whose texts or scores reach what the main one is taught, another role on the same
weights that does so, or a snapshot of learning weights that is refreshed again and again, such as
the opponent of SPIN. Critics, and references that do not teach, are part of an algorithm and no
partners.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from coloop.errors import ControlRefused
from coloop.plan.phases import FlatPhase, flat_phases, turns
from coloop.spec.base import as_tuple
from coloop.spec.graph import Edge, LoopSpec, reach
from coloop.spec.groups import owner_of, weights_groups
from coloop.spec.model import RefreshAt, RefreshEvery, SnapshotModel
from coloop.spec.nodes import EvaluateNode, RewardNode, model_of
from coloop.spec.ports import PORTS

PART_OF_AN_ALGORITHM = frozenset({"critic", "reference"})
MEAN_SCORE = "score/mean"
MEASURED_PORTS = ("scores", "rollouts", "selectors", "labels", "pairs")


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The learners of one loop."""

    spec: LoopSpec
    main: str
    peers: tuple[str, ...]
    """Other learners that the metric measures as directly, such as the writer of the other half."""
    metric: str | None
    """`node.metric` by which runs are compared; None if nothing measures the main learner."""

    @cached_property
    def phases(self) -> tuple[FlatPhase, ...]:
        return flat_phases(self.spec)

    @cached_property
    def fed_by(self) -> frozenset[str]:
        """Other nodes whose rows or scores reach what the main learner is taught."""
        graph = self.spec.graph
        sources = [
            edge.source.node
            for port in graph.teaching_ports(self.main)
            for edge in graph.teaching_edges_into(self.main, port)
        ]
        return self._above([*sources, self.main]) - {self.main}

    @cached_property
    def learners(self) -> tuple[str, ...]:
        """Partners that are taught themselves."""
        taught = self.spec.graph.learners()
        found = {name for name in self.fed_by if name in taught and not self._serves(name)}
        for name in self.fed_by:  # a role without lessons on weights that learn by another role
            owner = owner_of(self.spec, name)
            if owner is not None and owner != self._owner and not self._serves(name):
                found |= {other for other in taught if owner_of(self.spec, other) == owner}
        found -= {name for name in found if self._serves(name)}
        return tuple(name for name in taught if name in found and name != self.main)

    @cached_property
    def followers(self) -> tuple[str, ...]:
        """Partners whose weights follow those of a learner: snapshots that are refreshed again and
        again, and roles without lessons on the main learner's own weights."""
        groups = weights_groups(self.spec)
        taught = self.spec.graph.learners()
        found = []
        for name in self.spec.nodes:
            if name not in self.fed_by or name in taught or self._serves(name):
                continue
            owner = owner_of(self.spec, name)
            if owner is None:
                continue
            if (owner == self._owner and name != self.main) or self._keeps_moving(owner):
                found.append(name if owner == self._owner else owner)
        return tuple(dict.fromkeys(name for name in found if name in groups or name in self.fed_by))

    @property
    def partners(self) -> tuple[str, ...]:
        return (*self.learners, *self.followers)

    @cached_property
    def fed_ports(self) -> tuple[str, ...]:
        """Teaching ports of the main learner that partners reach."""
        graph = self.spec.graph
        owners = {self.owner_of(name) for name in self.partners} - {self._owner}
        fed = []
        for port in graph.teaching_ports(self.main):
            edges = graph.teaching_edges_into(self.main, port)
            above = self._above(edge.source.node for edge in edges) | self._above_own_rows(port)
            if set(self.partners) & above or any(self.owner_of(name) in owners for name in above):
                fed.append(port)
        return tuple(fed)

    @cached_property
    def begins(self) -> FlatPhase | None:
        """The phase with which training together begins: the first that trains a port of the main
        learner that partners reach, by rewards or the like rather than by demonstrations, from
        which all may start; None if there is none."""
        first = next((turn for turn, phase in self._turns if self._is_together(phase)), None)
        return None if first is None else dict(self._turns)[first]

    @cached_property
    def together(self) -> tuple[FlatPhase, ...]:
        """Phases that run at least once when training together has begun."""
        if self.begins is None:
            return ()
        first = next(turn for turn, phase in self._turns if phase is self.begins)
        late = {phase.index for turn, phase in self._turns if turn >= first}
        return tuple(phase for phase in self.phases if phase.index in late)

    @cached_property
    def _turns(self) -> list[tuple[int, FlatPhase]]:
        return [(at, self.phases[turn.index]) for at, turn in enumerate(turns(self.spec))]

    def _is_together(self, phase: FlatPhase) -> bool:
        ports = [port for port in self.fed_ports if port != "demonstrations"] or self.fed_ports
        return any((self.main, port) in phase.live for port in ports)

    def _above_own_rows(self, port: str) -> frozenset[str]:
        """Nodes above the main learner's own rows, where a port teaches these."""
        info = PORTS[self.spec.nodes[self.main].kind].inputs[port]
        return self._above([self.main]) if info.of is not None else frozenset()

    def _above(self, starts: Iterable[str]) -> frozenset[str]:
        return above(self.spec, starts)

    def owner_of(self, name: str) -> str:
        """The node that owns a node's weights; itself without weights."""
        return owner_of(self.spec, name) or name

    @cached_property
    def _owner(self) -> str | None:
        return owner_of(self.spec, self.main)

    def _serves(self, name: str) -> bool:
        """Whether a node only serves an algorithm: a critic, or a reference that is no teacher."""
        graph = self.spec.graph
        is_teacher = any(graph.teaches(edge) for edge in graph.edges_out_of(name, "log_probs"))
        return self.spec.nodes[name].kind in PART_OF_AN_ALGORITHM and not is_teacher

    def _keeps_moving(self, name: str) -> bool:
        """Whether a snapshot of weights that learn is refreshed more than once."""
        model = model_of(self.spec.nodes[name])
        if not isinstance(model, SnapshotModel):
            return False
        source = owner_of(self.spec, model.of)
        groups = weights_groups(self.spec)
        if source not in groups or not groups[source].trainable:
            return False
        match model.refresh:
            case RefreshEvery():
                return True
            case RefreshAt(at=at):
                wanted = as_tuple(at)
                return sum(phase.name in wanted for _, phase in self._turns) > 1
        return False


def above(spec: LoopSpec, starts: Iterable[str]) -> frozenset[str]:
    """These nodes and all whose rows or scores reach them, without what learners are taught."""

    def givers(name: str) -> list[str]:
        edges = spec.graph.edges_into(name)
        return [edge.source.node for edge in edges if is_forward(spec, edge)]

    return frozenset(name for name in reach(starts, givers) if name in spec.nodes)


def is_forward(spec: LoopSpec, edge: Edge) -> bool:
    port = spec.graph.in_port(edge.target)
    return port is not None and port.phase in ("generate", "score")


def roles_of(spec: LoopSpec, learner: str | None = None) -> Roles:
    """The roles of a loop.

    Args:
        learner: the main learner; None: the one that the loop's main metric measures.

    Raises:
        ControlRefused: nothing learns, or `learner` does not.
    """
    known = spec.graph.learners()
    if not known:
        raise ControlRefused("the loop has no learner, so there is nothing to compare")
    metrics = list(_metrics(spec))
    if learner is not None:
        if learner not in known:
            raise ControlRefused(f"`{learner}` does not learn; learners: {names(known)}", learner)
        own = (metric for metric in metrics if learner in _measured(spec, metric))
        return Roles(spec=spec, main=learner, peers=(), metric=next(own, None))
    metric = next(iter(metrics), None)
    found = _measured(spec, metric) if metric is not None else ()
    found = found or tuple(name for name in known if spec.kind_of(name) == "actor") or known
    return Roles(spec=spec, main=found[0], peers=found[1:], metric=metric)


def _metrics(spec: LoopSpec) -> Iterator[str]:
    """Metrics by which loops can be compared: `run.best`, those of evaluations, and the mean score
    of each scorer without weights."""
    if spec.run.best is not None:
        yield spec.run.best
    for name, node in spec.nodes.items():
        if isinstance(node, EvaluateNode):
            scorers = {edge.source.node for edge in spec.graph.edges_into(name, "scores")}
            scorer = f"{min(scorers)}." if len(scorers) > 1 else ""
            yield from (f"{name}.{scorer}{metric}" for metric in node.metrics)
    for name, node in spec.nodes.items():
        if isinstance(node, RewardNode) and model_of(node) is None:
            yield f"{name}.{MEAN_SCORE}"


def measured_scorers(spec: LoopSpec, metric: str) -> tuple[str, ...]:
    """The nodes whose scores a metric measures: of an evaluation the scorer that it names, else all
    at the first connected port."""
    probe, _, rest = metric.partition(".")
    if not isinstance(spec.nodes.get(probe), EvaluateNode):
        return (probe,) if probe in spec.nodes else ()
    scorer = rest.partition(".")[0]
    sources = [edge.source.node for edge in spec.graph.edges_into(probe, "scores")]
    if scorer in sources:
        return (scorer,)
    for port in MEASURED_PORTS:
        edges = spec.graph.edges_into(probe, port)
        if edges:
            return tuple(dict.fromkeys(edge.source.node for edge in edges))
    return ()


def _measured(spec: LoopSpec, metric: str) -> tuple[str, ...]:
    """The learners that a metric measures most directly, in the order in which they are written."""
    known = spec.graph.learners()
    section = spec.nodes.get(metric.partition(".")[0])
    if isinstance(section, EvaluateNode) and section.of:
        return (section.of[0].partition(".")[0],)
    level = list(measured_scorers(spec, metric))
    seen: set[str] = set()
    while level:
        found = {learner for name in level for learner in _learner_of(spec, name)}
        if found:
            return tuple(name for name in known if name in found)
        seen |= set(level)
        edges = [edge for name in level for edge in spec.graph.edges_into(name)]
        sources = [edge.source.node for edge in edges if is_forward(spec, edge)]
        level = [name for name in dict.fromkeys(sources) if name not in seen]
    return ()


def _learner_of(spec: LoopSpec, name: str) -> tuple[str, ...]:
    """The node itself if it learns, else the learners on its weights."""
    known = spec.graph.learners()
    if name in known:
        return (name,)
    owner = owner_of(spec, name)
    if owner is None:
        return ()
    return tuple(other for other in known if owner_of(spec, other) == owner)


def names(found: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(f"`{name}`" for name in found)


def told(found: Collection[str], verb: str) -> str:
    """Names with a verb in the third person, such as `a` learns, or `a`, `b` learn."""
    return f"{names(found)} {verb if len(found) == 1 else VERBS[verb]}"


VERBS = {
    "learns": "learn",
    "stays": "stay",
    "leaves": "leave",
    "shares": "share",
    "imitates": "imitate",
    "writes": "write",
}
