"""Slices of a step that a filter with `fill` repeats: from the nearest source to the filter."""

from coloop.plan.types import Refill, Stage
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import FilterNode

SOURCES = ("load", "read")


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
        source = node.fill.from_ or _nearest_source(spec, order, stage)
        if source is None:
            continue
        inside = _between(spec, order, source, stage)
        order = _gathered(order, inside, stage)
        refills.append(
            Refill(
                filter=stage.node,
                source=source,
                stages=tuple(s.name for s in order if s.name in inside),
                max_rounds=node.fill.max_rounds,
                only_lacking=node.fill.groups == "all" and node.fill.from_ is not None,
            )
        )
    return tuple(order), tuple(refills)


def _nearest_source(spec: LoopSpec, order: list[Stage], last: Stage) -> str | None:
    above = {last.node}
    frontier = [last.node]
    by_node = {stage.node: stage for stage in order}
    while frontier:
        nearer: list[str] = []
        for node in frontier:
            for edge in spec.graph.edges_into(node):
                source = edge.source.node
                if source in by_node and source not in above:
                    if by_node[source].verb in SOURCES:
                        return source
                    above.add(source)
                    nearer.append(source)
        frontier = nearer
    return None


def _between(spec: LoopSpec, order: list[Stage], source: str, last: Stage) -> set[str]:
    inside = spec.graph.downstream([source]) & spec.graph.upstream([last.node])
    return {
        stage.name
        for stage in order
        if stage.node in inside and stage.verb in ("load", "read", "generate", "score", "prepare")
    }


def _gathered(order: list[Stage], inside: set[str], last: Stage) -> list[Stage]:
    """The slice in one piece, where its last stage stands; what it does not hold keeps its
    order."""
    end = order.index(last)
    before = [stage for stage in order[:end] if stage.name not in inside]
    return [*before, *(s for s in order[: end + 1] if s.name in inside), *order[end + 1 :]]
