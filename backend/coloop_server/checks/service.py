"""Checks a loop: findings, cost, and what would run."""

import shutil
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from coloop.errors import ColoopError, SpecProblem
from coloop.plan.batch_breakdown import batch_breakdowns
from coloop.plan.cost import Explanation, explain
from coloop.plan.explain import probe_line, update_line
from coloop.plan.run_check import check_run
from coloop.plan.settings.machine import Machine
from coloop.plan.settings.resolver import Resolved
from coloop.plan.terms import Terms, terms_of
from coloop.plan.types import Plan, Stage, StageRows
from coloop.plan.unrolled import Unrolled
from coloop.spec.changes import diff
from coloop.spec.diagnostics import Change, Diagnostic, Severity
from coloop.spec.graph import LoopSpec
from coloop.spec.io import Parsed, content_hash, dump, from_dict, parse
from coloop.spec.modes import mode_of
from coloop.spec.presets import patched
from coloop.spec.text.emit import to_yaml
from coloop.validate import validate
from coloop_server.checks.schemas import (
    CheckReport,
    CheckResult,
    Fragment,
    LoopInput,
    ParseResult,
    PatchResult,
    PatchText,
    PlannedPhase,
    PlannedProbe,
    PlannedStage,
    PlanSummary,
    PredictedTime,
)
from coloop_server.errors import NotAllowed
from coloop_server.language import invalid, require_document, require_parsed
from coloop_server.paths import Roots
from coloop_server.remote_code import not_allowed
from coloop_server.settings import Settings


def check(body: LoopInput, settings: Settings) -> CheckResult:
    return check_parsed(parsed_of(body), settings)


def check_parsed(parsed: Parsed, settings: Settings) -> CheckResult:
    if parsed.spec is None:
        unread = report_of(parsed, parsed.diagnostics)
        return CheckResult(report=unread, estimate=None, time=None, plan=None, mode=None)
    roots = settings.roots
    foreign = [] if settings.allow_remote_code else not_allowed(parsed.spec)
    outside = [_leads_outside(*refused) for refused in roots.outside(parsed.spec)]
    root = None if outside else roots.base_for(parsed.spec)
    unrolled = Unrolled(parsed.spec)
    explanation = explanation_of(parsed.spec, root, unrolled)
    cost = None if explanation is None else explanation.estimate
    report = validate(parsed.spec, root=root, estimate=cost, unrolled=unrolled)
    plan, refusals = plan_of(parsed.spec, unrolled, root) if report.ok else (None, [])
    return CheckResult(
        report=report_of(parsed, (*outside, *foreign, *report.diagnostics, *refusals)),
        estimate=cost,
        time=None if explanation is None else PredictedTime.of(explanation),
        budget=parsed.spec.hardware.memory_budget,
        missing=None
        if explanation is None
        else missing_here(unrolled.settings(root).survey.machine, settings),
        plan=None if plan is None else summarise(plan, parsed.spec, unrolled.settings(root)),
        mode=mode_of(parsed.spec),
        spec_hash=content_hash(parsed.spec),
    )


def parsed_of(body: LoopInput) -> Parsed:
    return parse(body.yaml) if body.yaml is not None else from_dict(body.spec)


def root_of(spec: LoopSpec, roots: Roots) -> Path | None:
    """Base folder for the loop's files; None if one of its paths is outside the roots."""
    return None if any(roots.outside(spec)) else roots.base_for(spec)


def _leads_outside(path: str, refusal: NotAllowed) -> Diagnostic:
    node, _, field = path.removeprefix("nodes.").partition(".")
    is_of_node = path.startswith("nodes.")
    return Diagnostic(
        code="data.outside",
        message=str(refusal).partition(": ")[2],
        hint="put the file into a folder that this server may use",
        node=node if is_of_node else None,
        field=field if is_of_node else path,
    )


def explanation_of(spec: LoopSpec, root: Path | None, unrolled: Unrolled) -> Explanation | None:
    """The cost, as far as known; a draft may name hardware that does not exist."""
    try:
        return explain(spec, unrolled, root=root)
    except ColoopError:
        return None


def terms(body: LoopInput, roots: Roots) -> Terms:
    """The formulas behind the numbers of `explanation_of`."""
    spec = require_parsed(parsed_of(body))
    return terms_of(spec, root=root_of(spec, roots))


def report_of(parsed: Parsed, diagnostics: Iterable[Diagnostic]) -> CheckReport:
    """Findings, with positions if the loop is a text."""
    located = [parsed.locate(diagnostic) for diagnostic in diagnostics]
    return CheckReport(ok=not any(item.is_error for item in located), diagnostics=located)


def plan_of(spec: LoopSpec, unrolled: Unrolled, root: Path | None) -> tuple[Plan, list[Diagnostic]]:
    """The plan, and what cannot run yet, which is no error of a drawing."""
    run_check = check_run(spec, unrolled, root=root)
    as_warning = {"severity": Severity.WARNING}
    return run_check.plan, [refusal.model_copy(update=as_warning) for refusal in run_check.refusals]


