"""GRPO on a CPU: TRL, ours as it comes, ours at its best, and a bare torch loop; turn by turn.

    python -m tests.bench --only grpo                      what is not measured yet at this commit
    python -m tests.bench.bench_grpo --row long-1M         one row again, in about a minute
    python -m tests.bench.bench_grpo --row short-5M --arm bare --arm best --turns 3
    python -m tests.bench.bench_grpo --accuracy            held-out accuracy over three seeds
    python -m tests.bench.bench_grpo --gpu                 the 0.5B-shaped row, where a GPU is

Same model folder, rows, batch (16 prompts x 8), optimizer and loss for all. Rows that were measured
at the same commit are kept under `.coloop/bench/grpo/figures` and not measured again.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.grpo import gpu
from tests.bench.grpo.figures import MIB, result_of
from tests.bench.grpo.folders import PLACE, endless, rows_file
from tests.bench.grpo.learning import learned
from tests.bench.grpo.rows import ARMS, LEARNING_STEPS, ROWS, SEEDS, Row
from tests.bench.grpo.turns import OTHER_VENV, Arm, Figures, take_turns
from tests.bench.grpo.work import NEW_TOKENS, Work
from tests.bench.machine import ROOT
from tests.bench.results import Result

FIGURES = PLACE / "figures"


def run() -> Result:
    """GRPO against TRL and a bare torch loop."""
    ensure_venv()
    for row in ROWS.values():
        if _kept(row.name) is None:
            measure(row)
    if _kept("accuracy") is None:
        measure_accuracy()
    records = {name: kept for name in ROWS if (kept := _kept(name)) is not None}
    return result_of(records, _kept("accuracy"))


def ensure_venv() -> None:
    """The environment with TRL, made where it is missing."""
    if not OTHER_VENV.exists():
        subprocess.run(["make", "bench-venv"], cwd=ROOT, check=True)


def measure(row: Row, arms: Sequence[str] = (), turns: int | None = None) -> dict[str, Any]:
    """Measure a row and keep it."""
    began = time.monotonic()
    folder = str(endless(row.size))
    work = Work(
        size=row.size,
        folder=folder,
        rows=str(rows_file()),
        new_tokens=NEW_TOKENS[row.length],
    )
    chosen = [
        Arm(name=name, module=ARMS[name][0], work=work.with_(**ARMS[name][1]))
        for name in (arms or row.arms)
    ]
    figures, failed = take_turns(
        chosen, warm_up=row.warm_up, turns=turns or row.turns, steps=row.steps
    )
    record = {
        "arms": {name: one.as_dict() for name, one in figures.items()},
        "failed": failed,
        "seconds": time.monotonic() - began,
    }
    if not arms:
        _keep(row.name, record)
    return record


def measure_accuracy() -> dict[str, Any]:
    """Held-out accuracy of TRL and ours after the same number of steps."""
    arms = {name: ARMS[name] for name in ("trl", "default", "best")}
    try:
        start, found = learned(arms, SEEDS, LEARNING_STEPS)
    except Exception as error:  # a row of the table is missing, the others stand
        record: dict[str, Any] = {"failed": str(error)}
    else:
        record = {"start": start, "found": found, "failed": None}
    _keep("accuracy", record)
    return record


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "HEAD:engine", "HEAD:tests/bench/grpo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return told.stdout.strip()


def _keep(name: str, record: dict[str, Any]) -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / f"{name}.json"
    path.write_text(json.dumps({"commit": _commit(), **record}, indent=1), encoding="utf-8")


def _kept(name: str) -> dict[str, Any] | None:
    """What was measured at this state of engine and arms."""
    path = FIGURES / f"{name}.json"
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return record if record["commit"] == _commit() else None


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--row", action="append", choices=tuple(ROWS), default=[])
    arguments.add_argument("--arm", action="append", choices=tuple(ARMS), default=[])
    arguments.add_argument("--turns", type=int)
    arguments.add_argument("--accuracy", action="store_true")
    arguments.add_argument("--gpu", action="store_true")
    given = arguments.parse_args()
    for name in given.row:
        record = measure(ROWS[name], given.arm, given.turns)
        for arm, one in record["arms"].items():
            told = Figures(**one)
            sys.stdout.write(
                f"{name} {arm:<12} {told.step:.4f} s, processor {told.processor_step:.4f} s, "
                f"writing {told.writing / len(told.seconds):.4f} s, "
                f"learning {told.learning / len(told.seconds):.4f} s, "
                f"{told.tokens_per_second:,.0f} tokens/s, {told.peak_bytes / MIB:.0f} MiB, "
                f"warm-up {told.warm_up:.1f} s\n"
            )
        for arm, why in record["failed"].items():
            sys.stdout.write(f"{name} {arm}: {why}\n")
        sys.stdout.write(f"{name} took {record['seconds']:.0f} s\n")
    if given.accuracy:
        sys.stdout.write(json.dumps(measure_accuracy(), indent=1) + "\n")
    if given.gpu:
        sys.stdout.write(json.dumps(gpu.measure(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    for folder in ("engine", "backend"):
        sys.path.insert(0, str(Path(ROOT) / folder))
    sys.exit(main())
