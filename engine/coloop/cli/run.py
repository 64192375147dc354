"""`coloop run`: a headless run with a live display.

Exit codes: 0 finished, 1 invalid, 3 failed, 4 another process writes to the run folder, 130
stopped.
"""

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from coloop.cli.app import RunsDir, Settings
from coloop.cli.check import Source, check_source, read_source, with_settings
from coloop.cli.output import print_diagnostics
from coloop.cli.watch import RunDisplay, print_event
from coloop.errors import (
    ColoopError,
    PlanRefused,
    RunBusy,
    RunFolderExists,
    SpecProblem,
    SpecUnreadable,
)
from coloop.plan.run_check import check_run, check_runs
from coloop.runtime.checkpoints.forking import (
    choose_checkpoint,
    prepare_fork,
    require_steps_left,
)
from coloop.runtime.checkpoints.run_folder import (
    RunRequest,
    new_run_id,
    read_base_folder,
    write_base_folder,
)
from coloop.runtime.run_files.event_file import EVENT_FILE
from coloop.runtime.run_files.recorder import Sink, print_marked
from coloop.runtime.run_files.run_lock import busy_words, patient_holder
from coloop.sandbox.inside.kernel import keep_private
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.io import content_hash, parse
from coloop.workers import collecting, openmp
from coloop.workers.ray.ray_settings import starting_words

EXIT = {"finished": 0, "failed": 3, "stopped": 130}
INVALID = 1
BUSY = 4
OVER_BUDGET = "memory.over_budget"
MARKED_LINES = "COLOOP_MARKED_LINES"


def run_command(
    spec: Annotated[str | None, typer.Argument(help="Loop file, `-`, or name of a preset.")] = None,
    settings: Settings = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="Ray cluster: `http://host:8265` submits a job, "
            "`auto` or `host:port` connects this driver."
        ),
    ] = None,
    wait_nodes: Annotated[
        int,
        typer.Option(min=1, help="Wait until the cluster at the address has so many nodes."),
    ] = 1,
    local: Annotated[
        bool, typer.Option("--local", help="Run without Ray, in this process.")
    ] = False,
    runs_dir: RunsDir = Path("runs"),
    run_id: Annotated[str | None, typer.Option(help="Name of the run folder.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            help="Id or folder of a run to resume from its last checkpoint, "
            "or the folder of a checkpoint to resume from. With `--set` its loop changes."
        ),
    ] = None,
    fork: Annotated[
        str | None,
        typer.Option(
            help="Id or folder of a run, or the folder of a checkpoint, from which a new run "
            "starts. The run itself stays as it is. With `--set` the new run differs."
        ),
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option(
            min=0, help="With --fork or --resume: step of the checkpoint; default: the last one."
        ),
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="Folder that the loop's relative paths refer to.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="CPU threads per process; also limits each pool to one process."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run even if the memory estimate is over budget.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a line of JSON.")
    ] = False,
) -> int:
    """Run a loop."""
    keep_private()
    console = Console(stderr=as_json, soft_wrap=True)
    folder = None
    if resume is not None and fork is not None:
        _refuse(console, SpecProblem("give --fork or --resume, not both"), as_json)
    if checkpoint is not None and resume is None and fork is None:
        _refuse(console, SpecProblem("--checkpoint goes with --fork or --resume"), as_json)
    if (earlier := resume or fork) is not None:
        folder, step = _find_run(console, earlier, runs_dir)
        checkpoint = step if checkpoint is None else checkpoint
    if resume is not None and folder is not None and (writer := patient_holder(folder)):
        _refuse(console, RunBusy(busy_words(folder, writer)), as_json)  # before anything is loaded
    begun: Path | None = None
    try:
        loop = _read_loop(spec, settings or [], folder)
        base_folder = read_base_folder(folder) if root is None and folder is not None else loop.root
        loop = replace(loop, root=root or base_folder)
        checked, warnings = checked_loop(loop, force=force)
        if warnings and not as_json:
            print_diagnostics(warnings, stderr=True)
        if fork is not None and folder is not None:
            begun = choose_checkpoint(folder, checkpoint)
            require_steps_left(begun, checked.schedule.steps)
            folder = runs_dir / (run_id or new_run_id(checked.name))
            run_id, checkpoint = None, None
        request = RunRequest(
            spec=checked,
            text=loop.text,
            root=loop.root,
            runs_dir=runs_dir,
            run_id=run_id,
            resume=folder,
            checkpoint=checkpoint,
            cluster="local" if local else "ray",
            address=address,
            nodes=wait_nodes,
            warnings=warnings,
            threads=threads,
            ends_process=True,
        )
        if address is not None and address.startswith("http"):
            return _submit(console, loop, request, address, force=force, as_json=as_json)
        if begun is not None:
            return _run_fork(console, request, begun, as_json=as_json)
        return run_here(console, request, as_json=as_json)
    except ColoopError as error:
        _refuse(console, error, as_json)


