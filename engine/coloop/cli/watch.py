"""`coloop watch` and `coloop runs`: follow and list run folders, and the display of a run.

The display shows phase, steps, throughput, latest metrics and alerts. It reads only events and
gauges, so `coloop watch` shows a run as `coloop run` does.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coloop.cli.app import Json, Run, RunsDir
from coloop.explain.codes import page_of
from coloop.runtime.run_files.event_file import event_of

Listener = Callable[[str, str], None]
"""Called with `event` or `gauges` and the JSON text."""
ALERT_COLOURS = {"info": "cyan", "warning": "yellow", "error": "red"}
FINAL = {"finished": "green", "stopped": "yellow", "failed": "red"}
SHOWN_ALERTS = 3
"""Alerts of one code and node that are shown; the number of further ones is shown at the end."""
SHOWN_METRICS = (
    *("reward/mean", "accuracy", "score", "loss", "kl", "entropy"),
    *("rollout/length", "mismatch_kl"),
)


def print_event(what: str, text: str) -> None:
    """Print an event as one line of JSON (`--json`)."""
    if what == "event":
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class Unshown:
    """Alerts of one code that were not shown."""

    count: int = 0
    nodes: dict[str, None] = field(default_factory=dict)
    step: int = 0

    def note(self, event: Mapping[str, Any]) -> None:
        self.count += 1
        self.nodes[event.get("node") or "the run"] = None
        self.step = event.get("step") or 0

    @property
    def words(self) -> str:
        return f"{self.count} more of {', '.join(self.nodes)}, up to step {self.step}"


class RunDisplay:
    """A live display on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._gauges: dict[str, Any] = {}
        self._metrics: dict[str, dict[str, float]] = {}
        self._state = "starting"
        self._open: dict[tuple[str, ...], None] = {}
        """Unresolved alerts of the health checks: code and node."""
        self._told: Counter[tuple[str, str]] = Counter()
        """By code and node, how often an alert has come."""
        self._more: dict[str, Unshown] = {}
        """By code, the alerts that were not shown."""
        self._live = (
            Live(console=console, refresh_per_second=4, get_renderable=self._render)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> "RunDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def has_ended(self) -> bool:
        return self._state in FINAL

    def take(self, what: str, text: str) -> None:
        payload = json.loads(text)
        if what == "gauges":
            self._gauges = payload
        elif what == "event":
            self._event(payload)

    def _event(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "run.state":
                self._state = event["state"]
                if event["state"] in FINAL:
                    for code, more in self._more.items():
                        self._say(f"  [yellow]{code}[/]: {more.words}")
                    self._more.clear()
                    if self._open:
                        held = ", ".join(" of ".join(filter(None, key)) for key in self._open)
                        self._say(f"[yellow]{len(self._open)} unresolved[/]: {held}")
                    colour = FINAL[event["state"]]
                    has_words = event.get("message") and not event.get("error")
                    best = f"; {escape(event['message'])}" if has_words else ""
                    self._say(f"[{colour}]{event['state']}[/] at step {event.get('step', 0)}{best}")
                if (error := event.get("error")) is not None:
                    self._say(f"[red]{escape(error['message'])}[/]")
                    self._say_next(error["code"], error.get("hint"))
            case "phase" if event["state"] == "started":
                steps = f", {event['steps']} steps" if event.get("steps") else ""
                learn = ", ".join(event["learn"]) or "no training"
                self._say(f"phase [bold]{event['phase']}[/]{steps}: {learn}")
            case "metrics" if event.get("node"):
                known = self._metrics.setdefault(event["node"], {})
                known.update({k: v for k, v in event["metrics"].items() if v is not None})
                if event.get("evaluation"):
                    self._say(
                        f"  step {event['step']}: {event['node']} {_numbers(event['metrics'])}"
                    )
            case "checkpoint" if not event.get("best"):
                self._say(f"  checkpoint {event['path']}")
            case "alert":
                self._alert(event)
            case "edit":
                self._say(f"  edit: {event['changes']}")

    def _alert(self, event: Mapping[str, Any]) -> None:
        if event.get("metric"):
            key = (event["code"], event.get("node") or "")
            if event.get("cleared"):
                self._open.pop(key, None)
            else:
                self._open[key] = None
        code, node = event["code"], event.get("node") or ""
        self._told[code, node] += 1
        if self._told[code, node] > SHOWN_ALERTS and not event.get("metric"):
            self._more.setdefault(code, Unshown()).note(event)
            return
        colour = "green" if event.get("cleared") else ALERT_COLOURS[event["level"]]
        step = f"step {event['step']}: " if event.get("step") else ""
        self._say(f"  [{colour}]{code}[/]: {step}{escape(event['message'])}")
        if not event.get("cleared") and (event.get("hint") or self._told[code, node] == 1):
            self._say_next(code, event.get("hint"))

    def _say_next(self, code: str, hint: str | None) -> None:
        """What to do: the hint of an event, or what the help page of its code says first."""
        if hint is None and (page := page_of(code)) is not None and page.fix:
            hint = page.fix[0]
        if hint:
            self._say(f"    → {escape(hint)}")

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False)

    def _render(self) -> RenderableType:
        gauges = self._gauges
        step, total = gauges.get("step", 0), gauges.get("steps_total")
        head = Text(f"{self._state}  {gauges.get('phase') or ''}  ", style="bold")
        of = " of at most" if gauges.get("is_bound") else " of"
        head.append(f"step {step}" + (f"{of} {total}" if total else ""), style="default")
        if gauges.get("step_seconds"):
            head.append(f"  {gauges['step_seconds']:.2f} s/step")
        if gauges.get("eta_seconds"):
            most = "at most " if gauges.get("is_bound") else ""
            head.append(f"  {most}{_duration(gauges['eta_seconds'])} left")
        bar = ProgressBar(total=total or 100, completed=step if total else 0, width=60)
        return Group(head, bar, self._stages(), self._readings())

    def _stages(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for column in ("stage", "seconds", "share", "rows/s", "tokens/s"):
            table.add_column(column, justify="left" if column == "stage" else "right")
        for name, stage in self._gauges.get("stages", {}).items():
            mark = " ◀ bottleneck" if name == self._gauges.get("bottleneck") else ""
            mark += " (evaluation)" if stage.get("evaluation") else ""
            table.add_row(
                name + mark,
                f"{stage['seconds']:.3f}",
                f"{stage['share']:.0%}",
                _rate(stage.get("wall_samples_per_second")),
                _rate(stage.get("wall_tokens_per_second")),
            )
        return table

    def _readings(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        for node, metrics in self._metrics.items():
            shown = {name: metrics[name] for name in SHOWN_METRICS if name in metrics}
            table.add_row(node, _numbers(shown))
        return table


def _numbers(metrics: Mapping[str, float | None]) -> str:
    return "  ".join(f"{k} {v:.4g}" for k, v in metrics.items() if v is not None)


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def run_folder(
    console: Console,
    run: str,
    runs_dir: Path,
    files: Iterable[str] = ("spec.yaml",),
    exit_code: int = 1,
) -> Path:
    """The folder of a run, given as an id or as a folder, that has one of these files; without one
    the program ends."""
    for folder in (Path(run), runs_dir / run):
        if any((folder / name).exists() for name in files):
            return folder
    console.print(f"run {run!r} not found, neither as a folder nor in {runs_dir}")
    raise typer.Exit(exit_code)


runs_app = typer.Typer(
    invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
)


@runs_app.command("check")
def _check_run(run: Run, runs_dir: RunsDir = Path("runs"), as_json: Json = False) -> None:
    """Verify a run folder and report what is damaged: loop, plan, events, samples, checkpoints
    and their copies, by size and SHA-256. Read-only."""
    from coloop.runtime.checkpoints.checkup import check_run

    console = Console(soft_wrap=True, stderr=as_json)
    files = ("spec.yaml", "events.jsonl", "checkpoints")
    folder = run_folder(console, run, runs_dir, files, exit_code=2)
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


POLL_SECONDS = 0.25
CHECK_SECONDS = 5.0


def watch_command(run: Run, runs_dir: RunsDir = Path("runs")) -> None:
    console = Console(soft_wrap=True)
    folder = run_folder(console, run, runs_dir)
    with RunDisplay(console) as display:
        follow_run(folder, display.take)


@runs_app.callback()
def _list_runs(
    context: typer.Context, runs_dir: RunsDir = Path("runs"), as_json: Json = False
) -> None:
    """List runs, newest first."""
    if context.invoked_subcommand is not None:
        return
    folders = [path.parent for path in runs_dir.glob("*/spec.yaml")]
    folders.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    summaries = [_summary(folder) for folder in folders]
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


def _name_of(folder: Path) -> str:
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
