"""Which stages a phase runs, and on what each waits: the step as the estimate prices it.

A light reading of the schedule: what a live teaching port needs, backwards along the edges. It
over-counts where the compiler would leave an input of a joined table at rest, never under. Knows
nothing of rows, memory or time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coloop.spec.algorithm import node_algorithms, reads
from coloop.spec.base import as_tuple
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.ports import HANDLES, PORTS
from coloop.spec.schedule import Phase, PhaseGroup

FIRST_STAGE = {
    "dataset": "load",
    "actor": "generate",
    "critic": "score",
    "reference": "score",
    "reward": "score",
    "verifier": "score",
    "template": "prepare",
    "filter": "prepare",
    "pairs": "prepare",
    "buffer": "read",
    "search": "generate",
}
"""The stage that gives a kind's outputs; an actor's `returns` come from `credit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStep:
    """One step of one phase."""

    name: str
    steps: int | None
    """How many of them the run has, where that is known."""
    live: tuple[tuple[str, str], ...]
    """Teaching ports (node, port)."""
    stages: tuple[str, ...]
    """Names in an order in which they can run."""
    after: dict[str, tuple[str, ...]]
    """What each stage waits for."""


def phase_steps(spec: LoopSpec, owners: dict[str, str]) -> tuple[PhaseStep, ...]:
    """A step of every phase; `owners` maps nodes to the owner of their weights."""
    schedule = spec.schedule
    if not schedule.phases:
        steps = schedule.steps if schedule.epochs is None else None
        live = tuple(
            (node, port) for node in spec.nodes for port in spec.graph.teaching_ports(node)
        )
        fills = as_tuple(schedule.fill)
        return (_Step(spec, owners, {}).unroll("run", steps, live, fills),)
    found = []
    for phase, rounds, overrides in _with_rounds(schedule.phases, 1, {}):
        live = tuple(_live_ports(spec, phase.learn))
        fills = tuple(
            {
                str(name).partition(".")[0]: None
                for name in (*as_tuple(phase.fill), *as_tuple(phase.until))
            }
        )
        steps = phase.steps or phase.max_steps
        found.append(
            _Step(spec, owners, overrides | phase.set).unroll(
                phase.name, steps * rounds if steps else None, live, fills
            )
        )
    return tuple(found)


def _with_rounds(
    items: Iterable[Phase | PhaseGroup], rounds: int, overrides: dict[str, object]
) -> Iterator[tuple[Phase, int, dict[str, object]]]:
    for item in items:
        if isinstance(item, PhaseGroup):
            yield from _with_rounds(item.phases, rounds * item.repeat, overrides | item.set)
        else:
            yield item, rounds, overrides


def _live_ports(spec: LoopSpec, learn: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in learn:
        node, _, port = text.partition(".")
        if node in spec.nodes:
            connected = spec.graph.teaching_ports(node)
            yield from ((node, p) for p in connected if p == port or not port)


class _Step:
    """Collects the stages of one phase."""

    def __init__(
        self,
        spec: LoopSpec,
        owners: dict[str, str],
        overrides: dict[str, object],
    ) -> None:
        self._spec, self._owners = spec, owners
        self._after: dict[str, dict[str, None]] = {}
        self._into: dict[str, list[Edge]] = {}
        for edge in spec.edges:
            is_known = edge.source.node in spec.nodes and edge.target.node in spec.nodes
            if is_known and not spec.graph.is_dead(edge, overrides):
                self._into.setdefault(edge.target.node, []).append(edge)

    def unroll(
        self,
        name: str,
        steps: int | None,
        live: tuple[tuple[str, str], ...],
        fills: tuple[str, ...],
    ) -> PhaseStep:
        for node, port in live:
            self._teach(node, port)
        for buffer in fills:
            if self._kind(buffer) == "buffer":
                self._need(f"{buffer}.write", self._edges(buffer, exclude=("seed",)))
        for stage in list(self._after):
            node, verb = stage.rsplit(".", 1)
            if verb in ("generate", "score"):
                learn = f"{self._owners.get(node, node)}.learn"
                if learn in self._after:
                    self._after[learn][stage] = None
        return PhaseStep(
            name=name,
            steps=steps,
            live=live,
            stages=tuple(self._in_order()),
            after={stage: tuple(before) for stage, before in self._after.items()},
        )

    def _kind(self, node: str) -> str:
        return self._spec.nodes[node].kind if node in self._spec.nodes else ""

    def _edges(
        self, node: str, ports: Iterable[str] | None = None, exclude: Iterable[str] = ()
    ) -> list[Edge]:
        wanted = None if ports is None else set(ports)
        return [
            edge
            for edge in self._into.get(node, ())
            if (wanted is None or edge.target.port in wanted)
            and edge.target.port not in exclude
            and not edge.rounds
        ]

    def _teach(self, node: str, port: str) -> None:
        owner = self._owners.get(node, node)
        learn = f"{owner}.learn"
        algorithms = node_algorithms(self._spec, node).get(port, ())
        serving = self._edges(node, {name for entry in algorithms for name in reads(entry)})
        if port == "rewards":
            self._need(f"{node}.credit", [*self._edges(node, [port]), *serving])
            self._need(f"{node}.{FIRST_STAGE[self._kind(node)]}", self._inputs(node))
            self._add(learn, f"{node}.credit")
        else:
            self._need(learn, [*self._edges(node, [port]), *serving])
            if port == "labels" and "score" in PORTS[self._kind(node)].stages:
                self._need(f"{node}.score", self._inputs(node))
        self._after.setdefault(learn, {})
        writers = [n for n, o in self._owners.items() if o == owner and self._writes(n)]
        if writers:
            self._add(f"{owner}.sync", learn)

    def _writes(self, node: str) -> bool:
        section = self._spec.nodes[node]
        return section.kind == "actor" or (
            section.kind == "verifier" and getattr(section, "rollout", None) is not None
        )

    def _inputs(self, node: str) -> list[Edge]:
        """Edges that a node's first stage works on: everything that is not read to learn."""
        ports = PORTS[self._kind(node)].inputs
        names = [name for name, port in ports.items() if port.phase != "learn"]
        return self._edges(node, names)

    def _need(self, stage: str, edges: Iterable[Edge]) -> None:
        self._after.setdefault(stage, {})
        for edge in edges:
            giver = self._giver(edge)
            if giver is None:
                continue
            known = giver in self._after
            self._add(stage, giver)
            if not known:
                node = edge.source.node
                inputs = (
                    self._credit_inputs(node) if giver.endswith(".credit") else self._inputs(node)
                )
                self._need(giver, () if giver.endswith(".read") else inputs)

    def _credit_inputs(self, node: str) -> list[Edge]:
        self._need(f"{node}.generate", self._inputs(node))
        return self._edges(node, ("rewards", "values", "reference"))

    def _giver(self, edge: Edge) -> str | None:
        """The stage that fills an output; a handle brings no table, and its node no stage."""
        node, port = edge.source.node, edge.source.port
        output = PORTS[self._kind(node)].outputs.get(port)
        if output is None or output.type in HANDLES or self._kind(node) not in FIRST_STAGE:
            return None
        if self._kind(node) == "actor" and port == "returns":
            return f"{node}.credit"
        return f"{node}.{FIRST_STAGE[self._kind(node)]}"

    def _add(self, stage: str, before: str) -> None:
        if before != stage:
            self._after.setdefault(stage, {})[before] = None
            self._after.setdefault(before, {})

    def _in_order(self) -> list[str]:
        """Topological order; what a half-drawn circle holds comes as it was found."""
        done: dict[str, None] = {}
        open_now: set[str] = set()

        def visit(stage: str) -> None:
            if stage in done or stage in open_now:
                return
            open_now.add(stage)
            for before in self._after[stage]:
                visit(before)
            done[stage] = None

        for stage in self._after:
            visit(stage)
        return list(done)
