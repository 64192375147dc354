"""Slices of a step that a filter with `fill` repeats: from the nearest source to the filter.

The slice is every stage on a way from the source to the filter, over the edges that deliver in
this step; what a learner reads lies on no such way.
"""

from collections.abc import Callable, Mapping, Sequence

from coloop.plan.types import Refill, Stage
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import FilterNode

SOURCES = ("load", "read")
REPEATED = ("load", "read", "generate", "score", "prepare")


def refills_of(
    spec: LoopSpec, stages: tuple[Stage, ...]
) -> tuple[tuple[Stage, ...], tuple[Refill, ...]]:
    """The stages, each slice in one piece, and the refills over them."""
    order = list(stages)
    refills = []
    for stage in stages:
        node = spec.nodes[stage.node]
        if not isinstance(node, FilterNode) or node.fill is None:
            continue
        above = _stages_above(spec, order)
        source = node.fill.from_ or _nearest_source(above, order, stage)
        if source is None:
            continue
        inside = _between(above, order, source, stage)
        order = _gathered(order, inside, stage)
        refills.append(
            Refill(
                filter=stage.node,
                source=source,
                stages=tuple(one.name for one in order if one.name in inside),
                max_rounds=node.fill.max_rounds,
                only_lacking=node.fill.groups == "all" and node.fill.from_ is not None,
            )
        )
    return tuple(order), tuple(refills)


def _stages_above(spec: LoopSpec, order: Sequence[Stage]) -> Mapping[str, tuple[Stage, ...]]:
    """By stage, those that deliver to it."""
    sources = {edge.key: edge.source.node for edge in spec.edges}
    by_node = {stage.node: stage for stage in order if stage.verb in REPEATED}
    return {
        stage.name: tuple(
            by_node[node]
            for node in dict.fromkeys(sources[key] for key in stage.edges)
            if node in by_node
        )
        for stage in order
    }


def _nearest_source(
    above: Mapping[str, tuple[Stage, ...]], order: Sequence[Stage], last: Stage
) -> str | None:
    frontier, seen = [last.name], {last.name}
    while frontier:
        nearer: list[str] = []
        for name in frontier:
            for stage in above[name]:
                if stage.verb in SOURCES:
                    return stage.node
                if stage.name not in seen:
                    seen.add(stage.name)
                    nearer.append(stage.name)
        frontier = nearer
    return None


def _between(
    above: Mapping[str, tuple[Stage, ...]], order: Sequence[Stage], source: str, last: Stage
) -> set[str]:
    below = {s.name for s in order if s.node == source and s.verb in REPEATED}
    for stage in order:
        if any(one.name in below for one in above[stage.name]):
            below.add(stage.name)
    leading = _closure(last.name, lambda name: [stage.name for stage in above[name]])
    return below & leading


def _closure(start: str, next_of: Callable[[str], list[str]]) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        for name in next_of(waiting.pop()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen


def _gathered(order: list[Stage], inside: set[str], last: Stage) -> list[Stage]:
    """The slice in one piece, where its last stage stands; what it does not hold keeps its
    order."""
    end = order.index(last)
    before = [stage for stage in order[:end] if stage.name not in inside]
    return [*before, *(s for s in order[: end + 1] if s.name in inside), *order[end + 1 :]]
