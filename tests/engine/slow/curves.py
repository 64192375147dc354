"""What a run told of itself, as curves."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One number that a run told."""

    metric: str
    """`<node>.<name>`."""
    value: float
    phase: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """All that a finished run told, in order."""

    readings: tuple[Reading, ...]

    def curve(self, metric: str, *, phase: str | None = None) -> list[Reading]:
        return [r for r in self.readings if r.metric == metric and phase in (None, r.phase)]

    def before(self, phase: str, metric: str) -> float:
        """The last reading before a phase began for the first time."""
        value = None
        for reading in self._until(phase):
            value = reading.value if reading.metric == metric else value
        assert value is not None
        return value

    def starting(self, phase: str, metric: str) -> float:
        """The last reading before a phase began for the first time, or else the first one in it."""
        if any(reading.metric == metric for reading in self._until(phase)):
            return self.before(phase, metric)
        return self.curve(metric, phase=phase)[0].value

    def _until(self, phase: str) -> Iterator[Reading]:
        return takewhile(lambda reading: reading.phase != phase, self.readings)

    def last(self, metric: str) -> float:
        return self.curve(metric)[-1].value


def readings_of(path: Path) -> list[Reading]:
    """Of the file of a run's events."""
    return told_by(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def told_by(events: Iterable[Mapping[str, Any]]) -> list[Reading]:
    found, phase, number = [], "", 0
    for event in events:
        if event["type"] == "phase" and event["state"] == "started":
            phase, number = event["phase"], event["round"]
        elif event["type"] == "metrics" and "node" in event:
            found += [
                Reading(metric=f"{event['node']}.{name}", value=value, phase=phase, round=number)
                for name, value in event["metrics"].items()
                if value is not None
            ]
    return found
