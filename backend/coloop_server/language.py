"""The loop language as the routes need it: read, check, override, and say no with diagnostics.

The same functions of `coloop` stand behind the command line, so both say the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from coloop.errors import SpecProblem
from coloop.plan.cost import Estimate
from coloop.plan.run_check import check_run
from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Change, Diagnostic, Report
from coloop.spec.graph import LoopSpec
from coloop.spec.io import Parsed, parse, read_document
from coloop.spec.paths import apply_overrides, check_path
from coloop.spec.presets import patched
from coloop.validate import validate
from coloop_server.errors import Conflict, Invalid
from coloop_server.paths import Roots, spec_paths
from coloop_server.remote_code import check_remote_code, remote_code
from coloop_server.settings import Settings

OVER_BUDGET = "memory.over_budget"


def invalid(message: str, diagnostics: Iterable[object]) -> Invalid:
    """422 with what `coloop validate --json` prints."""
    findings = tuple(item for item in diagnostics if isinstance(item, Diagnostic))
    first = next((item for item in findings if item.is_error), None)
    told = f"{message}: {first.describe()}" if first is not None else message
    return Invalid("spec.invalid", told, Report(diagnostics=findings).to_json())


def document(text: str) -> dict[str, Any] | None:
    """The text as plain data, also of drafts with errors; None if it is no loop."""
    return read_document(text).document


def require_document(text: str) -> dict[str, Any]:
    """The text as plain data; a text that is not a loop is an error for the user to fix."""
    parsed = read_document(text)
    if parsed.document is None:
        raise invalid("the text is not a loop", parsed.diagnostics)
    return parsed.document


def require_spec(text: str) -> LoopSpec:
    return require_parsed(parse(text))


def require_parsed(parsed: Parsed) -> LoopSpec:
    if parsed.spec is None:
        raise invalid("the loop cannot be read", parsed.diagnostics)
    return parsed.spec


def require_own_code(text: str, settings: Settings, *, is_confirmed: bool) -> None:
    """Refuse a loop that runs a model's own Python if that is not allowed or not confirmed."""
    spec = require_spec(text)
    check_remote_code(spec, is_allowed=settings.allow_remote_code, is_confirmed=is_confirmed)


def require_runnable(text: str, *, force: bool, roots: Roots | None = None) -> LoopSpec:
    """The spec in a text, checked and compiled like `coloop run` does. Its paths are checked
    against the roots before any of its files is read."""
    spec = require_spec(text)
    if roots is not None:
        roots.check_spec(spec)
    report = validate(spec, root=roots.base_for(spec) if roots is not None else None)
    if not report.ok:
        raise invalid("the loop has errors", report.diagnostics)
    if refusals := check_run(spec).refusals:
        raise invalid("the loop cannot run", refusals)
    over = [diagnostic for diagnostic in report.diagnostics if diagnostic.code == OVER_BUDGET]
    if over and not force:
        raise Conflict(
            OVER_BUDGET,
            f"{over[0].message}; it may run out of memory: send `force` to start anyway",
            report.to_json(),
        )
    return spec


def is_runnable(spec: LoopSpec, unrolled: Unrolled, estimate: Estimate) -> bool:
    """Whether a run would accept the loop, memory aside.

    Args:
        unrolled: the loop's steps.
        estimate: its prediction.
    """
    report = validate(spec, unrolled=unrolled, estimate=estimate)
    return report.ok and not check_run(spec, unrolled).refusals


def with_overrides(text: str, overrides: Mapping[str, Any]) -> str:
    """The text with some fields changed and comments kept."""
    if not overrides:
        return text
    spec = require_spec(text)
    try:
        apply_overrides(spec, overrides)
        changes = [Change(op="set", path=path, value=value) for path, value in overrides.items()]
        return patched(text, changes)
    except SpecProblem as problem:
        raise invalid("an override is not valid", problem.diagnostics) from problem


def check_edit(text: str, changes: Mapping[str, Any], settings: Settings) -> None:
    """During a run, only hot fields may change, only to valid values, and paths must be inside the
    roots."""
    spec = require_spec(text)
    problems = [problem for path in changes if (problem := check_path(spec, path, hot=True))]
    if problems:
        raise invalid("the run cannot accept this change", problems)
    try:
        changed = apply_overrides(spec, changes)
    except SpecProblem as problem:
        raise invalid("the run cannot accept this change", problem.diagnostics) from problem
    if remote_code(changed) != remote_code(spec):
        check_remote_code(changed, is_allowed=settings.allow_remote_code, is_confirmed=False)
    before = set(spec_paths(spec))
    for field, path in spec_paths(changed):
        if (field, path) not in before:
            settings.roots.check_field(field, path)
