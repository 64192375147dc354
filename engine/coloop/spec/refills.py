"""What a filter with `fill` runs again: the nodes on a path from where a pass starts to the filter.

    problems ── actor ─┬─ exact ── informative     region: problems, actor, exact, informative
                       └─ start                    outside: stands after it, sees all passes

The compiler passes the stages of a step as givers, the checks the edges of a phase. Rows of a
dataset or a buffer come from nowhere else, so a walk ends there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from coloop.spec.graph import LoopSpec, reached
from coloop.spec.lean import record
from coloop.spec.nodes import FilterNode

Givers = Mapping[str, Collection[str]]
"""By node, those whose rows it works on."""

SOURCES = frozenset({"dataset", "buffer"})
"""Kinds at which a pass starts if `from` is not set."""


@record
class Region:
    filter: str
    sources: tuple[str, ...]
    """Where a pass starts: `from`, else every dataset and buffer that feeds the filter."""
    nodes: frozenset[str]
    """Nodes on a path from a source to the filter, both included."""


def regions_of(
    spec: LoopSpec, givers: Givers, rounds: Iterable[frozenset[str]] = ()
) -> tuple[Region, ...]:
    """The regions of filters with `fill`, in spec order, if `from` leads to the filter.

    Args:
        rounds: nodes of each rounds region; a refill takes them whole, unless its filter is inside.
    """
    regions = (
        _region(spec, name, node.fill.from_, givers)
        for name, node in spec.nodes.items()
        if isinstance(node, FilterNode) and node.fill is not None and name in givers
    )
    together = list(rounds)
    return tuple(_whole(region, together) for region in regions if region is not None)


def followers(regions: Sequence[Region], givers: Givers) -> Mapping[str, frozenset[str]]:
    """By filter, the earlier filters whose rows it works on without running them again."""
    direct = {
        region.filter: {other.filter for other in regions if _follows(region, other, givers)}
        for region in regions
    }
    return {name: frozenset(reached(waits, direct)) for name, waits in direct.items()}


def _region(spec: LoopSpec, name: str, start: str | None, givers: Givers) -> Region | None:
    def above(node: str) -> Collection[str]:
        is_source = spec.nodes[node].kind in SOURCES
        return () if is_source and node != name else givers.get(node, ())

    leading = reached([name], {node: above(node) for node in givers})
    if start is not None:
        sources: tuple[str, ...] = (start,) if start in leading - {name} else ()
    else:
        sources = tuple(n for n in spec.nodes if n in leading and spec.nodes[n].kind in SOURCES)
    if not sources:
        return None
    below: dict[str, list[str]] = {}
    for node in leading:
        for giver in above(node):
            below.setdefault(giver, []).append(node)
    nodes = frozenset(reached(sources, below)) & leading
    return Region(filter=name, sources=sources, nodes=nodes)


def _whole(region: Region, rounds: Iterable[frozenset[str]]) -> Region:
    taken = [
        members for members in rounds if region.filter not in members and members & region.nodes
    ]
    return replace(region, nodes=region.nodes.union(*taken)) if taken else region


def _follows(region: Region, other: Region, givers: Givers) -> bool:
    outside = other.nodes - region.nodes
    return region is not other and any(
        giver in outside for node in region.nodes for giver in givers.get(node, ())
    )
