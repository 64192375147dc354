"""Groups that always have one row, or one score, so that a baseline or a filter compares nothing.

Only what is certain is reported. The size of a group widened by `group_by` is not known, unless it
names the node that generated the rows, outside of a rounds region: then each row is alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from coloop.plan.phases import FlatPhase
from coloop.spec.algorithm import ResolvedRewards
from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Diagnostic, error
from coloop.spec.graph import Edge
from coloop.spec.groups import turns_of
from coloop.spec.lineage import Level, Levels, Relation, ancestors
from coloop.spec.nodes import DatasetNode, FilterNode, ToolNode
from coloop.spec.row_counts import NONE
from coloop.spec.shaping import AccuracyBand, NonzeroVariance, Rule
from coloop.validate.facts import Facts


class GroupOfOne(NamedTuple):
    reason: str
    field: str
    hint: str


def groups_of_one(facts: Facts, name: str, phase: FlatPhase) -> GroupOfOne | None:
    """Why every group of a learner in a phase has one row; None if that is not certain."""
    credit = getattr(facts.nodes[name], "credit", None)
    if facts.rollout(name) is None or credit is None or facts.walk.driven.get(name):
        return None
    if credit.group_by is not None:
        if name not in credit.group_by or facts.lineage.region_of(name) is not None:
            return None
        return GroupOfOne(
            f"`credit.group_by` names `{name}`, which generated them, so each row is its own group",
            "credit.group_by",
            "name something that several rows share, such as `prompt`, or remove `group_by`",
        )
    if not _is_asked_once(facts, name, phase):
        return None
    if completions(facts, name, phase) <= 1:
        return GroupOfOne(
            "it generates one completion per prompt",
            "rollout.completions_per_prompt",
            "generate more completions, widen the groups with `credit.group_by`, or set "
            "`allow_group_of_one`",
        )
    kept = _kept_of_a_group(facts, name)
    if kept is None or kept[1] > 1:
        return None
    return GroupOfOne(
        f"the filter `{kept[0]}` keeps one row per group",
        "rewards",
        f"let `{kept[0]}` keep more rows with `per_group.max`, or set `allow_group_of_one`",
    )


def stretches(facts: Facts) -> Iterator[FlatPhase]:
    """The phases, then those that can follow a trigger that sets numbers of completions; last those
    where another trigger may set a different number."""
    yield from facts.phases
    yield from sorted(_after_triggers(facts), key=lambda phase: not phase.is_sure)


def _after_triggers(facts: Facts) -> Iterator[FlatPhase]:
    paths = {completions_path(name) for name in facts.nodes}
    sets = facts.trigger_values
    for index, trigger in enumerate(facts.spec.schedule.triggers):
        do = trigger.do
        own = sets[index]
        written = paths.intersection(own)
        if do.stop or not written:
            continue
        others = [
            values for values in sets if any(values.get(p, own[p]) != own[p] for p in written)
        ]
        in_ = as_tuple(trigger.in_)
        named = [position for position, phase in enumerate(facts.phases) if phase.name in in_]
        first = min(named, default=0) + do.next_phase
        for phase in facts.phases[first:]:
            values = {**facts.values_in(phase), **own}
            yield replace(phase, overrides=values, fired=index, is_sure=not others)


def completions_path(name: str) -> str:
    return f"nodes.{name}.rollout.completions_per_prompt"


def completions(facts: Facts, name: str, phase: FlatPhase) -> int:
    """Completions that a node generates per prompt in a phase."""
    rollout = facts.rollout(name)
    written = 1 if rollout is None else rollout.completions_per_prompt
    return int(facts.whole_number(phase, completions_path(name), written))


def _is_asked_once(facts: Facts, name: str, phase: FlatPhase) -> bool:
    """Whether a node generates all texts for a row from one prompt. A policy behind a tool may be
    called several times in one trajectory; all its answers then form one group."""
    for caller in facts.walk.callers.get(name, ()):
        path, turns = f"nodes.{caller}.rollout.turns.max", turns_of(facts.spec, caller)
        is_moved = path in facts.moved_paths or path in phase.overrides
        if turns is None or turns.answers > 1 or is_moved:
            return False
    tools = [facts.nodes[edge.target.node] for edge in facts.walk.out_of(name, "policy")]
    return not any(isinstance(tool, ToolNode) and tool.pack is not None for tool in tools)


def why_alone(facts: Facts, name: str, by: Iterable[str], phase: FlatPhase) -> str | None:
    """Why each row is alone in its group at a filter; None if that is not certain."""
    levels = facts.lineage.input_levels(name)
    reasons = {_why_apart(facts, level, frozenset(by), phase) for level in levels}
    return None if None in reasons else " and ".join(sorted(filter(None, reasons))) or None


def _why_apart(facts: Facts, level: Level, by: frozenset[str], phase: FlatPhase) -> str | None:
    writer, node = level.node, facts.nodes.get(level.node)
    if isinstance(node, DatasetNode) and not level.parents and not node.unfold:
        return None if by else f"rows of `{writer}` share no common input"
    if level.joined or facts.lineage.writers(level) != {writer}:
        return None
    if by:
        is_apart = writer in by and facts.lineage.region_of(writer) is None
        return f"`by` names `{writer}`, which generated them" if is_apart else None
    if facts.walk.driven.get(writer) or completions(facts, writer, phase) > 1:
        return None
    if not _is_asked_once(facts, writer, phase):
        return None
    return f"`{writer}` generates one completion per prompt"


def _kept_of_a_group(facts: Facts, name: str) -> tuple[str, int] | None:
    """The filter with the loosest limit of all reward edges, and that; None if one has no limit."""
    limits: list[tuple[str, int]] = []
    for edge in facts.alive(name, "rewards"):
        limit = _limit_of(facts, edge.source.node, name)
        if limit is None:
            return None
        limits.append(limit)
    return max(limits, key=itemgetter(1), default=None)


def _limit_of(facts: Facts, node: str, learner: str) -> tuple[str, int] | None:
    """The filter with the tightest limit between a learner's rollouts and a score, and that."""
    limits: list[tuple[str, int]] = []
    seen: set[str] = set()
    while node not in seen:
        seen.add(node)
        section = facts.nodes[node]
        if isinstance(section, FilterNode) and section.per_group is not None:
            of_learner = facts.lineage.input_levels(node) <= facts.lineage.own_levels(learner)
            if section.per_group.by is None and of_learner:
                limits.append((node, section.per_group.max))
        edges = facts.walk.row_edges(node) or facts.walk.score_edges(node)
        if len(edges) != 1 or edges[0].aggregate is not None:
            break
        node = edges[0].source.node
    return min(limits, key=itemgetter(1), default=None) if learner in seen else None


