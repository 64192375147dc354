"""Checks of a loop before anything runs: `validate(spec) -> Report`.

A family of rules is a file; its public functions `(Facts) -> Iterator[Diagnostic]` are the rules.
To add a check: a code in `diagnostics.CODES`, a rule, a wrong loop in the tests.

    spec -> Facts (walk, lineage, phases, groups) -> rules -> findings, with fixes that were tried
    without errors: spec -> Unrolled -> estimate -> findings about the steps and their costs

Invariants: no rule raises on a half-drawn loop; each problem is reported once; a fix that is
offered was tried (`tried`); without `root` no file is opened. Whatever can be wrong with single
fields is found earlier, when the text is read.
"""

from pathlib import Path

from coloop.plan.cost import Estimate
from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Diagnostic, Report, Severity
from coloop.spec.graph import LoopSpec
from coloop.validate import (
    columns,
    data,
    distillation,
    groups,
    learning,
    metrics,
    numerics,
    placement,
    references,
    rounds,
    schedule,
    seen,
    settings,
    structure,
    taught,
    texts,
    user_code,
    weights,
)
from coloop.validate.budget import costs_are_fine
from coloop.validate.facts import Facts, rules_of
from coloop.validate.seen import tables_are_there_to_measure
from coloop.validate.tried import with_tried_fixes

FAMILIES = (
    *(structure, rounds, references, metrics, data, texts, user_code),
    *(columns, seen, settings, weights, learning, distillation, groups, taught, schedule),
    *(numerics, placement),
)
RULES = tuple(rule for family in FAMILIES for rule in rules_of(family))


def validate(
    spec: LoopSpec,
    *,
    strict: bool = False,
    root: Path | None = None,
    estimate: Estimate | None = None,
    unrolled: Unrolled | None = None,
) -> Report:
    """All findings about a loop.

    Args:
        strict: warnings count as errors.
        root: the loop's folder; files are only read if it is given.
        estimate: the prediction, if the caller already has it.
        unrolled: the loop's unrolled steps, if the caller already has them.
    """
    facts = Facts(spec, root)
    findings = with_tried_fixes(facts, check(facts), check)
    if not any(finding.is_error for finding in findings):
        unrolled = unrolled if unrolled is not None else Unrolled(spec)
        findings += tables_are_there_to_measure(unrolled)
        findings += costs_are_fine(unrolled, root, estimate)
    if strict:
        error = {"severity": Severity.ERROR}
        findings = [
            finding.model_copy(update=error) if finding.severity is Severity.WARNING else finding
            for finding in findings
        ]
    return Report(diagnostics=tuple(findings))


def check(facts: Facts) -> list[Diagnostic]:
    """Findings of all rules that need neither unrolled steps nor costs."""
    findings = [finding for rule in RULES for finding in rule(facts)]
    return [*findings, *facts.lineage_findings]


__all__ = ["RULES", "Facts", "validate"]
