"""`coloop rehearse`: a dry run of the same loop with tiny models, in this process.

Exit codes: 0 every phase ended and every learner was updated, 1 the loop is not valid or the dry
run failed, 2 it cannot be read.
"""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from coloop.cli.app import Json, Settings, Spec
from coloop.cli.check import checked_spec
from coloop.cli.output import console, print_json, print_refusal, table_of
from coloop.errors import PlanRefused, SpecProblem
from coloop.explain.rehearsal import STEPS, Rehearsal, RehearsalResult, rehearsed, summarize
from coloop.plan.run_check import check_run
from coloop.sandbox.inside.kernel import keep_private
from coloop.spec.graph import LoopSpec
from coloop.spec.io import dump
from coloop.units import count, seconds
from coloop.workers import openmp


def rehearse_command(
    spec: Spec,
    settings: Settings = None,
    steps: Annotated[int, typer.Option(min=1, max=100, help="Maximum steps per phase.")] = STEPS,
    show: Annotated[
        bool, typer.Option("--show", help="Print the loop that would run, without running it.")
    ] = False,
    as_json: Json = False,
) -> int:
    keep_private()
    checked, loop = checked_spec(spec, settings, as_json=as_json)
    root = checked.source.root
    try:
        rehearsal = rehearsed(loop, steps=steps, root=root)
        if show:
            console().print(dump(rehearsal.spec), markup=False, end="")
            return 0
        result = rehearse(loop, rehearsal, root=root)
    except (PlanRefused, SpecProblem) as refused:
        return print_refusal(str(refused), refused.diagnostics, as_json=as_json)
    if as_json:
        print_json({"ok": result.ok, "notes": list(rehearsal.notes), **asdict(result)})
    else:
        _print(rehearsal, result)
    return 0 if result.ok else 1


def rehearse(spec: LoopSpec, rehearsal: Rehearsal, *, root: Path) -> RehearsalResult:
    """Run a rehearsal in this process, in a temporary run folder.

    Args:
        spec: the original loop; a rehearsal refuses what a run of it would refuse.

    Raises:
        PlanRefused: the loop cannot run; nothing was started.
    """
    refusals = check_run(spec, root=root).refusals
    if refusals:
        raise PlanRefused(refusals[0].message, refusals)
    openmp.set_default_threads(1)
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
        return summarize(read_events(result.folder / "events.jsonl"))


def _print(rehearsal: Rehearsal, result: RehearsalResult) -> None:
    out = console()
    for note in rehearsal.notes:
        out.print(f"[dim]{escape(note)}[/]")
    numbers = ("runs", "rows", "tokens", "time")
    table = table_of("stage", *numbers, right=numbers)
    for stage in result.stages:
        counts = (stage.runs, stage.rows, stage.tokens)
        table.add_row(stage.stage, *(str(value) for value in counts), seconds(stage.seconds))
    out.print(table)
    for port, updates in result.learned.items():
        out.print(f"{escape(port)}: {count(updates, 'update')}")
    for alert in result.alerts:
        out.print(f"[yellow]{escape(alert)}[/]")
    for failure in result.failures:
        out.print(f"[bold red]{escape(failure)}[/]")
    phases = count(len(result.phases), "phase")
    verdict = f"[green]ok[/]: {phases}" if result.ok else f"[bold red]failed[/]: {phases}"
    out.print(f"{verdict}, {count(len(result.learned), 'learner')}")
