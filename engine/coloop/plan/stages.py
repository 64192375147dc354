"""One unrolling of the graph: the stages of a step, what each waits for, and the regions that
repeat some of them.

    problems.load                                   (step)
    ├─ rounds: ask.prepare ── alice.generate        a region, twice
    └─ slice of keep: mark.score ── keep.prepare    a slice, until it has enough

Works on drafts, even with cycles or missing nodes: `problems` says why stages cannot be ordered,
and the compiler refuses such a loop.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from coloop.plan.closure import (
    USES_WEIGHTS,
    WRITES,
    Closure,
    Found,
    Givers,
    Goals,
    Serves,
    StageKey,
)
from coloop.plan.types import PhasePlan, Refill, Rounds, Stage
from coloop.spec.graph import Edge, LoopSpec, reach
from coloop.spec.lean import record
from coloop.spec.lineage import Lineage, RoundsRegion
from coloop.spec.nodes import FilterNode
from coloop.spec.refills import Givers as NodeGivers
from coloop.spec.refills import Region, followers, regions_of

# Slices of a step that a filter with `fill` repeats, and the order of the other stages.
#
#     problems.load ─┬─ a.generate ── sa.score ── fa.prepare    two slices; what both begin with
#                    └─ b.generate ── sb.score ── fb.prepare    runs once, in their first pass
#
# A stage that reads rows of a slice without being part of it runs after the slice's filter. A slice
# that reads another's rows runs after all of it. Slices that only share their first stages are
# independent: each sees its own passes, and the single run of the shared stages.

REPEATED = ("load", "read", "generate", "score", "prepare")
"""Verbs of stages that may be repeated; a node has at most one of them."""


@record
class Slices:
    regions: tuple[Region, ...] = ()
    waits: Mapping[str, frozenset[str]]
    """By filter, the filters whose slices run before its slice."""

    def piece(self, node: str, verb: str) -> str | None:
        """The filter in whose slice a stage first runs; None if it is in no slice, or several share
        it."""
        own = self._own(node) if verb in REPEATED else []
        return own[0].filter if len(own) == 1 else None

    def filters_before(self, node: str, verb: str, giver: str) -> list[str]:
        """Filters that a stage waits for because `giver`, whose rows it reads, is in their
        slices."""
        mine = [r for r in self.regions if verb in REPEATED and node in r.nodes]
        filters = []
        for region in self.regions:
            if giver not in region.nodes or region in mine:
                continue
            shares = any(
                giver in slice_.nodes and region.filter not in self.waits[slice_.filter]
                for slice_ in mine
            )
            if not shares:
                filters.append(region.filter)
        return filters

    def refill(
        self, spec: LoopSpec, region: Region, stages: Sequence[Stage], once: tuple[str, ...]
    ) -> Refill:
        """The slice of one filter for the plan. `stages`: all stages of the step in order."""
        section = spec.nodes[region.filter]
        assert isinstance(section, FilterNode)
        fill = section.fill
        assert fill is not None
        members = [s for s in stages if s.verb in REPEATED and s.node in region.nodes]
        own = [s for s in members if self.piece(s.node, s.verb) == region.filter]
        shared = [s for s in members if region in self._own(s.node) and s not in own]
        return Refill(
            filter=region.filter,
            sources=region.sources,
            stages=tuple(stage.name for stage in members),
            first_pass=tuple(stage.name for stage in own),
            shared=tuple(stage.name for stage in shared),
            once=once,
            max_rounds=fill.max_rounds,
            only_lacking=fill.groups == "all" and fill.from_ is not None,
        )

    def _own(self, node: str) -> list[Region]:
        """Slices that contain a node, without those that run after another of them."""
        holding = [region for region in self.regions if node in region.nodes]
        names = {region.filter for region in holding}
        return [region for region in holding if names.isdisjoint(self.waits[region.filter])]


def slices_of(spec: LoopSpec, givers: NodeGivers, rounds: Iterable[frozenset[str]]) -> Slices:
    """Slices among the nodes that give rows in this step. `rounds`: the nodes of each region of
    rounds."""
    regions = regions_of(spec, givers, (region & givers.keys() for region in rounds))
    return Slices(regions=regions, waits=followers(regions, givers))


def edges_of_first_pass(
    nodes: Collection[str], edges: Iterable[Edge], is_concat: Callable[[str, str], bool]
) -> tuple[str, ...]:
    """Keys of edges that deliver in the first pass or round only: edges from outside into `spare`,
    or into an input that concatenates their rows with those of repeated nodes. In later passes
    these rows would be processed again."""
    put_together = [
        edge
        for edge in edges
        if edge.target.node in nodes
        and (edge.target.port == "spare" or is_concat(edge.target.node, edge.target.port))
    ]
    renewed = {edge.target.node for edge in put_together if edge.source.node in nodes}
    return tuple(
        edge.key
        for edge in put_together
        if edge.source.node not in nodes
        and (edge.target.port == "spare" or edge.target.node in renewed)
    )


class Regions:
    """The slices and regions of rounds of one step, and the stages in each."""

    def __init__(self, keys: Iterable[StageKey], slices: Slices, lineage: Lineage) -> None:
        self.rounds: list[RoundsRegion] = []
        self.problems: list[str] = []
        """Regions that overlap without nesting."""
        self.within: dict[StageKey, tuple[str, ...]] = {}
        """Regions of each stage, outermost first."""
        repeated = [key for key in keys if key[1] in REPEATED]
        members: dict[str, set[StageKey]] = {}
        for key in repeated:
            piece = slices.piece(*key)
            if piece is not None:
                members.setdefault(piece, set()).add(key)
        for region in lineage.regions:
            inside = {key for key in repeated if key[0] in region.nodes}
            if not inside:
                continue
            name = region.name
            across = [
                other
                for other, held in members.items()
                if held & inside and not held <= inside and not inside <= held
            ]
            if across:
                self.problems.append(f"the {name} and the slice of {across[0]} overlap")
            else:
                members[name] = inside
                self.rounds.append(region)
        for name in sorted(members, key=lambda name: -len(members[name])):
            for key in members[name]:
                self.within[key] = (*self.within.get(key, ()), name)

    def planned(
        self,
        stages: Sequence[Stage],
        edges: Iterable[Edge],
        is_concat: Callable[[str, str], bool],
    ) -> tuple[Rounds, ...]:
        """The regions of rounds for the plan. `stages`: all in order; `edges`: those that deliver
        to stages that may be repeated."""
        delivering = list(edges)
        planned = []
        for region in self.rounds:
            name = region.name
            members = tuple(stage.name for stage in stages if name in stage.within)
            branch = next((edge.branch for edge in region.edges if edge.branch), None)
            planned.append(
                Rounds(
                    name=name,
                    edges=tuple(edge.key for edge in region.edges),
                    stages=members,
                    once=edges_of_first_pass(region.nodes, [*delivering, *region.edges], is_concat),
                    rounds=region.rounds,
                    branch=branch or "one",
                )
            )
        return tuple(planned)


# The stages of a step and their order.


NO_SLICES: Final = Slices(waits={})


@record
class Step:
    stages: tuple[Stage, ...]
    """In sequential order."""
    refills: tuple[Refill, ...] = ()
    regions: tuple[Rounds, ...] = ()
    """Regions of rounds."""

    @classmethod
    def of(cls, phase: PhasePlan) -> "Step":
        """The step of a phase in which no learner pauses."""
        return cls(stages=phase.stages, refills=phase.refills, regions=phase.regions)


@dataclass
class Unrolling:
    """Stages of a spec under some goals, over the edges of one lineage."""

    spec: LoopSpec
    lineage: Lineage
    """Of the live edges of the phase."""
    serves: Serves
    """Maps a teaching port (node, port) to the serving ports that its algorithm reads."""
    pool_of: Callable[[str, str], str | None]
    """Pool of a stage (node, verb); None for the driver."""
    groups: Mapping[str, str]
    """The weights group of each node; a node without weights is its own."""
    problems: list[str] = field(default_factory=list)
    """Why stages cannot be ordered, in words."""

    def __post_init__(self) -> None:
        self._givers = Givers(self.lineage)
        self._forward = frozenset(id(edge) for edge in self.lineage.walk.forward_edges)
        self._spec_order = {node: position for position, node in enumerate(self.spec.nodes)}

    def step(self, goals: Goals) -> Step:
        closure = self._closure()
        entries = closure.of(goals)
        edges = _repeated_edges(entries)
        rounds = (region.nodes for region in self.lineage.regions)
        slices = slices_of(self.spec, self._givers_among(entries), rounds)
        stages, regions = self._ordered(entries, slices)
        refills = [
            slices.refill(
                self.spec,
                region,
                stages,
                edges_of_first_pass(region.nodes, edges, closure.is_concat),
            )
            for region in slices.regions
        ]
        positions = {stage.name: position for position, stage in enumerate(stages)}
        return Step(
            stages=stages,
            refills=tuple(
                sorted(
                    (r for r in refills if r.first_pass), key=lambda r: positions[r.first_pass[0]]
                )
            ),
            regions=regions.planned(stages, edges, closure.is_concat),
        )

    def stages(self, goals: Goals) -> tuple[Stage, ...]:
        """Stages in execution order, each once."""
        return self._ordered(self._closure().of(goals), NO_SLICES)[0]

    def slice_after(self, node: str, ports: Iterable[tuple[str, str]]) -> tuple[Step, Step]:
        """The stages from a node, without its own, to these output ports; and those that they need
        besides, which are not downstream of the node. Inputs that concatenate rows of both get only
        the former."""
        below = self.below(node)
        closure = self._closure(halt=node, below=below)
        entries = closure.of(Goals(wanted=frozenset(ports)))
        kept = {key: entry for key, entry in entries.items() if key[0] in below and key[0] != node}
        beside = {key: entry for key, entry in entries.items() if key[0] not in below}
        return self._without_slices(kept, closure), self._without_slices(beside, closure)

    def _without_slices(self, entries: Mapping[StageKey, Found], closure: Closure) -> Step:
        stages, regions = self._ordered(entries, NO_SLICES)
        planned = regions.planned(stages, _repeated_edges(entries), closure.is_concat)
        return Step(stages=stages, regions=planned)

    def below(self, node: str) -> frozenset[str]:
        """The node and all nodes downstream in this step, over all rounds, up to buffers."""

        def onward(name: str) -> Iterator[str]:
            edges = [e for e in self.lineage.walk.out_of(name) if id(e) in self._forward]
            for target in (edge.target.node for edge in edges):
                if self.spec.nodes[target].kind != "buffer":
                    yield from self._going_round(target)
            for callee in self._givers.calls(name):
                given = self.lineage.walk.out_of(callee, "rollouts")
                if any(name in self._givers.nodes_of(edge) for edge in given):
                    yield from self._going_round(callee)

        return frozenset(reach([node], onward))

    def _going_round(self, node: str) -> Iterable[str]:
        region = self.lineage.region_of(node)
        return (node, *sorted(region.nodes if region is not None else ()))

    def sources_of(self, ports: Iterable[tuple[str, str]]) -> tuple[Stage, ...]:
        return self.stages(Goals(wanted=frozenset(ports)))

    def live_edges(self, node: str, port: str) -> list[Edge]:
        return self._closure().live_edges(node, port)

    def serving_edges(self, node: str, port: str, serving: str) -> list[Edge]:
        return self._closure().serving_edges(node, port, serving)

    def _closure(self, halt: str | None = None, below: frozenset[str] = frozenset()) -> Closure:
        return Closure(self.spec, self.lineage, self._givers, self.serves, self.groups, halt, below)

    def _ordered(
        self, entries: Mapping[StageKey, Found], slices: Slices
    ) -> tuple[tuple[Stage, ...], Regions]:
        before = self._waits(entries, slices)
        regions = Regions(entries, slices, self.lineage)
        order = Order(
            before,
            lambda key: regions.within.get(key, ()),
            lambda key: self._spec_order.get(key[0], 0),
        )
        for circle in order.circles:
            names = " → ".join(map(".".join, circle))  # type: ignore[arg-type]
            self.problems.append(f"stages depend on each other: {names}")
        self.problems += regions.problems
        positions = {key: position for position, key in enumerate(order.keys)}
        stages = tuple(
            self._stage(
                key,
                entries[key],
                sorted(before[key], key=positions.__getitem__),
                regions.within.get(key, ()),
            )
            for key in order.keys
        )
        return stages, regions

    def _waits(
        self, entries: Mapping[StageKey, Found], slices: Slices
    ) -> dict[StageKey, set[StageKey]]:
        before: dict[StageKey, set[StageKey]] = {key: set() for key in entries}
        for key, entry in entries.items():
            for edge in entry.edges.values():
                for giver in self._givers.of(edge):
                    if giver in entries and giver != key:
                        before[key].add(giver)
                        repeated = giver[1] in REPEATED
                        filters = slices.filters_before(*key, giver[0]) if repeated else []
                        before[key].update((name, "prepare") for name in filters)
            learn = (self.groups.get(key[0], key[0]), "learn")
            if key[1] == "credit" and learn in entries:
                before[learn].add(key)
            if key[1] == "sync":
                before[key].add((key[0], "learn"))
            if key[1] in USES_WEIGHTS:
                for user in (key[0], *self._calls(*key)):
                    group = self.groups.get(user, user)
                    if (group, "learn") not in entries:
                        continue
                    if self._learns_first(key, entries[group, "learn"]):
                        before[key].add((group, "learn"))
                    else:
                        before[group, "learn"].add(key)
            if key[1] == "write":
                before[key].update(k for k in entries if k[1] != "write")
        return before

    def _learns_first(self, key: StageKey, learn: Found) -> bool:
        """Whether a node scores with weights updated in this step (`when: before_score`)."""
        node, verb = key
        rule = self.spec.schedule.learn.get(node)
        is_first = rule is not None and rule.when == "before_score"
        return is_first and verb == "score" and node in learn.members

    def _calls(self, node: str, verb: str) -> tuple[str, ...]:
        is_caller = WRITES.get(self.spec.nodes[node].kind) == verb
        return self._givers.calls(node) if is_caller else ()

    def _stage(
        self, key: StageKey, entry: Found, after: Sequence[StageKey], within: tuple[str, ...]
    ) -> Stage:
        node, verb = key
        return Stage(
            name=f"{node}.{verb}",
            node=node,
            verb=verb,
            kind=self.spec.nodes[node].kind,
            edges=tuple(entry.edges),
            after=tuple(f"{before}.{done}" for before, done in after),
            members=tuple(sorted(entry.members, key=lambda n: self._spec_order[n])),
            pool=self.pool_of(node, verb),
            within=within,
            calls=self._calls(node, verb),
        )

    def _givers_among(self, entries: Mapping[StageKey, Found]) -> Mapping[str, tuple[str, ...]]:
        """For nodes whose stage may be repeated, the nodes whose rows they read."""
        repeated = {node: entry for (node, verb), entry in entries.items() if verb in REPEATED}
        return {
            node: tuple(
                dict.fromkeys(
                    giver
                    for edge in entry.edges.values()
                    for giver in self._givers.nodes_of(edge)
                    if giver in repeated
                )
            )
            for node, entry in repeated.items()
        }


def _repeated_edges(entries: Mapping[StageKey, Found]) -> list[Edge]:
    return [e for key, entry in entries.items() if key[1] in REPEATED for e in entry.edges.values()]


# A topological order of stages in which each region is contiguous.
#
# Works on keys, what each waits for, and the regions that contain it. Knows no kinds, edges or
# roles.

Key = TypeVar("Key", bound=Hashable)


class Order(Generic[Key]):
    """A topological order in which each region is contiguous and ties go to the lower rank. A cycle
    is cut at its lowest rank."""

    def __init__(
        self,
        before: Mapping[Key, Iterable[Key]],
        within: Callable[[Key], Sequence[Hashable]],
        rank: Callable[[Key], int],
    ) -> None:
        """`within`: the regions that hold a key, outermost first."""
        self._before = {key: {w for w in waits if w in before} for key, waits in before.items()}
        self._within, self._rank = within, rank
        self.circles: list[tuple[Hashable, ...]] = []
        """Cycles of keys or regions (as `("region", name)`); the first is repeated at the end. Each
        was cut."""
        self.keys = self._ordered(list(before), 0)

    def _ordered(self, keys: list[Key], depth: int) -> list[Key]:
        def piece_of(key: Key) -> Hashable:
            path = self._within(key)
            return ("region", path[depth]) if len(path) > depth else key

        pieces: dict[Hashable, list[Key]] = {}
        for key in keys:
            pieces.setdefault(piece_of(key), []).append(key)
        position = {key: piece for piece, members in pieces.items() for key in members}
        between: dict[Hashable, set[Hashable]] = {
            piece: {position[w] for key in members for w in self._before[key] if w in position}
            - {piece}
            for piece, members in pieces.items()
        }
        ranks = {piece: min(map(self._rank, members)) for piece, members in pieces.items()}
        order: list[Key] = []
        for piece in self._sorted(between, ranks):
            members = pieces[piece]
            order += members if members == [piece] else self._ordered(members, depth + 1)
        return order

    def _sorted(self, before: Mapping[Any, set[Any]], rank: Mapping[Any, int]) -> list[Any]:
        """Keys in topological order, in waves; each wave is sorted by rank."""
        waiting = {key: set(others) for key, others in before.items()}
        following: dict[Any, list[Any]] = {key: [] for key in before}
        for key, others in before.items():
            for other in others:
                following[other].append(key)
        ready = [key for key, others in waiting.items() if not others]
        order: list[Any] = []
        while waiting:
            if not ready:
                first = min(waiting, key=rank.__getitem__)
                self.circles.append(_circle(first, waiting, rank))
                ready = [first]
            wave = sorted(ready, key=rank.__getitem__)
            order += wave
            ready = []
            for key in wave:
                del waiting[key]
            for key in wave:
                for other in following[key]:
                    if other in waiting:
                        waiting[other].discard(key)
                        if not waiting[other] and other not in ready:
                            ready.append(other)
        return order


def _circle(
    start: Any, waiting: Mapping[Any, set[Any]], rank: Mapping[Any, int]
) -> tuple[Hashable, ...]:
    """A cycle of keys that each must come before the next; the last repeats the first."""
    seen: dict[Any, None] = {}
    key = start
    while key not in seen:
        seen[key] = None
        key = min((other for other in waiting[key] if other in waiting), key=rank.__getitem__)
    path = list(seen)
    return (key, *reversed(path[path.index(key) :]))
