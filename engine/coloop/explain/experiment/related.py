"""Runs that belong to the experiment of another: the same loop with other seeds, and controls."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from coloop.errors import ControlRefused, SpecUnreadable
from coloop.explain.controls import (
    CONTROL_KINDS,
    Arm,
    ControlKind,
    Curve,
    beginning,
    metric_in,
    roles_of,
)
from coloop.explain.experiment.record import RunRecord
from coloop.explain.experiment.report import SeedRun, main_metric, results_of
from coloop.spec.graph import LoopSpec
from coloop.spec.io import content_hash, parse

SPEC_FILE = "spec.yaml"
OF_ONE_RUN = {
    "seed": 0,
    "control": None,
    "sweep": None,
    "report_to": (),
    "project": None,
    "report_checkpoints": False,
}
"""Settings of `run` in which runs of one experiment may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    run: str
    """Id of the run."""
    spec: LoopSpec
    record: RunRecord


def siblings_of(spec: LoopSpec, others: Iterable[FinishedRun]) -> list[SeedRun]:
    """The runs whose loop differs by its seed only, with the last reading of the main metric."""
    metric, key = main_metric(spec), loop_key(spec)
    found = []
    for other in others:
        if loop_key(other.spec) != key:
            continue
        result = next((r for r in results_of(other.spec, other.record) if r.metric == metric), None)
        if result is not None:
            found.append(SeedRun(run=other.run, seed=other.spec.run.seed, end=result.end.value))
    return found


def arms_of_run(run: FinishedRun, others: Iterable[FinishedRun]) -> list[Arm]:
    """The whole loop and its controls, with the curves of the runs; empty without a control."""
    curves: dict[ControlKind, dict[int, Curve]] = {
        "full": {run.spec.run.seed: _curve(run, run.spec)}
    }
    for other in others:
        control = other.spec.run.control
        if control is not None and control.of == run.run and control.learner is None:
            arm = curves.setdefault(control.kind, {})
            arm.setdefault(other.spec.run.seed, _curve(other, run.spec))
    kinds = [kind for kind in ("full", *CONTROL_KINDS) if kind in curves]
    arms = [Arm(kind=kind, curves=tuple(_known(curves[kind]))) for kind in kinds]
    return arms if len(arms) > 1 else []


def _known(curves: Mapping[int, Curve]) -> Iterator[Curve]:
    return (curves[seed] for seed in sorted(curves) if curves[seed].values)


def measured_by(base: LoopSpec, spec: LoopSpec) -> str | None:
    """`node.metric` by which a run of `spec` is compared with a run of `base`; None if nothing
    measures it."""
    try:
        return metric_in(roles_of(base), spec)
    except ControlRefused:
        return main_metric(base)


def _curve(run: FinishedRun, base: LoopSpec) -> Curve:
    """The main metric of `base` in a run of one of its arms."""
    try:
        begins = beginning(roles_of(base), run.spec)
    except ControlRefused:
        begins = None
    node, _, name = (measured_by(base, run.spec) or "").partition(".")
    readings = run.record.readings.get((node, name), {})
    steps = tuple(sorted(readings))
    starts = [phase.first_step for phase in run.record.phases if phase.name == begins]
    return Curve(
        seed=run.spec.run.seed,
        run=run.run,
        steps=steps,
        values=tuple(readings[step] for step in steps),
        begins_at=min(starts, default=0),
    )


def loop_key(spec: LoopSpec) -> str:
    """Equal for loops that differ in the seed, the control, and trackers only."""
    return content_hash(spec.model_copy(update={"run": spec.run.model_copy(update=OF_ONE_RUN)}))


@lru_cache(maxsize=1024)
def spec_of(text: str) -> LoopSpec | None:
    """The loop of a run; None if it cannot be read."""
    return parse(text).spec


def folders_beside(folder: Path, runs_dir: Path, name: str) -> Iterator[tuple[Path, LoopSpec]]:
    """Other run folders with a loop of this name, by name."""
    for path in sorted(runs_dir.glob(f"*/{SPEC_FILE}")):
        if path.parent.resolve() == folder.resolve():
            continue
        with suppress(OSError, SpecUnreadable, UnicodeDecodeError):
            text = path.read_text(encoding="utf-8")
            spec = spec_of(text) if name in text else None
            if spec is not None and spec.name == name:
                yield path.parent, spec
