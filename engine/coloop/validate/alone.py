"""Group rules of filters over groups that are always of one, which let nothing through."""

from collections.abc import Iterator, Mapping

from coloop.spec.base import as_tuple
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.nodes import FilterNode
from coloop.spec.row_counts import NONE
from coloop.spec.shaping import AccuracyBand, NonzeroVariance, Rule
from coloop.validate.facts import Facts, PhaseFacts, found
from coloop.validate.groups import stretches, why_alone


def some_groups_pass(facts: Facts) -> Iterator[Diagnostic]:
    """A phase learns from rows that a filter's group rules can let through."""
    filters = [name for name, node in facts.nodes.items() if isinstance(node, FilterNode)]
    for name in filters:
        for phase in stretches(facts):
            finding = _of_phase(facts, name, phase)
            if finding is not None:
                yield finding
                break


def _of_phase(facts: Facts, name: str, phase: PhaseFacts) -> Diagnostic | None:
    cut = _cuts_all(facts, name, phase)
    if cut is None:
        return None
    number, rule, reason = cut
    counts = facts.counts(phase, {name: NONE})
    for node, port in sorted(phase.live):
        edges = [one for one in facts.walk.into(node, port) if not facts.is_dead(one, phase)]
        if edges and all(counts.of_edge(edge).rows == 0 for edge in edges):
            return found(
                "learning.group_of_one",
                f"`{rule.rule}` compares the rows of a group, but in {phase.label} every group has "
                f"one row ({reason}): `{name}` passes none, and `{node}.{port}` has nothing to "
                "learn from",
                severity=phase.severity,
                hint=(
                    "generate more completions, widen the groups with the rule's `by`, or learn "
                    f"from rows that `{name}` does not filter"
                ),
                node=name,
                field=f"keep.{number}",
            )
    return None


def _cuts_all(facts: Facts, name: str, phase: PhaseFacts) -> tuple[int, Rule, str] | None:
    """The rule of a filter that cuts every row in a phase, and why; rows at `spare` pass by it."""
    node = facts.nodes[name]
    assert isinstance(node, FilterNode)
    if facts.is_connected(name, "spare"):
        return None
    for number, rule in enumerate(node.keep):
        if not isinstance(rule, AccuracyBand | NonzeroVariance):
            continue
        if isinstance(rule, AccuracyBand) and _keeps_one(
            facts, f"nodes.{name}.keep.{number}", rule, facts.values_in(phase)
        ):
            continue
        reason = why_alone(facts, name, as_tuple(rule.by), phase)
        if reason is not None:
            return number, rule, reason
    return None


def _keeps_one(
    facts: Facts, path: str, rule: AccuracyBand, overrides: Mapping[str, object]
) -> bool:
    """Whether a group of one row, all right or all wrong, may lie in the band."""
    if rule.open:
        return False
    if facts.moved_paths & {f"{path}.min", f"{path}.max"}:
        return True
    least = overrides.get(f"{path}.min", rule.min)
    return least == 0 or overrides.get(f"{path}.max", rule.max) == 1


RULES = (some_groups_pass,)
