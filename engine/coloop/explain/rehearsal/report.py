"""Result of a rehearsal, from the events of its run.

A rehearsal fails if the run failed, a teaching port never had a loss, a phase did not end, or a
buffer that a phase waits for was not filled: a loop that fails so with tiny models is likely to
fail with real ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Event = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class StageSummary:
    stage: str
    runs: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalResult:
    """Stages and phases that ran, updates per teaching port, and what failed."""

    stages: tuple[StageSummary, ...]
    """In the order in which they first ended."""
    phases: tuple[str, ...]
    learned: Mapping[str, int]
    """Updates with a loss, by teaching port (`actor.rewards`)."""
    alerts: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.failures


def summarize(events: Iterable[Event]) -> RehearsalResult:
    """Summarize the events of a finished run."""
    events = list(events)
    learned = _learned(events)
    return RehearsalResult(
        stages=tuple(_stages(events)),
        phases=tuple(dict.fromkeys(event["phase"] for event in _events_of("phase", events))),
        learned=learned,
        alerts=tuple(dict.fromkeys(_alerts(events))),
        failures=tuple(_failures(events, learned)),
    )


def _events_of(kind: str, events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event["type"] == kind)


def _stages(events: Iterable[Event]) -> Iterable[StageSummary]:
    stages: dict[str, StageSummary] = {}
    for event in _events_of("stage.finished", events):
        summary = stages.setdefault(event["stage"], StageSummary(stage=event["stage"]))
        summary.runs += 1
        summary.rows += event["samples"]
        summary.tokens += event["tokens"]
        summary.seconds += event["seconds"]
    return stages.values()


def _learned(events: Sequence[Event]) -> dict[str, int]:
    counts = {port: 0 for event in _events_of("phase", events) for port in event["learn"]}
    for event in _events_of("metrics", events):
        for name in event["metrics"]:
            port = f"{event.get('node')}.{name.removeprefix('loss/')}"
            if name.startswith("loss/") and port in counts and not event["evaluation"]:
                counts[port] += 1
    return counts


def _alerts(events: Iterable[Event]) -> Iterator[str]:
    for event in _events_of("alert", events):
        if event["level"] != "info" and not event["cleared"]:
            yield event["message"]


def _failures(events: Sequence[Event], learned: Mapping[str, int]) -> Iterator[str]:
    for event in _events_of("run.state", events):
        if event.get("error"):
            yield _error_text(event["error"])
            return
    if any(event["state"] == "stopped" for event in _events_of("run.state", events)):
        yield "the rehearsal was stopped"
        return
    started = [
        event["phase"] for event in _events_of("phase", events) if event["state"] == "started"
    ]
    ended = [
        event["phase"] for event in _events_of("phase", events) if event["state"] == "finished"
    ]
    for phase in started[len(ended) :]:
        yield f"phase `{phase}` did not end"
    for event in _events_of("alert", events):
        if event["code"] == "buffer.not_full":
            yield event["message"]
    for port, count in learned.items():
        if not count:
            yield f"`{port}` is live but never learned from a row"


def _error_text(error: Mapping[str, Any]) -> str:
    sources = [f"{name} `{error[name]}`" for name in ("node", "stage") if error.get(name)]
    source_text = f" ({', '.join(sources)})" if sources else ""
    hint = f"; {error['hint']}" if error.get("hint") else ""
    return f"{error['message']}{source_text}{hint}"
