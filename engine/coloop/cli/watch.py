"""`coloop watch` and `coloop runs`: follow and list run folders."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coloop.cli.display import FINAL, Listener, RunDisplay
from coloop.runtime.run_files.event_file import event_of

# `coloop runs check`: verify a run folder. Exit codes: 0 intact, 1 damaged, 2 no such run.


def check_command(
    run: Annotated[str, typer.Argument(help="Id or folder of a run.")],
    runs_dir: Annotated[Path, typer.Option(help="Folder that contains the run folders.")] = Path(
        "runs"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify a run folder and report what is damaged: loop, plan, events, samples, checkpoints
    and their copies, by size and SHA-256. Read-only."""
    from coloop.runtime.checkpoints.checkup import check_run

    console = Console(soft_wrap=True, stderr=as_json)
    folder = next((path for path in (Path(run), runs_dir / run) if _is_run(path)), None)
    if folder is None:
        console.print(f"run {run!r} not found, neither as a folder nor in {runs_dir}")
        raise typer.Exit(2)
    findings = list(check_run(folder))
    is_intact = not any(finding.level == "damaged" for finding in findings)
    if as_json:
        print(json.dumps({"ok": is_intact, "findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            colour = "red" if finding.level == "damaged" else "yellow"
            line = f"[{colour}]{finding.level}[/] {escape(finding.path)}: {escape(finding.message)}"
            console.print(line, highlight=False)
        console.print("intact" if is_intact else f"{folder} is damaged", highlight=False)
    raise typer.Exit(0 if is_intact else 1)


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("spec.yaml", "events.jsonl", "checkpoints"))


POLL_SECONDS = 0.25
CHECK_SECONDS = 5.0


def watch_command(
    run: Annotated[str, typer.Argument(help="Id or folder of a run.")],
    runs_dir: Annotated[Path, typer.Option(help="Folder that contains the run folders.")] = Path(
        "runs"
    ),
) -> None:
    """Follow a run from its start until it ends."""
    console = Console(soft_wrap=True)
    folder = next((f for f in (Path(run), runs_dir / run) if (f / "spec.yaml").exists()), None)
    if folder is None:
        console.print(f"run {run!r} not found, neither as a folder nor in {runs_dir}")
        raise typer.Exit(1)
    with RunDisplay(console) as display:
        follow_run(folder, display.take)


runs_app = typer.Typer(
    invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
)
runs_app.command("check")(check_command)


@runs_app.callback()
def runs_command(
    context: typer.Context,
    runs_dir: Annotated[Path, typer.Option(help="Folder that contains the run folders.")] = Path(
        "runs"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List runs, newest first."""
    if context.invoked_subcommand is not None:
        return
    summaries = [_summary(folder) for folder in _folders(runs_dir)]
    if as_json:
        print(json.dumps(summaries))
        return
    console = Console()
    if not summaries:
        console.print(f"no runs in {runs_dir}; start one with `coloop run grpo-arithmetic`")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("id", overflow="fold", ratio=3)
    table.add_column("name", overflow="ellipsis", no_wrap=True, ratio=2)
    table.add_column("state", no_wrap=True)
    table.add_column("started", no_wrap=True)
    table.add_column("steps", no_wrap=True, justify="right")
    for run in summaries:
        started = (run["started_at"] or "")[:16].replace("T", " ")
        table.add_row(run["id"], run["name"], run["state"], started, str(run["step"]))
    console.print(table)


def follow_run(
    folder: Path, take: Listener, is_alive: Callable[[], bool] = lambda: True
) -> str | None:
    """Follow a run until it ends; returns its final state, or None if its driver is gone.

    A resumed run has several final states; only one without later events counts.
    """
    events, gauges = folder / "events.jsonl", folder / "gauges.json"
    offset, shown, state = 0, "", None
    checked = time.monotonic()
    while True:
        if time.monotonic() - checked > CHECK_SECONDS:
            checked = time.monotonic()
            if not is_alive():
                return None
        text = gauges.read_text(encoding="utf-8") if gauges.exists() else shown
        if text != shown:
            shown = text
            take("gauges", text)
        lines = _lines_from(events, offset)
        for line in lines:
            offset += len(line) + 1
            event = event_of(line)
            if event is None:
                continue
            take("event", line.decode())
            state = str(event.get("state")) if event["type"] == "run.state" else state
        if state in FINAL:
            return state
        if not lines:
            time.sleep(POLL_SECONDS)


def _lines_from(events: Path, offset: int) -> list[bytes]:
    """Complete lines of a file from an offset; an unfinished last line is left for later."""
    if not events.exists():
        return []
    with events.open("rb") as file:
        file.seek(offset)
        return file.read().split(b"\n")[:-1]


def _folders(runs_dir: Path) -> list[Path]:
    folders = [path.parent for path in runs_dir.glob("*/spec.yaml")]
    return sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)


def _name_of(folder: Path) -> str:
    """The loop's name in its YAML text."""
    text = (folder / "spec.yaml").read_text(encoding="utf-8", errors="replace")
    match = re.search(r"^name:[ ]*(\S[^\n#]*)", text, re.MULTILINE)
    return match[1].strip().strip("\"'") if match is not None else ""


def _summary(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "id": folder.name,
        "name": _name_of(folder),
        "state": "starting",
        "step": 0,
        "started_at": None,
        "path": str(folder),
    }
    events = folder / "events.jsonl"
    if not events.exists():
        return summary
    with events.open("rb") as file:
        for line in file:
            if b'"type":"run.state"' not in line and b'"step"' not in line:
                continue
            event = event_of(line) or {}
            summary["started_at"] = summary["started_at"] or event.get("at")
            summary["step"] = max(summary["step"], event.get("step") or 0)
            if event.get("type") == "run.state":
                summary["state"] = event.get("state", summary["state"])
    return summary
