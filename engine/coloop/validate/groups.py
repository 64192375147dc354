"""How many rows a group has: the unit of baselines, after all filters, and of a filter's rules.

Only what is certain is told: groups that are widened by `group_by`, or rows that go round, have
no known size here, but rows that are grouped by their own writer are each alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from coloop.spec.base import as_tuple
from coloop.spec.homes import turns_of
from coloop.spec.lineage import Level
from coloop.spec.nodes import DatasetNode, FilterNode, ToolNode
from coloop.validate.facts import Facts, PhaseFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSize:
    """The greatest size that the groups of a learner can have, and what makes them so small."""

    rows: int
    reason: str
    field: str
    hint: str


def smallest_groups(facts: Facts, name: str, phase: PhaseFacts) -> GroupSize | None:
    """The greatest size of the learner's groups in a phase; `None` where it is not certain."""
    credit = getattr(facts.nodes[name], "credit", None)
    rollout = facts.rollout(name)
    if rollout is None or credit is None:
        return None
    if facts.walk.driven.get(name):
        return None
    if credit.group_by is not None:
        is_apart = name in credit.group_by and facts.lineage.region_of(name) is None
        return _each_alone(name) if is_apart else None
    if not _is_asked_once(facts, name, phase):
        return None
    written = completions(facts, name, phase)
    size = GroupSize(
        rows=written,
        reason="it generates one completion per prompt",
        field="rollout.completions_per_prompt",
        hint=(
            "generate more completions, widen the groups with `credit.group_by`, or set "
            "`allow_group_of_one`"
        ),
    )
    kept = _kept_of_a_group(facts, name)
    if kept is not None and kept[1] < written:
        return GroupSize(
            rows=kept[1],
            reason=f"the filter `{kept[0]}` keeps one row per group",
            field="rewards",
            hint=(
                f"let `{kept[0]}` keep more rows with `per_group.max`, or set `allow_group_of_one`"
            ),
        )
    return size


def _each_alone(name: str) -> GroupSize:
    return GroupSize(
        rows=1,
        reason=(
            f"`credit.group_by` names `{name}`, which generated them, so each row is its own group"
        ),
        field="credit.group_by",
        hint="name something that several rows share, such as `prompt`, or remove `group_by`",
    )


def stretches(facts: Facts) -> Iterator[PhaseFacts]:
    """The phases, and then what becomes of each where a trigger sets how much is written: the
    values that it sets last; those last where another trigger may set others before."""
    yield from facts.phases
    yield from sorted(_after_triggers(facts), key=lambda phase: not phase.is_sure)


def _after_triggers(facts: Facts) -> Iterator[PhaseFacts]:
    paths = {completions_path(name) for name in facts.nodes}
    sets = facts.trigger_values
    for number, trigger in enumerate(facts.spec.schedule.triggers):
        do = trigger.do
        own = sets[number]
        written = paths.intersection(own)
        if do.stop or not written:
            continue
        is_sure = not any(one.get(path, own[path]) != own[path] for one in sets for path in written)
        named = [
            place for place, one in enumerate(facts.phases) if one.name in as_tuple(trigger.in_)
        ]
        first = min(named, default=0) + do.next_phase
        for phase in facts.phases[first:]:
            values = {**facts.values_in(phase), **own}
            yield replace(phase, overrides=values, fired=number, is_sure=is_sure)


def completions_path(name: str) -> str:
    """Where a writer says how many completions it writes."""
    return f"nodes.{name}.rollout.completions_per_prompt"


def completions(facts: Facts, name: str, phase: PhaseFacts) -> int:
    """What a writer writes for a prompt in a phase."""
    rollout = facts.rollout(name)
    written = 1 if rollout is None else rollout.completions_per_prompt
    return int(facts.whole_number(phase, completions_path(name), written))


def _is_asked_once(facts: Facts, name: str, phase: PhaseFacts) -> bool:
    """Whether what a writer writes for a row it writes to one prompt: who asks a policy behind a
    tool again in one text, or with several parts of an answer, has all that it wrote as one group.
    """
    for caller in facts.walk.callers.get(name, ()):
        path, turns = f"nodes.{caller}.rollout.turns.max", turns_of(facts.spec, caller)
        is_moved = path in facts.moved_paths or path in phase.overrides
        if turns is None or turns.answers > 1 or is_moved:
            return False
    tools = [facts.nodes[edge.target.node] for edge in facts.walk.out_of(name, "policy")]
    return not any(isinstance(tool, ToolNode) and tool.pack is not None for tool in tools)


def why_alone(facts: Facts, name: str, by: Iterable[str], phase: PhaseFacts) -> str | None:
    """Why each row at a filter is alone in what a rule of it takes as its group; `None` where that
    is not certain."""
    levels = facts.lineage.input_levels(name)
    reasons = {_why_apart(facts, level, frozenset(by), phase) for level in levels}
    return None if None in reasons else " and ".join(sorted(filter(None, reasons))) or None


def _why_apart(facts: Facts, level: Level, by: frozenset[str], phase: PhaseFacts) -> str | None:
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
    """The filter through which all rewards come, and the rows that it keeps of a prompt's group."""
    limits: list[tuple[str, int]] = []
    for edge in facts.walk.into(name, "rewards"):
        if facts.is_dead(edge):
            continue
        limit = _limit_of(facts, edge.source.node, name)
        if limit is None:
            return None
        limits.append(limit)
    return max(limits, key=lambda one: one[1], default=None)


def _limit_of(facts: Facts, node: str, learner: str) -> tuple[str, int] | None:
    """The tightest `per_group` on the way from the learner's rollouts to a score of them."""
    tightest: tuple[str, int] | None = None
    seen: set[str] = set()
    while node not in seen:
        seen.add(node)
        section = facts.nodes[node]
        if isinstance(section, FilterNode) and section.per_group is not None:
            limit = (node, section.per_group.max)
            of_learner = facts.lineage.input_levels(node) <= facts.lineage.own_levels(learner)
            if section.per_group.by is None and of_learner:
                tightest = limit if tightest is None else min(tightest, limit, key=lambda x: x[1])
        edges = facts.walk.row_edges(node) or facts.walk.score_edges(node)
        if len(edges) != 1 or edges[0].aggregate is not None:
            break
        node = edges[0].source.node
    return tightest if learner in seen else None
