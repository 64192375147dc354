"""The tree of a step: slices that filters repeat, regions that edges with `rounds` repeat, and
where each stage stands in them.

    problems.load                                   (step)
    ├─ rounds: ask.prepare ── alice.generate        a region, twice
    └─ slice of keep: mark.score ── keep.prepare    a slice, until it has enough
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from coloop.plan.givers import StageKey
from coloop.plan.refills import REPEATED, Slices, edges_of_first_pass
from coloop.plan.types import Rounds, Stage
from coloop.spec.graph import Edge
from coloop.spec.lineage import Lineage, RoundsRegion
from coloop.spec.lineage.rounds import name_of


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