# Group rules of filters over groups that are always of one, which let nothing through.


def some_groups_pass(facts: Facts) -> Iterator[Diagnostic]:
    """A phase learns from rows that a filter's group rules can let through."""
    filters = [name for name, node in facts.nodes.items() if isinstance(node, FilterNode)]
    for name in filters:
        for phase in stretches(facts):
            finding = _of_phase(facts, name, phase)
            if finding is not None:
                yield finding
                break


def _of_phase(facts: Facts, name: str, phase: FlatPhase) -> Diagnostic | None:
    cut = _cuts_all(facts, name, phase)
    if cut is None:
        return None
    index, rule, reason = cut
    counts = facts.counts(phase, {name: NONE})
    for node, port in sorted(phase.live):
        edges = facts.alive(node, port, phase=phase)
        if edges and all(counts.of_edge(edge).rows == 0 for edge in edges):
            return error(
                "learning.group_of_one",
                f"nodes.{name}.keep.{index}",
                f"`{rule.rule}` compares the rows of a group, but in {phase.label} every group has "
                f"one row ({reason}): `{name}` passes none, and `{node}.{port}` has nothing to "
                "learn from",
                "generate more completions, widen the groups with the rule's `by`, or learn "
                f"from rows that `{name}` does not filter",
                severity=phase.severity,
            )
    return None


