"""Regions of rounds: they close, rows enter them, every node has rows in some round, and their
trees stay small. Also cycles without rounds, and refills.

    round 1: problems -> ask -> actor      round 2: problems, actor -> ask -> actor

Which nodes have rows is computed round by round from the graph alone, as if no filter dropped rows
and no generation failed.
"""

from collections.abc import Collection, Iterator, Mapping

from coloop.plan.phases import FlatPhase
from coloop.spec.builtins import TurnAllocation
from coloop.spec.diagnostics import Diagnostic, Fix, error, warning
from coloop.spec.graph import Edge
from coloop.spec.levels import NO_LEVELS
from coloop.spec.lineage import RoundsRegion
from coloop.spec.lineage.walk import ALWAYS_CONCAT, multiplied
from coloop.spec.nodes import FilterNode, RewardNode
from coloop.spec.ports import HANDLES, PORTS
from coloop.spec.refills import Region, followers, regions_of
from coloop.validate.facts import Facts
from coloop.validate.structure import edge_value, removal

LARGEST_TREE = 1_000_000
"""Maximum branches of one conversation."""
ROUNDS_FOLLOWED = 64


def rounds_close_a_circle(facts: Facts) -> Iterator[Diagnostic]:
    """An edge with `rounds` closes a cycle; edges of one region agree in `rounds` and `branch`."""
    for region in facts.lineage.regions:
        if not region.nodes:
            for edge in region.edges:
                yield error(
                    "structure.rounds_without_circle",
                    facts.place(edge),
                    f"`{edge.label}` has `rounds`, but nothing leads from `{edge.target.node}` "
                    f"back to `{edge.source.node}`",
                    "an edge with `rounds` must close a cycle; remove `rounds`",
                )
            continue
        counts = {edge.rounds for edge in region.edges}
        branches = {edge.branch or "one" for edge in region.edges}
        for option, values in (("rounds", counts), ("branch", branches)):
            if len(values) > 1:
                shown = ", ".join(str(value) for value in sorted(values, key=str))
                labels = ", ".join(f"`{edge.label}`" for edge in region.edges)
                yield error(
                    "structure.rounds_differ",
                    facts.place(region.edges[-1]),
                    f"edges of one cycle differ in `{option}` ({shown}): {labels}",
                    "the cycle runs as a whole; set the same value on all its edges",
                )


def take_stands_on_ways_out(facts: Facts) -> Iterator[Diagnostic]:
    """`take` chooses among the rows of rounds, so it is only set on edges out of a region."""
    for edge in facts.walk.edges:
        if edge.take is None:
            continue
        if facts.lineage.take(edge) is None:
            yield warning(
                "structure.misplaced_option",
                f"{facts.place(edge)}.take",
                f"`take` has no effect on `{edge.label}`: the edge does not leave a cycle of "
                "rounds",
                "remove `take`",
            )


def credit_over_rounds_has_rounds(facts: Facts) -> Iterator[Diagnostic]:
    """Credit across rounds needs rows of the same step: those from a buffer have no rounds."""
    for name, node in facts.nodes.items():
        levels, field = NO_LEVELS, ""
        if getattr(getattr(node, "credit", None), "rounds", None) is not None:
            levels, field = facts.rewarded_levels(name), "credit.rounds"
        elif isinstance(node, RewardNode) and isinstance(node.source, TurnAllocation):
            levels, field = facts.lineage.input_levels(name), "source.name"
        buffers = facts.buffers_in(levels)
        if buffers:
            yield error(
                "learning.rounds_forgotten",
                f"nodes.{name}.{field}",
                f"`{field}` of `{name}` assigns credit across the rounds of a conversation, but "
                f"rows from `{buffers[0]}` have neither rounds nor ancestors",
                "use rows of the same step; scores assigned before the buffer are kept",
            )


def every_node_has_rows(facts: Facts) -> Iterator[Diagnostic]:
    """Rows enter each region, its closing edges get rows in round 2, and each of its nodes has rows
    in some round."""
    for region in facts.lineage.regions:
        if not region.nodes or region.nodes & facts.walk.stuck:
            continue
        rounds = _followed(facts, region)
        edge = region.edges[0]
        if not rounds[0]:
            yield error(
                "structure.rounds_without_entry",
                facts.place(edge),
                f"no rows enter the {region.name}: the rows of all its nodes come from its own "
                "rounds",
                "connect rows from outside, e.g. from a dataset, to one of its nodes",
            )
        elif len(rounds) > 1 and not rounds[1]:
            yield error(
                "structure.rounds_never_close",
                facts.place(edge),
                f"the {region.name} end after the first: the closing edges get no rows in round 2",
                "if several edges close a node's input, each of them needs rows",
            )
        else:
            for name in sorted(region.nodes - frozenset().union(*rounds)):
                yield error(
                    "structure.rounds_never_close",
                    f"nodes.{name}",
                    f"`{name}` has no rows in any round of the {region.name}",
                    "check what its rows are joined with in each round",
                )