def _run_fork(console: Console, request: RunRequest, begun: Path, *, as_json: bool) -> int:
    """Run a loop from a checkpoint of another run, in the new folder `request.resume`. The folder
    does not stay if nothing was started."""
    assert request.resume is not None
    folder = request.resume
    if folder.exists():
        raise RunFolderExists(f"{folder} exists; choose another --run-id for the fork")
    prepare_fork(begun, folder, request.text)
    write_base_folder(folder, request.root)
    try:
        return run_here(console, request, as_json=as_json)
    except ColoopError:
        if not (folder / EVENT_FILE).exists():
            shutil.rmtree(folder, ignore_errors=True)
        raise


def run_here(console: Console, request: RunRequest, *, as_json: bool) -> int:
    """Run a loop in this process with a display; returns the exit code."""
    threads = request.threads if request.cluster == "local" else None
    openmp.set_default_threads(threads or 1)
    with collecting.not_while_loading():
        from coloop.runtime.start import run

    display = RunDisplay(console)
    waiting = Waiting(
        lambda line: console.print(line, highlight=False, markup=False),
        lambda: wait_reason(request.cluster, request.address),
    )
    shown: Sink = print_event if as_json else display.take
    sinks = [waiting.take, print_marked if os.environ.get(MARKED_LINES) else shown]
    try:
        with display, waiting:
            result = run(replace(request, sinks=sinks))
    except KeyboardInterrupt:
        console.print(
            "stopped immediately; `coloop run --resume` continues from the last checkpoint"
        )
        return EXIT["stopped"]
    if not as_json:
        if result.error is not None and not display.has_ended:
            console.print(f"[red]{escape(result.error.message)}[/]", highlight=False)
        console.print(f"run folder: {result.folder}", highlight=False)
    return EXIT[result.state.value]


def _submit(
    console: Console,
    loop: Source,
    request: RunRequest,
    address: str,
    *,
    force: bool,
    as_json: bool,
) -> int:
    from coloop.cli.submit import submit

    if request.resume is not None:
        raise ColoopError(
            "--resume and --fork need the run folder on this machine; they cannot be submitted as "
            "a job"
        )
    if refusals := check_runs(request.spec):
        raise PlanRefused(refusals[0].message, refusals)
    return submit(
        console,
        loop,
        address,
        runs_dir=request.runs_dir,
        run_id=request.run_id or new_run_id(request.spec.name),
        force=force,
        as_json=as_json,
    )


def _find_run(console: Console, resume: str, runs_dir: Path) -> tuple[Path, int | None]:
    """The run's folder and the step of the checkpoint; None: the last one."""
    for folder in (Path(resume), runs_dir / resume):
        if (folder / "spec.yaml").exists():
            return folder, None
        step = re.fullmatch(r"step-(\d+)", folder.name)
        run = Path(os.path.normpath(folder)).parent.parent
        if step and folder.parent.name == "checkpoints" and (run / "spec.yaml").exists():
            return run, int(step[1])
    console.print(f"run {resume!r} not found, neither as a folder nor in {runs_dir}")
    raise typer.Exit(1)


