"""`python -m tests.experiments.real`: train the loops of this folder that have no result yet.

    --loop NAME     these loops only; may be repeated, as the next two
    --arm NAME      full, or another arm of the loop
    --seed N
    --threads N     of each process; 1 on a machine that does other work as well
    --list          rows, and which of them have results
    --report        train nothing; write the table and the figures of ../README.md

A run takes up to an hour of two cores; one that was interrupted resumes from its last checkpoint.
Its folder, with events and log, is kept in `.coloop/experiments/real/`, its curves in `kept/`,
which is committed. Needs `make real`, `coloop models add smollm2-135m` and, for distillation,
`python -m tests.experiments.real.make_student`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.bench.machine import ROOT
from tests.engine.shuffles import Changes, shuffled
from tests.experiments.report import FIGURES, Drawn, draw, mean_and_spread, write_part
from tests.experiments.rows import engine

from coloop.spec.diagnostics import Change
from coloop.spec.io import content_hash, parse, patch, require

HERE = Path(__file__).parent
KEPT = HERE / "kept"
RUNS = ROOT / ".coloop" / "experiments" / "real"
FULL = "full"
CONTROL = "control"
SEEDS = (1, 2, 3)
CURVES = (
    "probe.accuracy",
    "judged.pair_accuracy",
    "judged.agreement",
    "judged.class_recall",
    "actor.reward/mean",
    "actor.entropy",
    "actor.mismatch_kl",
    "student.distillation/divergence",
)
BEGIN, END = "<!-- real: written by python -m tests.experiments.real -->", "<!-- end of real -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    reading: str
    """The metric that should rise, one of `CURVES`."""
    phase: str
    """The phase in which it should."""
    control: str
    """What the control does, for the table."""
    arms: Mapping[str, Changes] = field(default_factory=dict)
    """The edits of each arm but `full`."""
    teacher: str | None = None
    """The loop whose trained model is the node `teacher`, of the same seed."""


LOOPS: Mapping[str, Loop] = {
    "grpo-sums": Loop(
        reading="probe.accuracy",
        phase="rl",
        control="rewards of other rows",
        arms={CONTROL: shuffled(reward="right")},
    ),
    "judge-sums": Loop(
        reading="judged.pair_accuracy",
        phase="judge",
        control="labels of other rows",
        arms={CONTROL: shuffled(actor="solver", reward="right", readers=("judge.labels",))},
    ),
    "opd-sums": Loop(
        teacher="grpo-sums",
        reading="probe.accuracy",
        phase="distillation",
        control="SFT on texts of the teacher",
        arms={
            CONTROL: (
                {
                    "op": "set",
                    "path": "schedule.phases.1.learn",
                    "value": ["student.demonstrations"],
                },
                *(
                    {"op": "remove_edge", "path": "edges", "value": edge}
                    for edge in (
                        "student.rollouts -> reads.rollouts",
                        "reads.log_probs -> student.reference",
                    )
                ),
                {"op": "remove", "path": "nodes.reads"},
                {"op": "remove", "path": "nodes.student.algorithm.reference"},
            )
        },
    ),
}
"""By file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    loop: str  # hash of its spec
    curves: Mapping[str, Sequence[tuple[int, float]]]  # by metric, (step, value)
    began: int  # step of the last reading before the measured phase
    seconds: float  # of all steps, without loading and interruptions
    engine: str  # the last commit that changed it
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    loop: str
    arm: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.loop}-{self.arm}-{self.seed}"

    @property
    def path(self) -> Path:
        return KEPT / f"{self.name}.json"

    def text(self) -> str:
        seed = {"op": "set", "path": "run.seed", "value": self.seed}
        loop = LOOPS[self.loop]
        edits = () if self.arm == FULL else loop.arms[self.arm]
        changes = [Change(**change) for change in (seed, *edits)]
        if loop.teacher is not None:
            run = Row(loop=loop.teacher, arm=FULL, seed=self.seed).folder.name
            changes.append(Change(op="set", path="nodes.teacher.model.run", value=run))
        return patch((HERE / f"{self.loop}.yaml").read_text(encoding="utf-8"), changes)

    @property
    def folder(self) -> Path:
        return RUNS / f"{self.name}-{self.hash()[:12]}"

    def hash(self) -> str:
        return content_hash(require(parse(self.text())))


def result_of(row: Row) -> Result | None:
    if not row.path.exists():
        return None
    result = Result(**json.loads(row.path.read_text(encoding="utf-8")))
    return result if result.loop == row.hash() else None


