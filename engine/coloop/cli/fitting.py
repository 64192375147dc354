"""`coloop fit`: settings under which a loop stays within its memory, each with its reason."""

from pathlib import Path
from typing import Any

from rich.markup import escape

from coloop.cli.check import checked_spec
from coloop.cli.output import complain, console, gib, seconds
from coloop.cli.source import UNREADABLE
from coloop.diagnostics import Change
from coloop.estimate.fit import Fit, fit
from coloop.marks import write_whole
from coloop.spec.solvable import locks_of
from coloop.spec.text.patch import patch

CANNOT_FIT = 1


def fit_command(
    spec: str, *, budget_gib: float | None, fraction: float | None, out: Path | None
) -> int:
    """Prints the changes that make SPEC fit, and writes the loop where it is asked to."""
    checked, code = checked_spec(spec, as_json=False)
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
        return CANNOT_FIT
    if out is not None:
        text = patch(
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
    if place is not None:
        state = f"{place.pool} {place.index} peaks at {gib(place.peak_bytes)} in {place.peak_stage}"
        out.print(f"{escape(state)}, usable are {gib(place.usable_bytes)}")
    if found.fits:
        out.print(f"[green]fits[/]; a step takes {seconds(now)} (was {seconds(was)})")
    elif found.over_bytes:
        out.print(f"[bold red]does not fit[/]: still {gib(found.over_bytes)} over")
        out.print("[dim]an adapter (`model.lora`), a smaller model or more GPUs would help[/]")
    else:
        out.print("[bold red]does not fit[/]: an engine has no room for one sequence")


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
