"""Steps of presets on a CPU: predicted and measured, phase by phase and stage by stage.

Warm-ups are as long as in the preset, since texts change while a policy learns; the last phase is
short. Steps with evaluations do not count. The machine is measured first, by `coloop calibrate`;
what the runs themselves measure is not used. Needs a quiet machine.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.results import Goal, Result, Table
from tests.bench.runs import Run, environment, preset_with, train

from coloop.plan.cost import explain
from coloop.plan.settings.measured import OFF, PLACE
from coloop.plan.settings.processor import CORES
from coloop.spec import presets
from coloop.spec.io import parse, require

PRESETS = (
    "sft-arithmetic",
    "grpo-arithmetic",
    "grpo-two-rewards",
    "rloo-countdown",
    "two-halves",
    "ppo-four-models",
    "dapo",
    "ttrl",
    "reinforce-pp",
)
STEPS, WARM = 46, 6
NEAR = 1.25
"""Factor within which a prediction counts as right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Seconds of a step of one phase."""

    preset: str
    phase: str
    predicted: float
    measured: float
    stages: Mapping[str, tuple[float, float]]
    """By stage, predicted and measured."""

    @property
    def ratio(self) -> float:
        return self.measured / self.predicted


def run(names: tuple[str, ...] = PRESETS) -> Result:
    with calibrated() as store:
        found = [one for name in names for one in compare(name, store)]
    near = {name: _error(name, found) <= NEAR for name in names}
    return Result(
        title="Steps on a CPU: predicted and measured",
        tables=(
            Table(
                title="Medians of the steps without evaluations, one process, one thread.",
                head=("preset", "phase", "predicted", "measured", "measured / predicted"),
                rows=tuple(
                    (
                        one.preset,
                        one.phase,
                        f"{1000 * one.predicted:.0f} ms",
                        f"{1000 * one.measured:.0f} ms",
                        f"{one.ratio:.2f}",
                    )
                    for one in found
                ),
            ),
            Table(
                title="Stages of 5 ms or more.",
                head=("preset", "phase", "stage", "predicted", "measured", "ratio"),
                rows=tuple(
                    (
                        one.preset,
                        one.phase,
                        stage,
                        f"{1000 * predicted:.1f} ms",
                        f"{1000 * measured:.1f} ms",
                        f"{measured / predicted:.2f}",
                    )
                    for one in found
                    for stage, (predicted, measured) in one.stages.items()
                    if max(predicted, measured) >= 0.005
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"the step of {len(names) - 1} of {len(names)} presets within a factor of "
                f"{NEAR} (its phases together)",
                found=f"{sum(near.values())} of {len(names)}",
                is_reached=sum(near.values()) >= len(names) - 1,
            ),
        ),
        data=[(one.preset, one.phase, one.predicted, one.measured) for one in found],
    )


def _error(name: str, found: list[Compared]) -> float:
    """Geometric mean of the errors of a preset's phases, as a factor of 1 or more."""
    errors = [abs(log(one.ratio)) for one in found if one.preset == name]
    return exp(sum(errors) / len(errors))


@contextmanager
def calibrated() -> Iterator[Path]:
    """Stage times of this machine, of one core: a file for `COLOOP_MEASURED`."""
    kept = {name: os.environ.get(name) for name in (PLACE, CORES)}
    with tempfile.TemporaryDirectory() as place:
        os.environ.update({PLACE: str(Path(place) / "measured.json"), CORES: "1"})
        try:
            command = [sys.executable, "-m", "coloop", "calibrate"]
            subprocess.run(command, env=environment(), check=True)
            yield Path(os.environ[PLACE])
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def compare(name: str, store: Path) -> Iterator[Compared]:
    """A preset's phases."""
    root = presets.presets_root() / "loops"
    changes = list(_short(name))
    os.environ[PLACE] = OFF
    with tempfile.TemporaryDirectory() as place:
        done = train(name, changes=changes, keep=Path(place) / "run", may_run_dry=True)
    os.environ[PLACE] = str(store)
    explained = explain(require(parse(preset_with(name, changes))), root=root)
    for phase in explained.phases:
        measured = _stages(done, phase.name)
        planned = {stage.stage: stage.seconds for stage in explained.stages_in[phase.name]}
        yield Compared(
            preset=name,
            phase=phase.name or "all",
            predicted=max(span.end for span in phase.spans),
            measured=_step(done, phase.name),
            stages={
                stage: (seconds, measured[stage])
                for stage, seconds in planned.items()
                if seconds and stage in measured
            },
        )


def _short(name: str) -> Iterator[Mapping[str, Any]]:
    """The preset's changes: no more than a few steps in its last phase."""
    spec = require(parse(presets.load_loop_text(name)))
    phases = spec.schedule.phases
    path = f"schedule.phases.{len(phases) - 1}.steps" if phases else "schedule.steps"
    yield {"op": "set", "path": path, "value": STEPS}


def _step(done: Run, phase: str) -> float:
    """Median seconds of the steps of a phase in which nothing was evaluated."""
    evaluated = {event.get("step") for event in done.events if event.get("evaluation")}
    points = done.curve(None, "step/seconds", phase=phase)
    return median(point.value for point in points[WARM:] if point.step not in evaluated)


def _stages(done: Run, phase: str) -> dict[str, float]:
    """Median seconds of each stage in a phase, evaluations left out."""
    seconds: dict[str, list[float]] = {}
    for event in done.events:
        if (
            event["type"] == "stage.finished"
            and event.get("phase") == phase
            and not event.get("evaluation")
        ):
            seconds.setdefault(event["stage"], []).append(event["seconds"])
    return {stage: median(some[WARM:] or some) for stage, some in seconds.items()}
