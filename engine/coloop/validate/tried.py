"""Fixes are tried before they are offered: applied to the loop, which is then checked again.

    finding ----> its fixes, each applied to the loop and checked again ----> those that help,
                                                                             the best first

Invariants: a fix that is offered can be applied and read, adds no error, and lets nothing learn
from rows that an evaluation holds out. What is still missing after an edge was added is a next
step, not an error of the fix.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import UNFINISHED, Diagnostic, Fix
from coloop.spec.graph import LoopSpec
from coloop.spec.io import apply_changes, from_dict, to_dict
from coloop.spec.nodes import DatasetNode, EvaluateNode
from coloop.validate.facts import Facts

MOST_STEPS = 2
"""Maximum fixes of one finding that add edges."""
MOST_TRIED = 32
"""Maximum fixes tried per loop; findings take turns, each with its first ones first."""

Check = Callable[[Facts], Iterable[Diagnostic]]


@dataclass(frozen=True, slots=True)
class _Tried:
    fix: Fix
    errors: int
    findings: int


def with_tried_fixes(
    facts: Facts, findings: Sequence[Diagnostic], check: Check
) -> list[Diagnostic]:
    """The same findings, each with only the fixes that add no error."""
    queue = sorted(
        (rank, index)
        for index, finding in enumerate(findings)
        for rank in range(len(finding.fixes))
    )
    if not queue:
        return list(findings)
    document = to_dict(facts.spec)
    before = _errors(findings)
    held = _held_out(facts)
    tried: dict[int, list[_Tried]] = {}
    for rank, index in queue[:MOST_TRIED]:
        fix = findings[index].fixes[rank]
        after = _applied(facts, document, fix)
        if after is None or held & _learned(after):
            continue
        left = list(check(after))
        unfinished = UNFINISHED if _is_step(fix) else frozenset()
        if all(code in unfinished for code, _ in _errors(left) - before):
            trial = _Tried(fix, sum(finding.is_error for finding in left), len(left))
            tried.setdefault(index, []).append(trial)
    return [
        finding.model_copy(update={"fixes": _chosen(tried.get(index, []))})
        if finding.fixes
        else finding
        for index, finding in enumerate(findings)
    ]


def _applied(facts: Facts, document: dict[str, object], fix: Fix) -> Facts | None:
    """The loop after a fix; None if it cannot be applied or read."""
    try:
        spec = from_dict(apply_changes(document, fix.changes)).spec
    except (SpecProblem, LookupError, TypeError, ValueError):
        return None
    if spec is None:
        return None
    return Facts(spec, known_columns=_columns(facts, spec))


def _columns(facts: Facts, spec: LoopSpec) -> dict[str, frozenset[str]]:
    """Columns of the sources that were read, by the names mapped after a fix."""
    return {
        name: (facts.glances[name].columns or frozenset()) | frozenset(node.columns)
        for name in facts.known_columns
        if name in facts.glances
        and isinstance(node := spec.nodes.get(name), DatasetNode)
        and node.source == getattr(facts.nodes[name], "source", None)
    }


def _errors(findings: Iterable[Diagnostic]) -> "Counter[tuple[str, str | None]]":
    """Number of errors by code and node, because a fix may change edge indices."""
    return Counter((finding.code, finding.node) for finding in findings if finding.is_error)


def _held_out(facts: Facts) -> frozenset[str]:
    """Datasets that are evaluated but not learned from."""
    probes = [name for name, node in facts.nodes.items() if isinstance(node, EvaluateNode)]
    edges = [edge for name in probes for edge in facts.walk.into(name, "rows", "pairs")]
    nodes = {edge.source.node for edge in edges}
    return _datasets(facts, nodes | facts.walk.upstream(*nodes)) - _learned(facts)


def _learned(facts: Facts) -> frozenset[str]:
    learners = {node for node, _ in facts.teaching_ports}
    givers = {
        edge.source.node
        for node, port in facts.teaching_ports
        for edge in facts.walk.into(node, port)
    }
    return _datasets(facts, facts.walk.upstream(*learners, *givers) | learners | givers)


def _datasets(facts: Facts, names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in names if facts.walk.kinds.get(name) == "dataset")


def _chosen(tried: Sequence[_Tried]) -> tuple[Fix, ...]:
    """The `MOST_STEPS` fixes with new edges that resolve most, then the fixes without new edges."""
    steps = sorted(
        (trial for trial in tried if _is_step(trial.fix)),
        key=lambda trial: (trial.errors, trial.findings),
    )
    others = [trial for trial in tried if not _is_step(trial.fix)]
    return tuple(trial.fix for trial in (*steps[:MOST_STEPS], *others))


def _is_step(fix: Fix) -> bool:
    """Whether a fix adds an edge."""
    return any(change.op == "add_edge" for change in fix.changes)
