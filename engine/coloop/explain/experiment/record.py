"""What the events of a run say, read once from the first to the last.

Where a step was repeated after a resume, the later attempt counts for readings of metrics and for
checkpoints. Seconds and tokens of stages are those of all attempts, because all of them were spent.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

IN_PROGRESS = ("starting", "running", "stopping")
Key = tuple[str, str]
"""Node and metric."""


@dataclass(slots=True, kw_only=True)
class StageWork:
    """The work of one stage over a whole run."""

    seconds: float = 0.0
    tokens: int = 0
    samples: int = 0
    is_evaluation: bool = False
    """Whether it ran for evaluations only."""


@dataclass(slots=True, kw_only=True)
class PhaseTime:
    name: str
    first_step: int
    last_step: int
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class RaisedAlert:
    code: str
    node: str | None
    level: str
    message: str
    hint: str | None
    step: int | None
    """Step at which it was first raised."""
    count: int = 1
    cleared: bool = False


@dataclass(slots=True, kw_only=True)
class RunRecord:
    state: str = "queued"
    error: dict[str, Any] | None = None
    started_at: str | None = None
    ended_at: str | None = None
    attempts: int = 0
    seconds: float = 0.0
    """Time from start to end, in seconds, without the queue and breaks between attempts."""
    step: int = 0
    readings: dict[Key, dict[int, float]] = field(default_factory=dict)
    """By node and metric, the value of each evaluation, by step, and those of `also`."""
    rows: dict[str, int] = field(default_factory=dict)
    """By evaluation, the number of rows that it last read."""
    stages: dict[str, StageWork] = field(default_factory=dict)
    phases: list[PhaseTime] = field(default_factory=list)
    """In order; a phase of several rounds is one entry."""
    best: dict[str, Any] | None = None
    """Event of the newest checkpoint that was the best so far."""
    alerts: dict[tuple[str, str | None, str | None], RaisedAlert] = field(default_factory=dict)
    edits: list[tuple[int | None, Mapping[str, Any]]] = field(default_factory=list)
    """Step and new values by path."""
    samples: list[tuple[int, str]] = field(default_factory=list)
    """Step and file of the sample rows, in order."""


def record_of(events: Iterable[Mapping[str, Any]], *, also: str | None = None) -> RunRecord:
    """What the events of a run say, oldest first.

    Args:
        also: `node.metric` of training steps whose values are kept like those of evaluations.
    """
    record = RunRecord()
    reader = _Reader(record, also)
    for event in events:
        reader.read(event)
    reader.end()
    return record


class _Reader:
    def __init__(self, record: RunRecord, also: str | None) -> None:
        self.record = record
        self.also = tuple((also or ".").split(".", 1))
        self.clock: float | None = None
        """Time of the event before, in seconds, while the run is running."""
        self.last = 0.0
        self.phase: PhaseTime | None = None

    def read(self, event: Mapping[str, Any]) -> None:
        record = self.record
        at = _seconds(event.get("at"))
        attempt = event.get("attempt")
        if isinstance(attempt, int) and attempt > record.attempts:
            self._begin(attempt, event.get("step"))
        if at is not None:
            if self.clock is not None and at > self.last:
                record.seconds += at - self.last
                if self.phase is not None:
                    self.phase.seconds += at - self.last
            self.last = at
        step = event.get("step")
        if isinstance(step, int):
            record.step = step
            if self.phase is not None:
                self.phase.last_step = max(self.phase.last_step, step)
        reading = getattr(self, "_" + event["type"].replace(".", "_"), None)
        if reading is not None:
            reading(event)

    def end(self) -> None:
        self.record.samples.sort(key=lambda sample: sample[0])

    def _begin(self, attempt: int, step: Any) -> None:
        """A new attempt discards what was read of steps that it repeats."""
        record = self.record
        record.attempts, self.clock = attempt, None
        if isinstance(step, int) and attempt > 1:
            for values in record.readings.values():
                for later in [known for known in values if known > step]:
                    del values[later]
            record.samples = [sample for sample in record.samples if sample[0] <= step]

    def _run_state(self, event: Mapping[str, Any]) -> None:
        record, state = self.record, str(event.get("state"))
        record.state = state
        record.started_at = record.started_at or event.get("at")
        self.clock = self.last if state in IN_PROGRESS else None
        if state in ("stopped", "finished", "failed"):
            record.ended_at = event.get("at")
            record.error = event.get("error")

    def _phase(self, event: Mapping[str, Any]) -> None:
        if event.get("state") != "started":
            return
        name, step = str(event.get("phase")), int(event.get("step") or 0)
        known = next((phase for phase in self.record.phases if phase.name == name), None)
        if known is None:
            known = PhaseTime(name=name, first_step=step, last_step=step)
            self.record.phases.append(known)
        self.phase = known

    def _stage_finished(self, event: Mapping[str, Any]) -> None:
        work = self.record.stages.get(event["stage"])
        evaluation = event.get("evaluation")
        if work is None:
            work = self.record.stages[event["stage"]] = StageWork(is_evaluation=True)
        if evaluation is None:
            work.is_evaluation = False
            work.seconds += float(event.get("seconds") or 0.0)
            work.tokens += int(event.get("tokens") or 0)
            work.samples += int(event.get("samples") or 0)
        elif event["stage"] == f"{evaluation}.evaluate":
            work.seconds += float(event.get("seconds") or 0.0)
            self.record.rows[evaluation] = int(event.get("samples") or 0)

    def _metrics(self, event: Mapping[str, Any]) -> None:
        node, step = event.get("node"), event.get("step")
        if node is None or not isinstance(step, int):
            return
        is_evaluation = bool(event.get("evaluation"))
        for name, value in event["metrics"].items():
            is_kept = is_evaluation or (node, name) == self.also
            if is_kept and isinstance(value, int | float) and math.isfinite(value):
                self.record.readings.setdefault((node, name), {})[step] = float(value)

    def _checkpoint(self, event: Mapping[str, Any]) -> None:
        if event.get("best"):
            self.record.best = dict(event)

    def _alert(self, event: Mapping[str, Any]) -> None:
        key = (str(event.get("code")), event.get("node"), event.get("metric"))
        known = self.record.alerts.get(key)
        if event.get("cleared"):
            if known is not None:
                known.cleared = True
            return
        if event.get("level") == "info":
            return
        if known is not None:
            known.count += 1
            known.cleared = False
            known.message = str(event.get("message") or known.message)
            return
        self.record.alerts[key] = RaisedAlert(
            code=key[0],
            node=key[1],
            level=str(event.get("level")),
            message=str(event.get("message") or key[0]),
            hint=event.get("hint"),
            step=event.get("step"),
        )

    def _edit(self, event: Mapping[str, Any]) -> None:
        self.record.edits.append((event.get("step"), event.get("changes") or {}))

    def _sample(self, event: Mapping[str, Any]) -> None:
        step = event.get("step")
        if isinstance(step, int) and isinstance(event.get("path"), str):
            self.record.samples.append((step, event["path"]))


def _seconds(at: Any) -> float | None:
    if not isinstance(at, str):
        return None
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


def read_rows(folder: Path, path: str) -> list[dict[str, Any]]:
    """The rows of a sample file inside a run folder; empty if it is gone or lies elsewhere."""
    file = (folder / path).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        return []
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows
