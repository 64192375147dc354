"""`coloop fit`: settings that make a loop fit into memory, each with its reason."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from coloop.cli.check import Checked, checked_spec
from coloop.cli.output import complain, console, gib, seconds
from coloop.cli.source import UNREADABLE
from coloop.data.files.marks import write_whole
from coloop.plan.cost.advice import unknown_hint
from coloop.plan.cost.relaxing import BudgetResult
from coloop.plan.cost.solving import fit, solve
from coloop.plan.cost.ways import Way, ways_of
from coloop.plan.run_check import check_run, refused_because, refused_words
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.presets import patched
from coloop.spec.solvable import locks_of
from coloop.validate import validate

CANNOT_FIT = 1


def fit_command(
    spec: str,
    settings: Sequence[str] = (),
    *,
    budget_gib: float | None,
    fraction: float | None,
    out: Path | None,
) -> int:
    """Print the changes that make SPEC fit, and write the changed loop to `out`."""
    checked, code = checked_spec(spec, settings, as_json=False)
    if checked is None or checked.spec is None:
        return code
    fitted = fit(
        checked.spec,
        budget_gib=budget_gib,
        budget_fraction=fraction,
        root=checked.source.root,
        locks=locks_of(checked.spec),
    )
    prints_loop = str(out) == "-"
    _print_changes(fitted, stderr=prints_loop)
    if not fitted.fits:
        if not fitted.after.estimate.unknown:
            _print_ways(checked, fitted, stderr=prints_loop)
        return CANNOT_FIT
    if out is not None:
        text = patched(
            checked.source.text,
            [Change(op="set", path=change.path, value=change.new) for change in fitted.changes],
        )
        return _write(text, out)
    return 0


def _print_changes(fitted: BudgetResult, *, stderr: bool) -> None:
    out = console(stderr=stderr)
    for change in fitted.changes:
        before = "not set" if change.old is None else _show(change.old)
        out.print(
            f"{escape(change.path)}: {before} → [bold]{_show(change.new)}[/] "
            f"[dim]({escape(change.reason)})[/]"
        )
    was, now = fitted.before.estimate.step_seconds, fitted.after.estimate.step_seconds
    gpu = fitted.binding
    unknown = fitted.after.estimate.unknown
    if unknown:
        for gap in unknown:
            text = f"{' and '.join(gap.nodes)} ({gap.reason}; {unknown_hint(gap)})"
            out.print(f"[bold yellow]unknown[/]: {escape(text)}")
        out.print("[bold yellow]not known[/]: cannot tell whether it fits")
        return
    if gpu is not None and gpu.peak_bytes is not None:
        state = f"{gpu.pool} {gpu.index} peaks at {gib(gpu.peak_bytes)} in {gpu.peak_stage}"
        out.print(f"{escape(state)}; {gib(gpu.usable_bytes)} are usable")
    if fitted.fits and now is not None:
        before = "" if was is None else f" (was {seconds(was)})"
        out.print(f"[green]fits[/]; a step takes {seconds(now)}{before}")
    elif fitted.over_bytes:
        least = fitted.least_over_bytes
        still = f"; {gib(least)} over with every setting that may change" if least else ""
        out.print(f"[bold red]does not fit[/]: {gib(fitted.over_bytes)} over{still}")
    elif gpu is not None:
        out.print(f"[bold red]does not fit[/]: {escape(gpu.reason or '')}")
    if fitted.refusals:
        out.print(f"[bold red]does not run[/]: {escape(refused_words(fitted.refusals))}")


def _print_ways(checked: Checked, fitted: BudgetResult, *, stderr: bool) -> None:
    """Print what a user could change instead, one at a time."""
    spec, root = checked.spec, checked.source.root
    assert spec is not None
    budget, locks = fitted.spec.hardware.memory_budget, locks_of(spec)
    failed = solve(spec, budget_fraction=budget, root=root, locks=locks)
    ways = ways_of(spec, failed, locks, root, lambda other: _refusal(other, root))
    out = console(stderr=stderr)
    if not ways:
        out.print("[dim]neither larger known hardware nor an adapter gets closer[/]")
    for way in ways:
        out.print(f"  {escape(way.title)}: {escape(_outcome(way))} [dim]({escape(way.reason)})[/]")


def _outcome(way: Way) -> str:
    """Whether it fits, and the time of a step if it does."""
    left = f"still {gib(way.over_bytes)} over" if way.over_bytes else "fits"
    if way.refusal is not None:
        return f"{left}, but {refused_because(way.refusal)}"
    return left if way.step_seconds is None else f"{left}, a step takes {seconds(way.step_seconds)}"


def _refusal(spec: LoopSpec, root: Path) -> str | None:
    """Why a run would refuse a loop, or None."""
    errors = validate(spec, root=root).errors
    if errors:
        return errors[0].message
    refusals = check_run(spec, root=root).refusals
    return refusals[0].message if refusals else None


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)


def _write(text: str, out: Path) -> int:
    if str(out) == "-":
        console().file.write(text)
        return 0
    try:
        write_whole(out, text)
    except OSError as error:
        complain(f"{out} cannot be written: {error.strerror or error}")
        return UNREADABLE
    return 0