def _cuts_all(facts: Facts, name: str, phase: FlatPhase) -> tuple[int, Rule, str] | None:
    """The rule that certainly drops every row in a phase: its index, itself and why; else None."""
    node = facts.nodes[name]
    assert isinstance(node, FilterNode)
    if facts.is_connected(name, "spare"):
        return None
    for index, rule in enumerate(node.keep):
        if not isinstance(rule, AccuracyBand | NonzeroVariance):
            continue
        if isinstance(rule, AccuracyBand) and _keeps_one(
            facts, f"nodes.{name}.keep.{index}", rule, facts.values_in(phase)
        ):
            continue
        reason = why_alone(facts, name, as_tuple(rule.by), phase)
        if reason is not None:
            return index, rule, reason
    return None


def _keeps_one(
    facts: Facts, path: str, rule: AccuracyBand, overrides: Mapping[str, object]
) -> bool:
    """Whether a group of one row, with accuracy 0 or 1, may be within the band."""
    if rule.open:
        return False
    if facts.moved_paths & {f"{path}.min", f"{path}.max"}:
        return True
    least = overrides.get(f"{path}.min", rule.min)
    return least == 0 or overrides.get(f"{path}.max", rule.max) == 1


# Scores that all rows of a group share, in which a comparison of the group finds nothing.

FROM_ABOVE = frozenset({Relation.DOWN, Relation.SIDE})
"""Relations in which scores reach a row through an ancestor, so that siblings share them."""


def groups_have_several_scores(facts: Facts) -> Iterator[Diagnostic]:
    """Where rows of a group are compared, some score can differ among them."""
    if facts.lineage_findings:
        return
    for name, full in facts.rewards:
        for phase in facts.phases:
            edges = _edges_from_above(facts, name, full, phase)
            if edges:
                yield _finding(facts, name, full, phase, edges)
                break


def _edges_from_above(
    facts: Facts, name: str, full: ResolvedRewards, phase: FlatPhase
) -> list[Edge]:
    """The score edges of a learner in a phase if each scores all rows of a group alike, or []."""
    credit = getattr(facts.nodes[name], "credit", None)
    if not full.needs_group or full.allow_group_of_one or full.off_policy is not None:
        return []
    if (name, "rewards") not in phase.live or credit is None or credit.group_by or credit.rounds:
        return []
    edges = facts.alive(name, "rewards", phase=phase)
    if facts.lineage.region_of(name) is not None and any(edge.aggregate for edge in edges):
        return []  # what rises does so from later rounds as well, which stand below the row
    own = facts.lineage.own_levels(name)
    if not own or not all(level.parents for level in own):
        return []
    ways = {
        edge.key: {facts.lineage.match(level, facts.lineage.edge_levels(edge))[0] for level in own}
        for edge in edges
    }
    paying = [edge for edge in edges if ways[edge.key] != {Relation.NONE}]
    return paying if all(ways[edge.key] <= FROM_ABOVE for edge in paying) else []


def _finding(
    facts: Facts, name: str, full: ResolvedRewards, phase: FlatPhase, edges: list[Edge]
) -> Diagnostic:
    labels = " and ".join(f"`{edge.label}`" for edge in edges)
    scored = facts.levels_of(edges)
    rows = " and ".join(sorted(f"`{level}`" for level in scored))
    return error(
        "learning.equal_scores",
        f"nodes.{name}.rewards",
        f"`{full.name}` compares the rows of a group, but in {phase.label} all rows of a group of "
        f"`{name}` have the same score: {labels} {('scores' if len(edges) == 1 else 'score')} rows "
        f"of {rows}, not of `{name}`",
        f"score what `{name}` generates itself{_or_wider(scored)}, or use an algorithm with "
        "another baseline",
    )


def _or_wider(scored: Levels) -> str:
    """Part of the hint that names wider groups in which the scored rows differ; empty if none."""
    above = {ancestor for level in scored for ancestor in ancestors(level)} - scored
    names = sorted({ancestor.node for ancestor in above if not ancestor.parents})
    return f", widen the groups (`credit: {{group_by: [{', '.join(names)}]}}`)" if names else ""
