"""Scores that all rows of a group share, in which a comparison of the group finds nothing."""

from collections.abc import Iterator

from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import Edge
from coloop.spec.lineage import Level, Relation, ancestors
from coloop.validate.facts import Facts, PhaseFacts, found

FROM_ABOVE = frozenset({Relation.DOWN, Relation.SIDE})
"""Scores that reach a row by way of what it was written for, or of what that descends from."""


def groups_have_several_scores(facts: Facts) -> Iterator[Diagnostic]:
    """Some score tells apart the rows of a group where these are compared; nobody knows where a
    score cannot reach its rows."""
    if facts.lineage_findings:
        return
    for name, full in facts.rewards:
        for phase in facts.phases:
            edges = _edges_from_above(facts, name, full, phase)
            if edges:
                yield _finding(facts, name, full, phase, edges)
                break


def _edges_from_above(
    facts: Facts, name: str, full: ResolvedRewards, phase: PhaseFacts
) -> list[Edge]:
    """The edges that pay a learner in a phase, where each pays all rows of a group alike."""
    credit = getattr(facts.nodes[name], "credit", None)
    if not full.needs_group or full.allow_group_of_one or full.off_policy is not None:
        return []
    if (name, "rewards") not in phase.live or credit is None or credit.group_by or credit.rounds:
        return []
    edges = [one for one in facts.walk.into(name, "rewards") if not facts.is_dead(one, phase)]
    if facts.lineage.region_of(name) is not None and any(edge.aggregate for edge in edges):
        return []  # what rises does so from later rounds as well, which stand below the row
    own = facts.lineage.own_levels(name)
    if not own or not all(one.parents for one in own):
        return []
    ways = {
        edge.key: {facts.lineage.match(one, facts.lineage.edge_levels(edge))[0] for one in own}
        for edge in edges
    }
    paying = [edge for edge in edges if ways[edge.key] != {Relation.NONE}]
    return paying if all(ways[edge.key] <= FROM_ABOVE for edge in paying) else []


def _finding(
    facts: Facts, name: str, full: ResolvedRewards, phase: PhaseFacts, edges: list[Edge]
) -> Diagnostic:
    labels = " and ".join(f"`{edge.label}`" for edge in edges)
    scored = {level for edge in edges for level in facts.lineage.edge_levels(edge)}
    rows = " and ".join(sorted(f"`{level}`" for level in scored))
    return found(
        "learning.equal_scores",
        f"`{full.name}` compares the rows of a group, but in {phase.label} all rows of a group of "
        f"`{name}` have the same score: {labels} {('scores' if len(edges) == 1 else 'score')} rows "
        f"of {rows}, not of `{name}`",
        hint=(
            f"score what `{name}` generates itself{_or_wider(scored)}, or use an algorithm with "
            "another baseline"
        ),
        node=name,
        field="rewards",
    )


def _or_wider(scored: set[Level]) -> str:
    """Wider groups, where the scored rows differ within them."""
    roots = {one for level in scored for one in ancestors(level) if not one.parents} - scored
    names = sorted({one.node for one in roots})
    return f", widen the groups (`credit: {{group_by: [{', '.join(names)}]}}`)" if names else ""


RULES = (groups_have_several_scores,)
