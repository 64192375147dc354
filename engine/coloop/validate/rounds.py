"""Regions of rounds: that they close, that something enters them, that every node of them has rows
in some round, and that their trees stay small.

    round 1: problems -> ask -> actor      round 2: problems, actor -> ask -> actor

Which nodes have rows is followed round by round over the graph alone, as if no filter cut and no
text failed.
"""

from collections.abc import Collection, Iterator

from coloop.spec.builtins import TurnAllocation
from coloop.spec.diagnostics import Diagnostic, error, warning
from coloop.spec.graph import Edge
from coloop.spec.levels import NO_LEVELS
from coloop.spec.lineage import RoundsRegion
from coloop.spec.lineage.walk import ALWAYS_CONCAT, multiplied, name_of
from coloop.spec.nodes import RewardNode
from coloop.validate.facts import Facts

LARGEST_TREE = 1_000_000
"""Ends of one conversation; more than that no machine of the presets writes in a step."""
ROUNDS_FOLLOWED = 64


def rounds_close_a_circle(facts: Facts) -> Iterator[Diagnostic]:
    """An edge with `rounds` leads back; edges of one region run equally often."""
    for region in facts.lineage.regions:
        if not region.nodes:
            for edge in region.edges:
                yield error(
                    "structure.rounds_without_circle",
                    facts.place(edge),
                    f"`{edge.label}` has `rounds`, but nothing leads from `{edge.target.node}` "
                    "back "
                    f"to `{edge.source.node}`",
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
    """`take` chooses among the rows of rounds, so it stands on an edge out of a region."""
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
    """What a buffer gives are rows without ancestors: none of them is above or below another."""
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
    """Something enters a region, what closes it meets what is there, and no node of it waits for
    rows that no round brings."""
    for region in facts.lineage.regions:
        if not region.nodes or region.nodes & facts.walk.stuck:
            continue
        rounds = _followed(facts, region)
        edge = region.edges[0]
        if not rounds[0]:
            yield error(
                "structure.rounds_without_entry",
                facts.place(edge),
                f"no rows enter the {name_of(region)}: the rows of all its nodes come from its own "
                "rounds",
                "connect rows from outside, e.g. from a dataset, to one of its nodes",
            )
        elif len(rounds) > 1 and not rounds[1]:
            yield error(
                "structure.rounds_never_close",
                facts.place(edge),
                f"the {name_of(region)} end after the first: the closing edges get no rows in "
                "round 2",
                "if several edges close a node's input, each of them needs rows",
            )
        else:
            for name in sorted(region.nodes - frozenset().union(*rounds)):
                yield error(
                    "structure.rounds_never_close",
                    f"nodes.{name}",
                    f"`{name}` has no rows in any round of the {name_of(region)}",
                    "check what its rows are joined with in each round",
                )


def trees_stay_small(facts: Facts) -> Iterator[Diagnostic]:
    """With `branch: all` every sample goes on; where nothing cuts them there are as many ends as
    completions to the power of the rounds."""
    for region in facts.lineage.regions:
        cuts = any(_cuts(facts, name) for name in region.nodes)
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
    """By round, the nodes of a region that have rows in it."""
    order = [name for name in facts.walk.order if name in region.nodes]
    rounds: list[frozenset[str]] = []
    for number in range(1, min(region.rounds, ROUNDS_FOLLOWED) + 1):
        before = rounds[-1] if rounds else frozenset()
        here: set[str] = set()
        for name in order:
            if _has_rows(facts, region, name, here, before, is_first=number == 1):
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
    is_concat = _is_concat(facts, name)
    if is_concat and not is_first:
        renewed = [edge for edge in edges if edge.source.node in region.nodes]
        edges = renewed or edges
    if not edges:
        edges = [e for e in facts.walk.score_edges(name) if not (is_first and e.rounds)]
        return bool(edges) and all(map(brings, edges))
    return any(map(brings, edges)) if is_concat else all(map(brings, edges))


def _is_concat(facts: Facts, name: str) -> bool:
    section = facts.nodes[name]
    return section.kind in ALWAYS_CONCAT or getattr(section, "join", None) == "concat"


def _cuts(facts: Facts, name: str) -> bool:
    section = facts.nodes[name]
    return section.about.sifts or getattr(section, "code", None) is not None
