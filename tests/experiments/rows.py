"""Train one preset with one arm and one seed in its own process; keep its result.

A result counts as long as the loop stays the same.

tests/experiments/kept/<preset>-<arm>-<seed>.json            a result; committed
.coloop/experiments/runs/<preset>-<seed>-<hash of its loop>/ a run that another preset begins with
"""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.machine import ROOT
from tests.bench.runs import Run, preset_with, train
from tests.engine.slow.curves import Trained, told_by
from tests.experiments.table import EXPERIMENTS, FULL, SEEDS, Experiment

from coloop.spec.io import content_hash, parse, require

KEPT = Path(__file__).with_name("kept")
RUNS = ROOT / ".coloop" / "experiments" / "runs"
LENT = {experiment.earlier for experiment in EXPERIMENTS} - {None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of one run."""

    loop: str
    """Hash of the loop and of what is read from its run (`Row.loop`)."""
    start: float
    end: float
    curve: tuple[float, ...]
    """All readings; empty in old records."""
    steps: tuple[int, ...] = ()
    """Steps of `curve`; empty in old records."""
    began: int | None = None
    """Step at which the phase of the experiment began; None in old records."""
    updates: int | None = None
    """Optimizer steps of all learners in that phase and after it; None in old records."""
    tokens: int | None = None
    """Tokens generated in training in that phase and after it; None in old records."""
    processor_seconds: float | None
    """CPU time of the run; None in old records."""
    engine: str
    """The last commit that changed the engine, with `-dirty` if files differ from it."""
    date: str

    @property
    def rise(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    experiment: Experiment
    arm: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.experiment.preset}-{self.arm}-{self.seed}"

    @property
    def path(self) -> Path:
        return KEPT / f"{self.name}.json"

    @property
    def run_folder(self) -> Path:
        """Where its run is kept if another preset begins with it."""
        return RUNS / f"{self.experiment.preset}-{self.seed}-{self.loop()[:12]}"

    def loop(self) -> str:
        """Hash of its loop, of the loop of the run before it, and of what is read; comments and
        notes do not count."""
        experiment = self.experiment
        texts = [preset_with(experiment.preset, experiment.changes(self.arm, self.seed))]
        if experiment.earlier is not None:
            texts.append(preset_with(experiment.earlier, ()))
        loops = [content_hash(require(parse(text))) for text in texts]
        told = "\0".join([*loops, experiment.phase, experiment.reading, str(experiment.start)])
        return hashlib.sha256(told.encode()).hexdigest()


def all_rows() -> Iterator[Row]:
    """All rows, those that say most first: of one seed each preset with its arms."""
    for seed in SEEDS:
        for experiment in EXPERIMENTS:
            for arm in (FULL, *experiment.arms):
                if arm in experiment.every_seed or seed == SEEDS[0]:
                    yield Row(experiment=experiment, arm=arm, seed=seed)


def kept(row: Row) -> Outcome | None:
    """Its result, by whichever engine; None if its loop was not trained as it is."""
    if not row.path.exists():
        return None
    record = json.loads(row.path.read_text(encoding="utf-8"))
    lists = {name: tuple(record.get(name, ())) for name in ("curve", "steps")}
    outcome = Outcome(**{**record, **lists})
    return outcome if outcome.loop == row.loop() else None


def measure(row: Row) -> Outcome:
    """Train it and keep its result."""
    experiment, loop, trainer = row.experiment, row.loop(), engine()
    run = train(
        experiment.preset,
        changes=experiment.changes(row.arm, row.seed),
        earlier=None if experiment.earlier is None else _lent(experiment.earlier, row.seed),
        keep=row.run_folder if _is_lent(row) else None,
        may_run_dry=row.arm != FULL,
    )
    start, end = experiment.span(Trained(readings=tuple(told_by(run.events))), row.arm)
    points = run.curve(*experiment.reading_of(row.arm).split(".", 1))
    outcome = Outcome(
        loop=loop,
        start=start,
        end=end,
        curve=tuple(point.value for point in points),
        steps=tuple(point.step for point in points),
        **_efforts(run, experiment.phase),
        processor_seconds=run.processor_seconds,
        engine=trainer,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )
    KEPT.mkdir(exist_ok=True)
    row.path.write_text(json.dumps(asdict(outcome)) + "\n", encoding="utf-8")
    return outcome


def _efforts(run: Run, phase: str) -> dict[str, int]:
    """Step at which a phase first began, and updates and generated tokens from there on."""
    events = list(run.events)
    first = next(
        place
        for place, event in enumerate(events)
        if event["type"] == "phase" and event["phase"] == phase
    )
    later = [event for event in events[first:] if event["type"] == "stage.finished"]
    steps = [event["step"] for event in events[:first] if event.get("step") is not None]
    return {
        "began": max(steps, default=0),
        "updates": sum(event["stage"].endswith(".learn") for event in later),
        "tokens": sum(
            event["tokens"]
            for event in later
            if event["stage"].endswith(".generate") and not event.get("evaluation")
        ),
    }


def engine() -> str:
    """The last commit that changed the engine; `-dirty` where files differ from it."""
    is_changed = _git("status", "--porcelain", "--", "engine") != ""
    return _git("log", "-1", "--format=%h", "--", "engine") + ("-dirty" if is_changed else "")


def _is_lent(row: Row) -> bool:
    return row.experiment.preset in LENT and row.arm == FULL


def _lent(preset: str, seed: int) -> Path:
    """The folder of a finished run of this preset; trained if there is none of its loop."""
    (experiment,) = (one for one in EXPERIMENTS if one.preset == preset)
    row = Row(experiment=experiment, arm=FULL, seed=seed)
    if not row.run_folder.exists():
        measure(row)
    return row.run_folder


def _git(*command: str) -> str:
    told = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip()
