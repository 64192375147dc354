"""`coloop rehearse`: the same loop at the size of a desk, run to its end in this process.

Exit codes: 0 every phase ended and every learner learned, 1 the loop is not valid or something did
not come to pass, 2 it cannot be read.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from coloop.cli.check import checked_spec
from coloop.cli.output import complain, console, count, print_diagnostics, print_json, seconds
from coloop.errors import PlanRefused, SpecProblem
from coloop.explain.rehearsal import STEPS, Rehearsal, RehearsalResult, rehearsed, tell
from coloop.plan.refused import outlook_of
from coloop.sandbox.memory import keep_private
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.io import dump


def rehearse_command(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A file, `-`, or a preset's name.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override one field: path=value. May be repeated."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=100, help="Most steps of a phase.")] = STEPS,
    show: Annotated[
        bool, typer.Option("--show", help="Print the loop that would run, and run nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the same loop, shrunken, for a few steps."""
    keep_private()
    checked, code = checked_spec(spec, settings or (), as_json=as_json)
    if checked is None or checked.spec is None:
        raise typer.Exit(code)
    try:
        rehearsal = rehearsed(checked.spec, steps=steps, root=checked.source.root)
        if show:
            console().print(dump(rehearsal.spec), markup=False, end="")
            raise typer.Exit(0)
        told = rehearse(checked.spec, rehearsal, root=checked.source.root)
    except (PlanRefused, SpecProblem) as refused:
        _refuse(str(refused), refused.diagnostics, as_json=as_json)
    if as_json:
        print_json(_as_json(rehearsal, told))
    else:
        _print(rehearsal, told)
    raise typer.Exit(0 if told.ok else 1)


def rehearse(spec: LoopSpec, rehearsal: Rehearsal, *, root: Path) -> RehearsalResult:
    """Run a rehearsal in this process; nothing of it stays.

    Args:
        spec: the loop as it was given; what a run of it refuses, its rehearsal does.

    Raises:
        PlanRefused: nothing was started.
    """
    refusals = outlook_of(spec, root=root).refusals
    if refusals:
        raise PlanRefused(refusals[0].message, refusals)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from coloop.runtime.checkpoints.run_folder import RunRequest
    from coloop.runtime.run_files.event_file import read_events
    from coloop.runtime.start import run

    with tempfile.TemporaryDirectory(prefix="coloop-rehearsal-") as folder:
        result = run(
            RunRequest(
                spec=rehearsal.spec,
                text=dump(rehearsal.spec),
                root=root,
                runs_dir=Path(folder),
                cluster="local",
                threads=1,
            )
        )
        return tell(read_events(result.folder / "events.jsonl"))


def _print(rehearsal: Rehearsal, told: RehearsalResult) -> None:
    out = console()
    for note in rehearsal.notes:
        out.print(f"[dim]{escape(note)}[/]")
    table = Table(box=None, pad_edge=False)
    for title in ("stage", "runs", "rows", "tokens", "time"):
        table.add_column(title, justify="left" if title == "stage" else "right")
    for stage in told.stages:
        numbers = (stage.runs, stage.rows, stage.tokens)
        table.add_row(stage.stage, *(str(one) for one in numbers), seconds(stage.seconds))
    out.print(table)
    for port, updates in told.learned.items():
        out.print(f"{escape(port)} learned in {count(updates, 'update')}")
    for alert in told.alerts:
        out.print(f"[yellow]{escape(alert)}[/]")
    for failure in told.failures:
        out.print(f"[bold red]{escape(failure)}[/]")
    phases = count(len(told.phases), "phase")
    verdict = f"[green]ok[/]: {phases}" if told.ok else f"[bold red]not rehearsed[/]: {phases}"
    out.print(f"{verdict}, {count(len(told.learned), 'learner')}")


def _as_json(rehearsal: Rehearsal, told: RehearsalResult) -> dict[str, Any]:
    return {"ok": told.ok, "notes": list(rehearsal.notes), **asdict(told)}


def _refuse(message: str, found: Sequence[object], *, as_json: bool) -> NoReturn:
    diagnostics = [one for one in found if isinstance(one, Diagnostic)]
    if as_json:
        dumped = [one.model_dump(mode="json", exclude_none=True) for one in diagnostics]
        print_json({"ok": False, "message": message, "diagnostics": dumped})
    else:
        complain(message)
        print_diagnostics(diagnostics, stderr=True)
    raise typer.Exit(1)
