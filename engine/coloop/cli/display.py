"""Progress of a run in the terminal: phase, steps, throughput, latest metrics, alerts. It reads
only events and gauges, so `coloop watch` shows a run as `coloop run` does."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

Listener = Callable[[str, str], None]
"""Called with `event` or `gauges` and the JSON text."""
ALERT_COLOURS = {"info": "cyan", "warning": "yellow", "error": "red"}
FINAL = {"finished": "green", "stopped": "yellow", "failed": "red"}
SHOWN_METRICS = (
    "reward/mean",
    "accuracy",
    "score",
    "loss",
    "kl",
    "entropy",
    "rollout/length",
    "mismatch_kl",
)


def print_event(what: str, text: str) -> None:
    """Print an event as one line of JSON (`--json`)."""
    if what == "event":
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _has_words(event: Mapping[str, Any]) -> bool:
    """Whether a state has a message; for a failure, the error has it."""
    return bool(event.get("message")) and not event.get("error")


class RunDisplay:
    """A live display on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._gauges: dict[str, Any] = {}
        self._metrics: dict[str, dict[str, float]] = {}
        self._state = "starting"
        self._open: dict[tuple[str, ...], None] = {}
        """Unresolved alerts of the learning doctor: code and node."""
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
        """Whether the run has reached its final state."""
        return self._state in FINAL

    def take(self, what: str, text: str) -> None:
        """Handle an event or the gauges, as JSON text."""
        payload = json.loads(text)
        if what == "gauges":
            self._gauges = payload
        else:
            self._event(payload)

    def _event(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "run.state":
                self._state = event["state"]
                if event["state"] in FINAL:
                    self._say_open()
                    colour = FINAL[event["state"]]
                    best = f"; {escape(event['message'])}" if _has_words(event) else ""
                    self._say(f"[{colour}]{event['state']}[/] at step {event.get('step', 0)}{best}")
                if event.get("error"):
                    self._say(f"[red]{escape(event['error']['message'])}[/]")
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

    def _say_open(self) -> None:
        """Print the alerts that are unresolved when a run ends."""
        if self._open:
            held = ", ".join(" of ".join(filter(None, key)) for key in self._open)
            self._say(f"[yellow]{len(self._open)} unresolved[/]: {held}")

    def _alert(self, event: Mapping[str, Any]) -> None:
        if event.get("metric"):
            key = (event["code"], event.get("node") or "")
            if event.get("cleared"):
                self._open.pop(key, None)
            else:
                self._open[key] = None
        colour = "green" if event.get("cleared") else ALERT_COLOURS[event["level"]]
        step = f"step {event['step']}: " if event.get("step") else ""
        self._say(f"  [{colour}]{event['code']}[/]: {step}{escape(event['message'])}")
        if event.get("hint"):
            self._say(f"    → {escape(event['hint'])}")

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
