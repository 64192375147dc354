"""Trains a loop with `coloop run` in a process of its own and reads what its run folder tells.

Knows the run folder's events and nothing of what a loop does.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.machine import ROOT

from coloop.errors import NothingLearned
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

LONGEST_RUN_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One reading."""

    step: int
    value: float
    phase: str
    number: int
    """Place of its phase in the schedule with repeats written out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that finished."""

    events: tuple[dict[str, Any], ...]
    seconds: float
    """From the command to its end."""
    processor_seconds: float
    """Of the command's process and those that it waited for; what the run takes of a machine that
    others use too."""

    def curve(self, node: str | None, metric: str, *, phase: str | None = None) -> list[Point]:
        """Readings of a metric in order; of one phase (all its rounds), where one is named."""
        points, current, number = [], "", 0
        for event in self.events:
            if event["type"] == "phase" and event["state"] == "started":
                current, number = event["phase"], event["index"]
            elif event["type"] == "metrics" and event.get("node") == node:
                value = event["metrics"].get(metric)
                if value is not None and phase in (None, current):
                    points.append(
                        Point(step=event["step"], value=value, phase=current, number=number)
                    )
        return points

    def at_start_of(self, phase: str, node: str, metric: str) -> float:
        """The last reading before a phase, on the weights it starts from."""
        value = None
        for event in self.events:
            if event["type"] == "phase" and event["phase"] == phase:
                break
            if event["type"] == "metrics" and event.get("node") == node:
                value = event["metrics"].get(metric, value)
        assert value is not None, f"{node}.{metric} was not read before {phase}"
        return float(value)

    def last(self, node: str, metric: str) -> float:
        return self.curve(node, metric)[-1].value

    def steps(self, phase: str) -> int:
        """Steps that the phase took, over all its rounds."""
        return len(self.curve(None, "step/seconds", phase=phase))

    def median_of(self, metric: str, *, phase: str, skip: int = 0) -> float:
        """Of a step's own metric, without the first steps."""
        return statistics.median(p.value for p in self.curve(None, metric, phase=phase)[skip:])


def preset_with(name: str, changes: Sequence[Mapping[str, Any]]) -> str:
    """A loop preset's text after edits in the language's own words."""
    return patch(presets.load_loop_text(name), [Change(**change) for change in changes])


def train(
    loop: str,
    *,
    settings: Mapping[str, Any] | None = None,
    changes: Sequence[Mapping[str, Any]] = (),
    cluster: str = "local",
    threads: int | None = 1,
    earlier: Path | None = None,
    keep: Path | None = None,
    may_run_dry: bool = False,
) -> Run:
    """Run a preset to its end and wait; raises with the end of its output where it fails, unless it
    is one that `may_run_dry` and nothing teaches it any more. `earlier` is the folder of a run that
    this one begins with, `keep` the place for this one's own folder."""
    text = preset_with(loop, changes)
    with tempfile.TemporaryDirectory(prefix=f"coloop-bench-{loop}-") as place:
        if earlier is not None:
            shutil.copytree(earlier, Path(place) / "earlier")
        spec = Path(place) / f"{loop}.yaml"
        spec.write_text(text, encoding="utf-8")
        root = presets.presets_root() / "loops"
        command = [sys.executable, "-m", "coloop", "run", str(spec), "--root", str(root)]
        command += ["--runs-dir", place, "--run-id", "run", "--json"]
        command += ["--local"] if cluster == "local" else []
        command += ["--threads", str(threads)] if threads else []
        for path, value in (settings or {}).items():
            command += ["--set", f"{path}={json.dumps(value)}"]
        done, seconds, used = _timed(command)
        lines = _lines_of(Path(place) / "run" / "events.jsonl")
        if keep is not None and lines:
            shutil.copytree(Path(place) / "run", keep, dirs_exist_ok=True)
    events = tuple(json.loads(line) for line in lines)
    if done.returncode and not (may_run_dry and _has_run_dry(events)):
        raise RuntimeError(f"{command}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return Run(events=events, seconds=seconds, processor_seconds=used)


def _lines_of(events: Path) -> list[str]:
    return events.read_text(encoding="utf-8").splitlines() if events.exists() else []


def _has_run_dry(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run stopped because nothing was learned for many steps."""
    errors = [event["error"] for event in events if event.get("error") is not None]
    return any(error["code"] == NothingLearned.code for error in errors)


def _timed(command: Sequence[str]) -> tuple[subprocess.CompletedProcess[str], float, float]:
    """The ended process, seconds by the clock and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=LONGEST_RUN_SECONDS
    )
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment() -> dict[str, str]:
    paths = [str(ROOT / "engine"), str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
