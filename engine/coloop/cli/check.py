"""`coloop validate`, and the validation that other commands run first."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.markup import escape

from coloop.cli.output import complain, console, count, print_diagnostics, print_json
from coloop.cli.source import UNREADABLE, Source, parse_source, read_source, with_settings
from coloop.errors import SpecProblem, SpecUnreadable
from coloop.plan.cost import Explanation, explain
from coloop.plan.run_check import RunCheck, check_run
from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Diagnostic, Report
from coloop.spec.graph import LoopSpec
from coloop.validate import validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A loop and its findings."""

    source: Source
    spec: LoopSpec | None
    report: Report
    is_readable: bool
    explanation: Explanation | None = None
    """The estimate behind the memory check."""
    unrolled: Unrolled | None = None

    @property
    def exit_code(self) -> int:
        """0 without errors, 1 with errors, 2 if the text cannot be parsed."""
        if not self.is_readable:
            return UNREADABLE
        return 0 if self.report.ok and self.spec is not None else 1


def check(spec: str, settings: Sequence[str] = (), *, strict: bool = False) -> Checked:
    """Reads and validates SPEC.

    Args:
        settings: overrides, each `path=value`.

    Raises:
        SpecUnreadable: SPEC cannot be read.
        SpecProblem: an override does not fit the loop.
    """
    source = with_settings(read_source(spec), settings)
    parsed, is_readable = parse_source(source)
    if parsed.spec is None:
        return Checked(
            source=source,
            spec=None,
            report=Report(diagnostics=parsed.diagnostics),
            is_readable=is_readable,
        )
    unrolled = Unrolled(parsed.spec)
    explanation = explain(parsed.spec, unrolled, root=source.root)
    report = validate(
        parsed.spec,
        strict=strict,
        root=source.root,
        estimate=explanation.estimate,
        unrolled=unrolled,
    )
    located = tuple(
        parsed.locate(finding) for finding in (*parsed.diagnostics, *report.diagnostics)
    )
    return Checked(
        source=source,
        spec=parsed.spec,
        report=Report(diagnostics=located),
        is_readable=True,
        explanation=explanation,
        unrolled=unrolled,
    )


def checked_spec(
    spec: str, settings: Sequence[str] = (), *, as_json: bool
) -> tuple[Checked | None, int]:
    """A loop without errors, or None and the exit code; prints the findings."""
    try:
        checked = check(spec, settings)
    except SpecUnreadable as unreadable:
        complain(str(unreadable))
        return None, UNREADABLE
    except SpecProblem as problem:
        return None, _refuse_setting(problem, as_json=as_json)
    if checked.exit_code:
        if as_json:
            print_json(checked.report.to_json())
        else:
            print_diagnostics(checked.report.errors, stderr=True)
        return None, checked.exit_code
    return checked, 0


def _refuse_setting(problem: SpecProblem, *, as_json: bool) -> int:
    """Print what is wrong with `--set` and return the exit code."""
    findings = [finding for finding in problem.diagnostics if isinstance(finding, Diagnostic)]
    if as_json:
        dumped = [finding.model_dump(mode="json") for finding in findings]
        print_json({"ok": False, "message": str(problem), "diagnostics": dumped})
    else:
        complain(str(problem))
        print_diagnostics(findings, stderr=True)
    return 1


def validate_command(
    spec: str, settings: Sequence[str] = (), *, strict: bool, as_json: bool
) -> int:
    """Print the findings of SPEC and return the exit code."""
    try:
        checked = check(spec, settings, strict=strict)
    except SpecUnreadable as unreadable:
        complain(str(unreadable))
        return UNREADABLE
    except SpecProblem as problem:
        return _refuse_setting(problem, as_json=as_json)
    report = checked.report
    fails = strict and bool(report.warnings)
    run_check = (
        check_run(checked.spec, checked.unrolled, root=checked.source.root)
        if checked.spec is not None and report.ok
        else None
    )
    if as_json:
        runs = {"runs": False, "refusals": []} if run_check is None else run_check.to_json()
        print_json(report.to_json() | {"ok": report.ok and not fails} | runs)
    else:
        print_diagnostics(report.diagnostics)
        _print_verdict(checked, run_check)
    return checked.exit_code or (1 if fails else 0)


def print_run_check(run_check: RunCheck) -> None:
    """Print one line if a run would refuse the loop."""
    if run_check.sentence is not None:
        console().print(f"[yellow]{escape(run_check.sentence)}[/]")


def _print_verdict(checked: Checked, run_check: RunCheck | None) -> None:
    errors, warnings = len(checked.report.errors), len(checked.report.warnings)
    out = console()
    if errors or checked.spec is None:
        out.print(f"[bold red]{count(errors, 'error')}[/], {count(warnings, 'warning')}")
        return
    spec = checked.spec
    size = f"{count(len(spec.nodes), 'node')}, {count(len(spec.edges), 'edge')}"
    also = f", {count(warnings, 'warning')}" if warnings else ""
    if run_check is not None and run_check.sentence is not None:
        out.print(f"[yellow]{escape(spec.name)}: {escape(run_check.sentence)}[/] ({size}{also})")
        return
    out.print(f"[green]ok[/] {spec.name}: {size}{also}")
