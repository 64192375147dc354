"""The tree of a step: slices that filters repeat, regions that edges with `rounds` repeat, and
where each stage stands in them.

    problems.load                                   (step)
    ├─ rounds: ask.prepare ── alice.generate        a region, twice
    └─ slice of keep: mark.score ── keep.prepare    a slice, until it has enough
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from coloop.plan.closure import StageKey
from coloop.plan.types import Refill, Rounds, Stage
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage import Lineage, RoundsRegion
from coloop.spec.lineage.walk import name_of
from coloop.spec.nodes import FilterNode
from coloop.spec.refills import Givers, Region, followers, regions_of

# Slices of a step that a filter with `fill` repeats, and where every other stage stands to them.
#
#     problems.load ─┬─ a.generate ── sa.score ── fa.prepare    two slices; what both begin with
#                    └─ b.generate ── sb.score ── fb.prepare    runs once, in their first pass
#
# A stage that reads rows of a slice without being part of it stands after the slice's filter. A
# slice that reads another's rows stands after it as a whole; slices that only begin alike stand
# side by side, and each sees what it ran itself and that one first pass.

REPEATED = ("load", "read", "generate", "score", "prepare")
"""Verbs whose stages a slice may hold; a node has one of them at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    regions: tuple[Region, ...] = ()
    waits: Mapping[str, frozenset[str]]
    """By filter, the filters of the slices before its own."""

    def piece(self, node: str, verb: str) -> str | None:
        """The filter in whose slice a stage runs first; None where it stands alone, be it before
        several slices that begin with it."""
        own = self._own(node) if verb in REPEATED else []
        return own[0].filter if len(own) == 1 else None

    def filters_before(self, node: str, verb: str, giver: str) -> list[str]:
        """Filters that a stage waits for because their slices hold what it reads of `giver`."""
        mine = [r for r in self.regions if verb in REPEATED and node in r.nodes]
        found = []
        for region in self.regions:
            if giver not in region.nodes or region in mine:
                continue
            shares = any(
                giver in one.nodes and region.filter not in self.waits[one.filter] for one in mine
            )
            if not shares:
                found.append(region.filter)
        return found

    def refill(
        self, spec: LoopSpec, region: Region, stages: Sequence[Stage], once: tuple[str, ...]
    ) -> Refill:
        """The slice of one region, over the stages in their order."""
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
        """Of the regions that hold a node, those that stand after none of the others."""
        holding = [region for region in self.regions if node in region.nodes]
        names = {region.filter for region in holding}
        return [region for region in holding if names.isdisjoint(self.waits[region.filter])]


def slices_of(spec: LoopSpec, givers: Givers, rounds: Iterable[frozenset[str]]) -> Slices:
    """The slices among the nodes that give rows in this step; `rounds` are the nodes that go round
    together."""
    regions = regions_of(spec, givers, (one & givers.keys() for one in rounds))
    return Slices(regions=regions, waits=followers(regions, givers))


def edges_of_first_pass(
    nodes: Collection[str], edges: Iterable[Edge], is_concat: Callable[[str, str], bool]
) -> tuple[str, ...]:
    """Keys of edges that deliver in the first pass or round alone: from outside, into a table that
    is put together (`concat`, `spare`) with rows of the nodes that are repeated. Those rows went
    through already."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """The regions of one step over the keys of its stages."""

    within: Mapping[StageKey, tuple[str, ...]]
    """By stage, the regions that hold it, outermost first."""
    rounds: tuple[RoundsRegion, ...]
    problems: tuple[str, ...]
    """Regions that overlap without one holding the other."""

    def planned(
        self,
        stages: Sequence[Stage],
        edges: Iterable[Edge],
        is_concat: Callable[[str, str], bool],
    ) -> tuple[Rounds, ...]:
        """The regions of rounds over the stages in their order.

        Args:
            edges: that deliver to stages which may be repeated.
            is_concat: whether what comes to a port is put one after another.
        """
        delivering = list(edges)
        found = []
        for region in self.rounds:
            name = name_of(region)
            members = tuple(stage.name for stage in stages if name in stage.within)
            branch = next((edge.branch for edge in region.edges if edge.branch), None)
            found.append(
                Rounds(
                    name=name,
                    edges=tuple(edge.key for edge in region.edges),
                    stages=members,
                    once=edges_of_first_pass(region.nodes, [*delivering, *region.edges], is_concat),
                    rounds=region.rounds,
                    branch=branch or "one",
                )
            )
        return tuple(found)


def regions_among(keys: Iterable[StageKey], slices: Slices, lineage: Lineage) -> Regions:
    """Where the stages of these keys stand."""
    repeated = [key for key in keys if key[1] in REPEATED]
    members: dict[str, set[StageKey]] = {}
    for key in repeated:
        piece = slices.piece(*key)
        if piece is not None:
            members.setdefault(piece, set()).add(key)
    problems, kept = [], []
    for region in lineage.regions:
        inside = {key for key in repeated if key[0] in region.nodes}
        if not inside:
            continue
        name = name_of(region)
        across = [
            other
            for other, held in members.items()
            if held & inside and not held <= inside and not inside <= held
        ]
        if across:
            problems.append(f"the {name} and the slice of {across[0]} overlap")
        else:
            members[name] = inside
            kept.append(region)
    outermost = sorted(members, key=lambda name: -len(members[name]))
    within: dict[StageKey, tuple[str, ...]] = {}
    for name in outermost:
        for key in members[name]:
            within[key] = (*within.get(key, ()), name)
    return Regions(within=within, rounds=tuple(kept), problems=tuple(problems))