def _read_loop(spec: str | None, settings: list[str], folder: Path | None) -> Source:
    if folder is not None:
        resumed = read_source(str(folder / "spec.yaml"))
        if spec is not None and _hash(read_source(spec)) != _hash(resumed):
            raise SpecProblem(
                f"{spec} is not the loop of {folder.name}; leave it out to resume or "
                "fork that run, change its loop with `--set PATH=VALUE`, or start a new run "
                "without --resume and --fork"
            )
        return with_settings(resumed, settings)
    if spec is None:
        raise SpecUnreadable(
            "no loop given: name a file, `-` or a preset, or resume a run with --resume"
        )
    return with_settings(read_source(spec), settings)


def _hash(loop: Source) -> str | None:
    parsed = parse(loop.text)
    return content_hash(parsed.spec) if parsed.spec is not None else None


def checked_loop(loop: Source, *, force: bool) -> tuple[LoopSpec, list[Diagnostic]]:
    """The loop and its warnings; raises `PlanRefused` if it cannot run."""
    checked = check_source(loop)
    findings = list(checked.report.diagnostics)
    errors = [finding for finding in findings if finding.is_error]
    if checked.spec is None or errors:
        raise PlanRefused(f"{loop.name} is not valid", errors or findings)
    over_budget = [finding for finding in findings if finding.code == OVER_BUDGET]
    if over_budget and not force:
        # `--force` is suggested only for a loop that can run.
        if refused := check_run(checked.spec, checked.unrolled, root=loop.root).refusals:
            raise PlanRefused(refused[0].message, refused)
        raise PlanRefused("over the memory budget; use --force to run it anyway", over_budget)
    return checked.spec, findings


def _refuse(console: Console, error: ColoopError, as_json: bool) -> NoReturn:
    """Print why the loop does not run, with the diagnostics that the error carries, and exit."""
    attached = getattr(error, "diagnostics", ())
    diagnostics = [finding for finding in attached if isinstance(finding, Diagnostic)]
    if as_json:
        dumped = [finding.model_dump(mode="json", exclude_none=True) for finding in diagnostics]
        print(json.dumps({"ok": False, "message": str(error), "diagnostics": dumped}))
    else:
        console.print(f"[red]{escape(str(error))}[/]", highlight=False)
        print_diagnostics(diagnostics, stderr=True)
    raise typer.Exit(BUSY if isinstance(error, RunBusy) else INVALID)


FIRST_LINE_SECONDS = 10.0
"""Time before the first line; each later one comes when the wait has doubled."""
LOADING = "loading the engine and the models"

Wait = Callable[[float], bool]
"""Waits for at most so many seconds; true as soon as the run has started or ended."""


def wait_reason(cluster: str, address: str | None) -> str:
    """What a run that has not started is waiting for."""
    ray = sys.modules.get("ray")
    if cluster == "local" or (ray is not None and ray.is_initialized()):
        return LOADING
    if address is None:
        return starting_words()
    return f"waiting for Ray at {address} to answer"


def report_wait(show: Callable[[str], None], reason: Callable[[], str], wait: Wait) -> None:
    """Print what the run is waiting for until the wait is over."""
    seconds, pause = 0.0, FIRST_LINE_SECONDS
    while not wait(pause):
        seconds += pause
        show(f"{reason()}; {seconds:.0f} s so far")
        pause = seconds


class Waiting:
    """A context whose thread prints what the run waits for, until it starts or ends."""

    def __init__(self, show: Callable[[str], None], reason: Callable[[], str]) -> None:
        self._has_begun = threading.Event()
        self._thread = threading.Thread(
            target=report_wait,
            args=(show, reason, self._has_begun.wait),
            name="waiting",
            daemon=True,
        )

    def __enter__(self) -> "Waiting":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._has_begun.set()
        self._thread.join()

    def take(self, what: str, text: str) -> None:
        if what == "event" and not self._has_begun.is_set():
            event = json.loads(text)
            if event["type"] == "run.state" and event["state"] != "starting":
                self._has_begun.set()