def refusal_of(spec: LoopSpec, root: Path | None) -> str | None:
    report = validate(spec, root=root)
    wrong = next((finding.message for finding in report.diagnostics if finding.is_error), None)
    if wrong is not None:
        return wrong
    refusals = check_run(spec, root=root).refusals
    return refusals[0].message if refusals else None


def summarise(plan: Plan, spec: LoopSpec, resolved: Resolved) -> PlanSummary:
    return PlanSummary(
        phases=[
            PlannedPhase(
                name=phase.name,
                index=phase.index,
                rounds=phase.rounds,
                steps=phase.steps,
                ends=phase.ends,
                learn=list(phase.learn),
                stages=[stage.name for stage in phase.stages],
                rows=_stages(phase.stages, phase.rows),
                updates=[update_line(update) for update in phase.updates],
                dead_edges=list(phase.dead_edges),
            )
            for phase in plan.phases
        ],
        probes=[
            PlannedProbe(
                node=probe.node,
                every=probe.every,
                text=probe_line(probe),
                writers=list(probe.writers),
                greedy=probe.greedy,
                samples=probe.samples,
                rows=_stages((*probe.sources, *probe.stages, *probe.of_stages), probe.rows),
            )
            for probe in plan.probes
        ],
        decisions=list(plan.decisions),
        breakdowns=list(batch_breakdowns(plan, spec, resolved)),
        explain=list(plan.explain),
    )


def _stages(stages: Iterable[Stage], rows: Iterable[StageRows]) -> list[PlannedStage]:
    counts = {counted.stage: counted for counted in rows}
    return [
        PlannedStage(
            stage=stage.name,
            node=stage.node,
            rows=counts[stage.name].rows.text if stage.name in counts else None,
            breakdown=counts[stage.name].rows.breakdown if stage.name in counts else "",
            passes=counts[stage.name].passes if stage.name in counts else 1,
        )
        for stage in stages
    ]


def read_text(text: str) -> ParseResult:
    parsed = parse(text)
    document = parsed.document or {}
    layout = document.get("layout")
    return ParseResult(
        spec=document if parsed.spec is not None else None,
        diagnostics=list(parsed.diagnostics),
        layout=layout if isinstance(layout, dict) else None,
    )


def patch_text(body: PatchText) -> PatchResult:
    """Change a text and nothing else in it. The result may be a draft with errors."""
    try:
        text = patched(body.yaml, changes_of(body))
    except SpecProblem as problem:
        raise invalid("the text cannot be changed like this", problem.diagnostics) from problem
    parsed = parse(text)
    return PatchResult(
        yaml=text,
        spec=parsed.document if parsed.spec is not None else None,
        diagnostics=list(parsed.diagnostics),
    )


def changes_of(body: PatchText) -> list[Change]:
    """The changes as given, or those that lead from the text to the spec."""
    if body.changes is not None:
        return body.changes
    return list(diff(require_document(body.yaml), body.spec or {}))


def dump_spec(spec: dict[str, Any]) -> str:
    """The canonical text of a spec; a draft with errors is written as it is."""
    parsed = from_dict(spec)
    return dump(parsed.spec) if parsed.spec is not None else to_yaml(spec)


def read_fragment(text: str) -> Fragment:
    """The nodes of a text with the edges among them; no nodes where it is none of a loop. The text
    may be a whole loop, its `nodes` and `edges`, or a few nodes as they stand below `nodes:`."""
    parsed = parse(text)
    document = parsed.document
    if document is None:
        return Fragment(nodes={}, edges=[], layout={}, diagnostics=list(parsed.diagnostics))
    edges, layout = document.get("edges"), document.get("layout")
    return Fragment(
        nodes=_nodes(document),
        edges=[edge for edge in edges if isinstance(edge, (str, dict))]
        if "nodes" in document and isinstance(edges, list)
        else [],
        layout=layout if isinstance(layout, dict) else {},
        diagnostics=[],
    )


def _nodes(document: dict[str, Any]) -> dict[str, Any]:
    nodes = document.get("nodes") if "nodes" in document else document
    if not isinstance(nodes, dict):
        return {}
    return {name: node for name, node in nodes.items() if isinstance(node, dict) and "kind" in node}


ASK_SECONDS = 10


def missing_here(machine: Machine, settings: Settings) -> str | None:
    """Why a run would not find its GPUs; None if it would, or if runs go to a cluster of unknown
    size."""
    wanted = sum(pool.gpus for pool in machine.pools.values())
    if not wanted or settings.ray_address:
        return None
    here = gpus_here()
    if wanted <= here:
        return None
    there = "no GPU" if here == 0 else f"{here} GPU" + ("s" if here > 1 else "")
    wants = f"{wanted} GPU" + ("s" if wanted > 1 else "")
    return f"The loop needs {wants} ({machine.preset.title}), and this machine has {there}."


@lru_cache(maxsize=1)
def gpus_here() -> int:
    """GPUs of this machine, according to the driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        listed = subprocess.run(
            [program, "--list-gpus"],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())
