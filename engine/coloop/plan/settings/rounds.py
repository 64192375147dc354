"""How rows grow over rounds: tables of one round become those of all, or of the last.

one     every round is like the first
lines   from the second on as many rows as came to the end of the first, at every node
all     every round multiplies the one before by what came of each of its rows
"""

from dataclasses import dataclass

from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.lineage.rounds import RoundsFlow, multiplied
from coloop.spec.lineage.walk import RoundsRegion, Walk

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