def measure(row: Row, threads: int | None = None) -> Result:
    """Train it, or resume its run, and keep its curves."""
    folder = row.folder
    command = [sys.executable, "-m", "coloop", "run", "--local", "--runs-dir", str(RUNS)]
    command += ["--threads", str(threads)] if threads else []
    if folder.exists():
        command += ["--resume", str(folder)]
    else:
        RUNS.mkdir(parents=True, exist_ok=True)
        spec = RUNS / f"{folder.name}.yaml"
        spec.write_text(row.text(), encoding="utf-8")
        command += [str(spec), "--root", str(HERE), "--run-id", folder.name]
    subprocess.run(command, check=True)
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    curves, seconds = read(events)
    result = Result(
        loop=row.hash(),
        curves=curves,
        began=began(events, LOOPS[row.loop].phase),
        seconds=seconds,
        engine=engine(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )
    KEPT.mkdir(exist_ok=True)
    row.path.write_text(json.dumps(asdict(result)) + "\n", encoding="utf-8")
    return result


def read(
    events: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, list[tuple[int, float]]], float]:
    """The curves, of a step that was taken twice the last reading, and the seconds of all steps."""
    found: dict[str, dict[int, float]] = {}
    seconds: dict[int, float] = {}
    for event in events:
        if event["type"] != "metrics":
            continue
        for name, value in event["metrics"].items():
            metric = f"{event.get('node')}.{name}"
            if metric in CURVES and value is not None:
                found.setdefault(metric, {})[event["step"]] = value
            elif event.get("node") is None and name == "step/seconds":
                seconds[event["step"]] = value
    return {name: sorted(points.items()) for name, points in found.items()}, sum(seconds.values())


def began(events: Iterable[Mapping[str, Any]], phase: str) -> int:
    """The last step that had readings when a phase first began; 0 if none had."""
    step = 0
    for event in events:
        if event["type"] == "phase" and event["phase"] == phase:
            break
        if event["type"] == "metrics":
            step = event["step"]
    return step


def curve_of(row: Row, result: Result) -> Sequence[tuple[int, float]]:
    """Readings from the start of the measured phase on; steps count from there."""
    points = result.curves[LOOPS[row.loop].reading]
    start = max((step for step, _ in points if step <= result.began), default=0)
    return [(max(0, step - result.began), value) for step, value in points if step >= start]


def shown(row: Row, result: Result | None) -> str:
    if result is None:
        return "missing"
    points = curve_of(row, result)
    return f"{points[0][1]:.3f} -> {points[-1][1]:.3f} in {result.seconds / 60:.0f} min"


def write_report() -> None:
    """The part of ../README.md between the marks, and the figures."""
    head = ("loop", "metric", "full", "control", "lead", "seeds", "control is", "minutes a run")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    figures: list[str] = []
    for name, loop in LOOPS.items():
        found: dict[str, list[Result]] = {FULL: [], CONTROL: []}
        curves: Drawn = {}
        for row in every_row():
            if row.loop == name and (result := result_of(row)) is not None:
                found[row.arm].append(result)
                curves.setdefault(row.arm, []).append(curve_of(row, result))
        if FULL not in curves:
            continue
        ends = {arm: [curve[-1][1] for curve in drawn] for arm, drawn in curves.items()}
        start = fmean(curve[0][1] for curve in curves[FULL])
        lead = f"{fmean(ends[FULL]) - fmean(ends[CONTROL]):+.3f}" if CONTROL in ends else "–"
        minutes = fmean(one.seconds for one in found[FULL]) / 60
        cells = (
            name,
            loop.reading,
            f"{start:.3f} → {mean_and_spread(ends[FULL])}",
            mean_and_spread(ends.get(CONTROL, [])),
            lead,
            f"{len(found[FULL])} and {len(found[CONTROL])}",
            loop.control,
            f"{minutes:.0f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
        figure = draw(FIGURES / f"{name}.svg", curves, phase=loop.phase, reading=loop.reading)
        if figure is not None:
            figures += ["", f"![{loop.reading} of each arm of {name}]({figure})"]
    write_part(BEGIN, END, [*lines, *figures])


def every_row() -> list[Row]:
    return [
        Row(loop=name, arm=arm, seed=seed)
        for seed in SEEDS
        for name, loop in LOOPS.items()
        for arm in (FULL, *loop.arms)
    ]


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--loop", action="append", choices=LOOPS)
    arguments.add_argument("--arm", action="append")
    arguments.add_argument("--seed", action="append", type=int, choices=SEEDS)
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--list", action="store_true")
    arguments.add_argument("--report", action="store_true")
    given = arguments.parse_args()
    for row in () if given.report else every_row():
        is_chosen = (
            row.loop in (given.loop or [row.loop])
            and row.arm in (given.arm or [row.arm])
            and row.seed in (given.seed or [row.seed])
        )
        if is_chosen:
            result = result_of(row)
            if result is None and not given.list:
                result = measure(row, given.threads)
            print(f"{row.name:<24} {shown(row, result)}", flush=True)
    if not given.list:
        write_report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
