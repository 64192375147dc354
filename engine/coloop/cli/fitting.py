"""`coloop fit`: settings under which a loop stays within its memory, each with its reason."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from coloop.cli.check import Checked, checked_spec
from coloop.cli.output import complain, console, gib, seconds
from coloop.cli.source import UNREADABLE
from coloop.data.files.marks import write_whole
from coloop.plan.cost.fit import Fit, fit
from coloop.plan.cost.missing import unknown_hint
from coloop.plan.cost.solving import solve
from coloop.plan.cost.ways import Way, ways_of
from coloop.plan.refused import outlook_of, refused_because, refused_words
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
    """Prints the changes that make SPEC fit, and writes the loop where it is asked to."""
    checked, code = checked_spec(spec, settings, as_json=False)
    if checked is None or checked.spec is None:
        return code
    found = fit(
        checked.spec,
        budget_gib=budget_gib,
        budget_fraction=fraction,
        root=checked.source.root,
        locks=locks_of(checked.spec),
    )
    prints_loop = str(out) == "-"
    _print_changes(found, stderr=prints_loop)
    if not found.fits:
        if not found.after.estimate.unknown:
            _print_ways(checked, found, stderr=prints_loop)
        return CANNOT_FIT
    if out is not None:
        text = patched(
            checked.source.text,
            [Change(op="set", path=change.path, value=change.new) for change in found.changes],
        )
        return _write(text, out)
    return 0


def _print_changes(found: Fit, *, stderr: bool) -> None:
    out = console(stderr=stderr)
    for change in found.changes:
        before = "open" if change.old is None else _show(change.old)
        out.print(
            f"{escape(change.path)}: {before} → [bold]{_show(change.new)}[/] "
            f"[dim]({escape(change.reason)})[/]"
        )
    was, now = found.before.estimate.step_seconds, found.after.estimate.step_seconds
    place = found.binding
    unknown = found.after.estimate.unknown
    if unknown:
        for one in unknown:
            text = f"{' and '.join(one.nodes)} ({one.reason}; {unknown_hint(one)})"
            out.print(f"[bold yellow]unknown[/]: {escape(text)}")
        out.print("[bold yellow]not known[/]: whether it fits")
        return
    if place is not None and place.peak_bytes is not None:
        state = f"{place.pool} {place.index} peaks at {gib(place.peak_bytes)} in {place.peak_stage}"
        out.print(f"{escape(state)}, usable are {gib(place.usable_bytes)}")
    if found.fits and now is not None:
        before = "" if was is None else f" (was {seconds(was)})"
        out.print(f"[green]fits[/]; a step takes {seconds(now)}{before}")
    elif found.over_bytes:
        least = found.least_over_bytes
        still = f"; with everything that may change {gib(least)}" if least else ""
        out.print(f"[bold red]does not fit[/]: {gib(found.over_bytes)} over{still}")
    elif place is not None:
        out.print(f"[bold red]does not fit[/]: {escape(place.reason or '')}")
    if found.refusals:
        out.print(f"[bold red]does not run[/]: {escape(refused_words(found.refusals))}")


def _print_ways(checked: Checked, found: Fit, *, stderr: bool) -> None:
    """What a person may change, each by itself."""
    spec, root = checked.spec, checked.source.root
    assert spec is not None
    budget, locks = found.spec.hardware.memory_budget, locks_of(spec)
    failed = solve(spec, budget_fraction=budget, root=root, locks=locks)
    ways = ways_of(spec, failed, locks, root, lambda other: _refusal(other, root))
    out = console(stderr=stderr)
    if not ways:
        out.print("[dim]no larger hardware that is known, nor an adapter, comes closer[/]")
    for way in ways:
        out.print(f"  {escape(way.title)}: {escape(_led_to(way))} [dim]({escape(way.reason)})[/]")


def _led_to(way: Way) -> str:
    """Whether it fits, and how long a step takes where there will be one."""
    left = f"still {gib(way.over_bytes)} over" if way.over_bytes else "fits"
    if way.refusal is not None:
        return f"{left}, but {refused_because(way.refusal)}"
    return left if way.step_seconds is None else f"{left}, a step takes {seconds(way.step_seconds)}"


def _refusal(spec: LoopSpec, root: Path) -> str | None:
    """Why a run would not take a loop."""
    errors = validate(spec, root=root).errors
    if errors:
        return errors[0].message
    refusals = outlook_of(spec, root=root).refusals
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
