"""Runs of a group, one after another: those of a control, and those of a sweep.

Every run has a folder of its own: a finished one is not run again, one that was interrupted
continues from its last checkpoint.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from coloop.cli.check import Source
from coloop.cli.run import EXIT, checked_loop, run_here
from coloop.errors import ControlRefused
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.io import content_hash, load, parse, require


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    local: bool
    threads: int | None
    force: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    folder: Path
    text: str
    """The loop."""
    title: str
    """What is printed when it starts."""


def run_missing(
    runs: Iterable[PlannedRun], source: Source, options: RunOptions, runs_dir: Path
) -> int:
    """Run what has not finished; returns the exit code.

    Args:
        source: the loop from which those of the runs were made.
    """
    out = Console(stderr=True, soft_wrap=True)
    failed = 0
    for planned in runs:
        folder, text = planned.folder, planned.text
        has_begun = (folder / "spec.yaml").exists()
        if has_begun:
            _require_same(folder, text)
        if state_of(folder) == RunStateName.FINISHED:
            continue
        out.print(f"[bold]{escape(planned.title)}[/]", highlight=False)
        own = replace(source, text=text, name=folder.name)
        spec, warnings = checked_loop(own, force=options.force)
        request = RunRequest(
            spec=spec,
            text=text,
            root=own.root,
            runs_dir=runs_dir,
            run_id=folder.name,
            resume=folder if has_begun else None,
            cluster="local" if options.local else "ray",
            warnings=warnings,
            threads=options.threads,
        )
        code = run_here(out, request, as_json=False)
        if code == EXIT["stopped"]:
            raise typer.Exit(code)
        failed = code or failed
    return failed


def state_of(folder: Path) -> str | None:
    """The state that a run reported last; None if there is none."""
    state = None
    for event in events_of(folder / EVENT_FILE):
        if event["type"] == "run.state":
            state = str(event["state"])
    return state


def _require_same(folder: Path, text: str) -> None:
    if content_hash(load(folder / "spec.yaml")) != content_hash(require(parse(text))):
        raise ControlRefused(
            f"{folder} has the run of another version of this loop; remove it, or choose another "
            "--runs-dir"
        )
