"""What goes round: illegal circles, handles that call themselves, refills."""

from collections.abc import Iterator, Mapping

from coloop.spec.diagnostics import Diagnostic, Fix, error
from coloop.spec.graph import Edge
from coloop.spec.nodes import FilterNode
from coloop.spec.ports import HANDLES, PORTS
from coloop.spec.refills import Region, followers, regions_of
from coloop.validate.edges import edge_value, removal
from coloop.validate.facts import Facts, PhaseFacts


def graph_has_no_circle(facts: Facts) -> Iterator[Diagnostic]:
    """Within one round of a step nothing waits for itself."""
    edges = [e for e in facts.walk.forward_edges if e.source.node != e.target.node]
    own = [e for e in facts.walk.forward_edges if e.source.node == e.target.node]
    for circle in [*([edge] for edge in own), *_circles(edges)]:
        names = " -> ".join([edge.source.node for edge in circle] + [circle[0].source.node])
        closing = circle[-1]
        yield error(
            "structure.cycle",
            facts.place(closing),
            f"a step can never start: {names} wait for one another",
            "a cycle is allowed through a teaching port, a buffer, or an edge with `rounds`",
            _as_rounds(facts, closing),
            removal(facts, closing),
        )


def handles_do_not_call_themselves(facts: Facts) -> Iterator[Diagnostic]:
    """No policy is a tool of its own, over whatever other tools."""
    edges = [
        edge
        for edge in facts.walk.edges
        if PORTS[facts.walk.kinds[edge.source.node]].outputs[edge.source.port].type in HANDLES
    ]
    for circle in _circles(edges):
        names = " -> ".join([edge.source.node for edge in circle] + [circle[0].source.node])
        yield error(
            "structure.handle_cycle",
            facts.place(circle[-1]),
            f"{names} call one another endlessly",
            "give the tool a second role on the same weights: `model: {type: shared, with: ...}`",
            removal(facts, circle[-1]),
        )


def refills_are_sound(facts: Facts) -> Iterator[Diagnostic]:
    """What a `fill` runs again holds no learner and no second `fill`, and two of them do not wait
    for each other."""
    starting = {region.filter for region in regions_of(facts.spec, _givers(facts, None))}
    for name, node in facts.nodes.items():
        start = node.fill.from_ if isinstance(node, FilterNode) and node.fill else None
        if start in facts.nodes and name not in starting:
            yield error(
                "structure.fill_start",
                f"nodes.{name}.fill.from",
                f"`{name}` cannot refill from `{start}`: its rows do not come from there",
                "name a node further up, or remove `from` to use the nearest datasets and buffers",
            )
    findings: dict[tuple[str | None, str], Diagnostic] = {}
    for phase in facts.phases:
        for finding in _refills_of_phase(facts, phase):
            findings.setdefault((finding.node, finding.message), finding)
    yield from findings.values()


def _refills_of_phase(facts: Facts, phase: PhaseFacts) -> Iterator[Diagnostic]:
    givers = _givers(facts, phase)
    rounds = [region.nodes for region in facts.walk.regions]
    regions = regions_of(facts.spec, givers, rounds)
    waits = followers(regions, givers)
    fills = {region.filter for region in regions}
    for region in regions:
        for other in sorted(region.nodes - {region.filter}):
            rule = facts.spec.schedule.learn.get(other)
            if rule is not None and rule.when == "before_score" and other in facts.learners:
                yield _bad_region(
                    region.filter,
                    f"the refill of `{region.filter}` repeats `{other}`, which learns before it "
                    "scores",
                    "start the refill after it with `from`, or let it learn after scoring",
                )
            if other in fills:
                yield _bad_region(
                    region.filter,
                    f"the refill of `{region.filter}` repeats `{other}`, which has its own `fill`",
                    "keep one of the two, or start this refill after it with `from`",
                )
        if any(region.filter in one and not region.nodes <= one for one in rounds):
            yield _bad_region(
                region.filter,
                f"`{region.filter}` is inside a cycle of rounds, but its refill starts before that "
                "cycle",
                "put the filter after the rounds, or start the refill inside them with `from`",
            )
        second = next((r for r in regions if _wait_for_each_other(region, r, waits)), None)
        if second is not None:
            yield _bad_region(
                region.filter,
                f"the refills of `{region.filter}` and `{second.filter}` repeat each other's "
                "input, so neither can go first",
                "start both at the same node, or remove `from`",
            )


def _givers(facts: Facts, phase: PhaseFacts | None) -> dict[str, list[str]]:
    """By node, those whose rows it works on; in a phase without those of dead edges."""
    givers: dict[str, list[str]] = {name: [] for name in facts.nodes}
    for edge in facts.walk.forward_edges:
        if phase is None or not facts.is_dead(edge, phase):
            givers[edge.target.node].append(edge.source.node)
    return givers


def _wait_for_each_other(
    region: Region, other: Region, waits: Mapping[str, frozenset[str]]
) -> bool:
    is_mutual = region.filter in waits[other.filter] and other.filter in waits[region.filter]
    is_nested = region.filter in other.nodes or other.filter in region.nodes
    return is_mutual and not is_nested and region.filter < other.filter


def _bad_region(name: str, message: str, hint: str) -> Diagnostic:
    return error("structure.fill_region", f"nodes.{name}.fill", message, hint)


def _as_rounds(facts: Facts, edge: Edge) -> Fix:
    value = edge_value(edge, rounds=2)
    return Fix.set(f"Set two rounds on {edge.label}", facts.place(edge), value)


def _circles(edges: list[Edge]) -> Iterator[list[Edge]]:
    """One circle of each knot of edges that lead back to where they began."""
    ahead: dict[str, list[Edge]] = {}
    for edge in edges:
        ahead.setdefault(edge.source.node, []).append(edge)
    finished: set[str] = set()
    for start in list(ahead):
        if start in finished:
            continue
        way: list[Edge] = []
        on_way: dict[str, int] = {start: 0}
        open_edges: list[Iterator[Edge]] = [iter(ahead.get(start, ()))]
        while open_edges:
            ahead_edge = next(open_edges[-1], None)
            if ahead_edge is None:
                open_edges.pop()
                left = way.pop().target.node if way else start
                finished.add(left)
                on_way.pop(left, None)
                continue
            target = ahead_edge.target.node
            if target in on_way:
                yield [*way[on_way[target] :], ahead_edge]
                finished.update(on_way)
                break
            if target not in finished:
                way.append(ahead_edge)
                on_way[target] = len(way)
                open_edges.append(iter(ahead.get(target, ())))
