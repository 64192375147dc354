"""`coloop log`: send what a run has recorded to trackers.

Exit codes: 0 everything was sent, 1 there is no such run or a tracker is not installed, 2 the loop
of the run cannot be read, 3 a tracker failed.
"""

import heapq
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from coloop.cli.app import Run, RunsDir
from coloop.cli.check import UNREADABLE
from coloop.cli.output import complain, console, fail
from coloop.cli.watch import run_folder
from coloop.errors import SpecUnreadable
from coloop.runtime.run_files.event_file import EVENT_FILE, GAUGE_LINES, events_of
from coloop.spec.io import load
from coloop.spec.placement import TrackerName
from coloop.tracking import Feed, RunAbout, about_run, new_tracker
from coloop.tracking.registry import TrackerMissing
from coloop.units import count

FAILED = 3
TRACKERS: tuple[TrackerName, ...] = get_args(TrackerName)


def log_command(
    run: Run,
    to: Annotated[
        list[str],
        typer.Option("--to", help=f"{', '.join(TRACKERS)}. May be repeated."),
    ],
    runs_dir: RunsDir = Path("runs"),
    project: Annotated[
        str | None, typer.Option(help="Project or experiment; default: `run.project` of the loop.")
    ] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also send checkpoints as artifacts.")
    ] = False,
) -> int:
    """Send a run to trackers, as `run.report_to` does while it goes on."""
    folder = run_folder(console(), run, runs_dir)
    unknown = [name for name in to if name not in TRACKERS]
    if unknown:
        fail(f"--to {unknown[0]}: trackers are {', '.join(TRACKERS)}", 1)
    try:
        spec = load(folder / "spec.yaml")
    except SpecUnreadable as unreadable:
        fail(str(unreadable), UNREADABLE)
    if project is not None:
        spec = spec.model_copy(update={"run": spec.run.model_copy(update={"project": project})})
    about = about_run(folder, spec, (folder / "spec.yaml").read_text(encoding="utf-8"))
    code = 0
    for name in TRACKERS:
        if name not in to:
            continue
        try:
            sent = send(name, about, with_checkpoints=checkpoints)
        except TrackerMissing as missing:
            fail(str(missing), 1)
        except (Exception, SystemExit) as error:
            complain(f"{name}: {type(error).__name__}: {error}")
            code = FAILED
        else:
            console().print(f"{name}: {count(sent, 'event')} of {folder.name}", highlight=False)
    return code


def send(name: TrackerName, about: RunAbout, *, with_checkpoints: bool) -> int:
    """Send all events of a run to one tracker; returns their number.

    Raises:
        TrackerMissing: its library is not installed.
    """
    feed = Feed(new_tracker(name), about, with_checkpoints=with_checkpoints)
    sent = 0
    for _, kind, message in _messages(about.folder):
        if kind == "event":
            feed.event(message)
            sent += 1
        else:
            feed.step_gauges(message)
    feed.close()
    return sent


def _messages(folder: Path) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Events and gauges of steps in the order in which the run wrote them. Only the last end of a
    run that was resumed counts as one."""
    events = list(events_of(folder / EVENT_FILE))
    last = max((event.get("attempt", 1) for event in events), default=1)
    messages = (
        (event["seq"], "event", event)
        for event in events
        if event["type"] != "run.state" or event.get("attempt", 1) == last
    )
    return heapq.merge(messages, _gauges(folder / GAUGE_LINES), key=lambda message: message[0])


def _gauges(path: Path) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                kept = json.loads(line)
                yield int(kept["seq"]), "step_gauges", kept
            except (ValueError, KeyError, TypeError):
                continue
