"""`python -m tests.experiments.real`: train the loops of this folder that have no result yet.

    --loop NAME     these loops only; may be repeated, as the next two
    --arm NAME      full or shuffled
    --seed N
    --list          rows, and which of them have results

A run takes up to two hours of two cores; one that was interrupted resumes from its last
checkpoint. Its folder, with events and log, is kept in `.coloop/experiments/real/`, its curves in
`kept/`, which is committed. Needs `make real` and `coloop models add smollm2-135m`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.machine import ROOT
from tests.engine.shuffles import Changes, shuffled
from tests.experiments.rows import engine

from coloop.spec.diagnostics import Change
from coloop.spec.io import content_hash, parse, patch, require

HERE = Path(__file__).parent
KEPT = HERE / "kept"
RUNS = ROOT / ".coloop" / "experiments" / "real"
FULL = "full"
SEEDS = (1, 2, 3)
CURVES = ("probe.accuracy", "actor.reward/mean", "actor.entropy", "actor.mismatch_kl")
LOOPS: Mapping[str, Mapping[str, Changes]] = {
    "grpo-sums": {FULL: (), "shuffled": shuffled(reward="right")},
}
"""By file, the edits of each arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    loop: str  # hash of its spec
    curves: Mapping[str, Sequence[tuple[int, float]]]  # by metric, (step, value)
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
        changes = [Change(**change) for change in (seed, *LOOPS[self.loop][self.arm])]
        return patch((HERE / f"{self.loop}.yaml").read_text(encoding="utf-8"), changes)

    def hash(self) -> str:
        return content_hash(require(parse(self.text())))


def result_of(row: Row) -> Result | None:
    if not row.path.exists():
        return None
    result = Result(**json.loads(row.path.read_text(encoding="utf-8")))
    return result if result.loop == row.hash() else None


def measure(row: Row) -> Result:
    """Train it, or resume its run, and keep its curves."""
    folder = RUNS / f"{row.name}-{row.hash()[:12]}"
    command = [sys.executable, "-m", "coloop", "run", "--local", "--runs-dir", str(RUNS)]
    if folder.exists():
        command += ["--resume", str(folder)]
    else:
        RUNS.mkdir(parents=True, exist_ok=True)
        spec = RUNS / f"{folder.name}.yaml"
        spec.write_text(row.text(), encoding="utf-8")
        command += [str(spec), "--root", str(HERE), "--run-id", folder.name]
    subprocess.run(command, check=True)
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    curves, seconds = read(map(json.loads, lines))
    result = Result(
        loop=row.hash(),
        curves=curves,
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


def shown(result: Result | None) -> str:
    if result is None:
        return "missing"
    points = result.curves[CURVES[0]]
    return f"{points[0][1]:.3f} -> {points[-1][1]:.3f} in {result.seconds / 60:.0f} min"


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rows = [
        Row(loop=loop, arm=arm, seed=seed)
        for seed in SEEDS
        for loop, arms in LOOPS.items()
        for arm in arms
        if arm == FULL or seed == SEEDS[0]
    ]
    arguments.add_argument("--loop", action="append", choices=LOOPS)
    arguments.add_argument("--arm", action="append")
    arguments.add_argument("--seed", action="append", type=int, choices=SEEDS)
    arguments.add_argument("--list", action="store_true")
    given = arguments.parse_args()
    for row in rows:
        is_chosen = (
            row.loop in (given.loop or [row.loop])
            and row.arm in (given.arm or [row.arm])
            and row.seed in (given.seed or [row.seed])
        )
        if is_chosen:
            result = result_of(row)
            if result is None and not given.list:
                result = measure(row)
            print(f"{row.name:<24} {shown(result)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
