"""GRPO on a CPU: TRL, ours as it comes, ours at its best, and a bare torch loop; turn by turn.

    python -m tests.bench --only grpo                      what is not measured yet at this commit
    python -m tests.bench.bench_grpo --row long-1M         one row again, in about a minute
    python -m tests.bench.bench_grpo --row short-5M --arm bare --arm best --turns 3
    python -m tests.bench.bench_grpo --gpu                 the 0.5B-shaped row, where a GPU is

Same model folder, rows, batch (16 prompts x 8), optimizer and loss for all. Rows that were measured
at the same commit are kept under `.coloop/bench/grpo/figures` and not measured again.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.grpo import gpu
from tests.bench.grpo.figures import MIB, result_of
from tests.bench.grpo.folders import endless, rows_file
from tests.bench.grpo.kept import keep, kept
from tests.bench.grpo.rows import ARMS, ROWS, Row
from tests.bench.grpo.turns import Arm, Figures, ensure_venv, take_turns
from tests.bench.grpo.work import NEW_TOKENS, Work
from tests.bench.machine import ROOT
from tests.bench.results import Result


def run() -> Result:
    """GRPO against TRL and a bare torch loop."""
    ensure_venv()
    for row in ROWS.values():
        if kept(row.name) is None:
            measure(row)
    records = {name: found for name in ROWS if (found := kept(name)) is not None}
    return result_of(records)


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
        keep(row.name, record)
    return record


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--row", action="append", choices=tuple(ROWS), default=[])
    arguments.add_argument("--arm", action="append", choices=tuple(ARMS), default=[])
    arguments.add_argument("--turns", type=int)
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
                f"{told.tokens_per_second:,.0f} tokens/s, {told.peak_once_bytes / MIB:.0f} MiB, "
                f"resident {told.peak_bytes / MIB:.0f} MiB, "
                f"warm-up {told.warm_up:.1f} s\n"
            )
        for arm, why in record["failed"].items():
            sys.stdout.write(f"{name} {arm}: {why}\n")
        sys.stdout.write(f"{name} took {record['seconds']:.0f} s\n")
    if given.gpu:
        sys.stdout.write(json.dumps(gpu.measure(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    for folder in ("engine", "backend"):
        sys.path.insert(0, str(Path(ROOT) / folder))
    sys.exit(main())
