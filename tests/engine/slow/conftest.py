"""Whole presets trained in this process on one thread, and their curves.

Each run takes one to three minutes on an idle core; `make test-slow` runs them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coloop import presets
from coloop.diagnostics import Change
from coloop.runtime.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec.io import parse, patch


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
        for reading in self.readings:
            if reading.phase == phase:
                break
            value = reading.value if reading.metric == metric else value
        assert value is not None
        return value

    def last(self, metric: str) -> float:
        return self.curve(metric)[-1].value


Train = Callable[..., Trained]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Train a loop preset to its end: `train(name, changes)`."""

    def go(name: str, changes: Sequence[Mapping[str, Any]] = ()) -> Trained:
        edits = [Change(**change) for change in changes]
        text = patch(presets.load_loop_text(name), edits)
        parsed = parse(text)
        assert parsed.spec is not None, parsed.diagnostics
        result = run(
            RunRequest(
                spec=parsed.spec,
                text=text,
                root=presets.presets_root() / "loops",
                runs_dir=tmp_path,
                run_id=f"run-{len(list(tmp_path.iterdir()))}",
                cluster="local",
                threads=1,
            )
        )
        assert result.error is None
        return Trained(readings=tuple(readings_of(result.folder / "events.jsonl")))

    return go


def readings_of(path: Path) -> list[Reading]:
    found, phase, number = [], "", 0
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["type"] == "phase" and event["state"] == "started":
            phase, number = event["phase"], event["round"]
        elif event["type"] == "metrics" and "node" in event:
            found += [
                Reading(metric=f"{event['node']}.{name}", value=value, phase=phase, round=number)
                for name, value in event["metrics"].items()
                if value is not None
            ]
    return found
