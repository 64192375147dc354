"""Summary of a run's events for lists and badges: state, step, latest metrics."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from coloop.runtime.run_files.events import RunError, RunStateName

if TYPE_CHECKING:
    from coloop_server.runs.eventlog import Entry
    from coloop_server.runs.rows import MetricRows

MAX_METRICS = 400
MAX_MESSAGE = 4000
MAX_ALERTS = 100
NO_NODE = "run"
"""Node name for metrics of the whole run."""


@dataclass(slots=True, kw_only=True)
class Summary:
    """Built from events in order; equal events give an equal summary."""

    state: RunStateName | None = None
    attempt: int = 0
    step: int | None = None
    steps_total: int | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    """Numbers, or None, by path."""
    message: str | None = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    heartbeat_at: datetime | None = None
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """Active alerts, last updated at the end; one per code, node and metric."""

    def keep(self) -> dict[str, Any]:
        kept: dict[str, Any] = ADAPTER.dump_python(self, mode="json")
        return kept

    @classmethod
    def recall(cls, kept: dict[str, Any]) -> Summary:
        return ADAPTER.validate_python(kept)

    def add_all(self, entries: Sequence[Entry], rows: MetricRows) -> None:
        for entry in entries:
            self.add(entry)
        for group in rows.groups:
            self.show(dict(zip(group.label.paths, group.values[-1], strict=True)))

    def add(self, entry: Entry) -> None:
        """Add an event, except its metrics; parts of a wrong type are ignored."""
        event, _, _, kind, _, step, attempt, at = entry
        if at is not None:
            self.beat(at)
        if attempt > self.attempt:
            self.attempt = attempt
            self.alerts = [alert for alert in self.alerts if outlasts(alert, step)]
        if step is not None:
            self.step = step
        if kind == "run.state":
            self.enter(event, at)
        elif kind == "alert":
            self.alert(event)

    def enter(self, event: dict[str, Any], at: datetime | None) -> None:
        try:
            self.state = RunStateName(event.get("state", ""))
        except ValueError:
            return
        message = event.get("message")
        self.message = shown(message) if isinstance(message, str) else None
        self.error = read_error(event.get("error"))
        self.started_at = self.started_at or at
        self.ended_at = at if self.state.is_final else None

    def show(self, values: Mapping[str, Any]) -> None:
        latest = self.metrics
        for path, value in values.items():
            if path in latest or len(latest) < MAX_METRICS:
                latest[path] = finite_or_none(value)

    def alert(self, event: dict[str, Any]) -> None:
        """Add an alert. Informational ones are not shown; they end an earlier one."""
        told = {name: text_or_none(event.get(name)) for name in ("code", "node", "metric")}
        if told["code"] is None:
            return
        before = next((alert for alert in self.alerts if told.items() <= alert.items()), None)
        is_well = event.get("cleared") is True or event.get("level") == "info"
        at = text_or_none(event.get("at"))
        if is_well and before is None:
            return
        if before is not None and is_well:
            after = {**before, "state": "cleared", "cleared_at": at}
        else:
            holds = before is not None and before["state"] != "cleared"
            after = {
                **told,
                "state": "told_again" if holds else "raised",
                "level": "error" if event.get("level") == "error" else "warning",
                "message": text_or_none(event.get("message")) or told["code"],
                "hint": text_or_none(event.get("hint")),
                "step": whole(event.get("step")),
                "seq": before["seq"] if before is not None and holds else event["seq"],
                "raised_at": before["raised_at"] if before is not None and holds else at,
                "told": before["told"] + 1 if before is not None and holds else 1,
                "cleared_at": None,
            }
        others = [alert for alert in self.alerts if alert is not before]
        self.alerts = [*others, after][-MAX_ALERTS:]

    def gauge(self, gauges: dict[str, Any]) -> None:
        """Gauges show progress earlier than events."""
        self.beat(read_time(gauges.get("at")))
        if (whole(gauges.get("attempt")) or 1) < self.attempt:
            return
        if (step := whole(gauges.get("step"))) is not None:
            self.step = step
        if (total := whole(gauges.get("steps_total"))) is not None:
            self.steps_total = None if gauges.get("is_bound") else total

    def beat(self, at: datetime | None) -> None:
        if at is not None and (self.heartbeat_at is None or at > self.heartbeat_at):
            self.heartbeat_at = at


ADAPTER = TypeAdapter(Summary)


def outlasts(alert: dict[str, Any], step: int | None) -> bool:
    """Whether an alert survives the start of an attempt at a step; one from a metric does not."""
    if alert["metric"] is None or alert["step"] is None:
        return False
    return step is None or bool(alert["step"] < step)


def path_of(node: Any, metric: str) -> str:
    return f"{node}.{metric}" if node else metric


def text_or_none(value: Any) -> str | None:
    return shown(value) if isinstance(value, str) and value else None


def read_time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is UTC:
            return time
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def shown(text: str) -> str:
    """A text shortened for lists, without zero bytes, which databases refuse."""
    return text.replace("\0", "")[:MAX_MESSAGE]


def read_error(value: Any) -> dict[str, Any] | None:
    """The error of a run; None if invalid."""
    try:
        return RunError.model_validate(value).model_dump(mode="json")
    except ValidationError:
        return None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def finite_or_none(value: float | None) -> float | None:
    """The number; None if it is not finite."""
    return value if value is not None and abs(value) <= sys.float_info.max else None


def whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None