def trees_stay_small(facts: Facts) -> Iterator[Diagnostic]:
    """With `branch: all` every completion continues: without a filter, a conversation has
    completions ** rounds branches, which are limited."""
    for region in facts.lineage.regions:
        nodes = [facts.nodes[name] for name in region.nodes]
        cuts = any(n.about.sifts or getattr(n, "code", None) is not None for n in nodes)
        if region.edges[0].branch != "all" or cuts:
            continue
        each = max(multiplied(facts.walk, region).values(), default=1)
        if each**region.rounds > LARGEST_TREE:
            yield error(
                "structure.rounds_explode",
                facts.place(region.edges[0]),
                f"{each} completions over {region.rounds} rounds with `branch: all` make "
                f"{each}^{region.rounds} branches per conversation",
                "use fewer rounds, `branch: lines`, or a filter inside the cycle",
            )


def _followed(facts: Facts, region: RoundsRegion) -> list[frozenset[str]]:
    """By round, the nodes of a region that have rows."""
    order = [name for name in facts.walk.order if name in region.nodes]
    rounds: list[frozenset[str]] = []
    for turn in range(1, min(region.rounds, ROUNDS_FOLLOWED) + 1):
        before = rounds[-1] if rounds else frozenset()
        here: set[str] = set()
        for name in order:
            if _has_rows(facts, region, name, here, before, is_first=turn == 1):
                here.add(name)
        rounds.append(frozenset(here))
        if not here:
            break
    return rounds


def _has_rows(
    facts: Facts,
    region: RoundsRegion,
    name: str,
    here: Collection[str],
    before: Collection[str],
    *,
    is_first: bool,
) -> bool:
    def brings(edge: Edge) -> bool:
        if edge.source.node not in region.nodes:
            return True
        return edge.source.node in (before if edge.rounds else here)

    edges = [edge for edge in facts.walk.row_edges(name) if not (is_first and edge.rounds)]
    section = facts.nodes[name]
    is_concat = section.kind in ALWAYS_CONCAT or getattr(section, "join", None) == "concat"
    if is_concat and not is_first:
        renewed = [edge for edge in edges if edge.source.node in region.nodes]
        edges = renewed or edges
    if not edges:
        edges = [e for e in facts.walk.score_edges(name) if not (is_first and e.rounds)]
        return bool(edges) and all(map(brings, edges))
    return any(map(brings, edges)) if is_concat else all(map(brings, edges))


# What goes round: illegal circles, handles that call themselves, refills.


def graph_has_no_circle(facts: Facts) -> Iterator[Diagnostic]:
    edges = [e for e in facts.walk.forward_edges if e.source.node != e.target.node]
    own = [e for e in facts.walk.forward_edges if e.source.node == e.target.node]
    for circle in [*([edge] for edge in own), *_circles(edges)]:
        names = " -> ".join([edge.source.node for edge in circle] + [circle[0].source.node])
        closing = circle[-1]
        in_rounds = edge_value(closing, rounds=2)
        yield error(
            "structure.cycle",
            facts.place(closing),
            f"a step can never start: {names} wait for one another",
            "a cycle is allowed through a teaching port, a buffer, or an edge with `rounds`",
            Fix.set(f"Set two rounds on {closing.label}", facts.place(closing), in_rounds),
            removal(facts, closing),
        )


def handles_do_not_call_themselves(facts: Facts) -> Iterator[Diagnostic]:
    """No policy calls itself through tools, directly or indirectly."""
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
    """A refill repeats no node that learns before it scores and no second `fill`, and two refills
    do not wait for each other."""
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


def _refills_of_phase(facts: Facts, phase: FlatPhase) -> Iterator[Diagnostic]:
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
        if any(region.filter in nodes and not region.nodes <= nodes for nodes in rounds):
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


def _givers(facts: Facts, phase: FlatPhase | None) -> dict[str, list[str]]:
    """By node, those whose rows it works on; with a phase, over edges that are not dead there."""
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


def _circles(edges: list[Edge]) -> Iterator[list[Edge]]:
    """Cycles that share no nodes; at least one if there are any."""
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
