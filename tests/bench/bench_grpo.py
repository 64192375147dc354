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
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tests.bench.grpo import gpu
from tests.bench.grpo.folders import PLACE, endless, rows_file
from tests.bench.grpo.learning import learned
from tests.bench.grpo.turns import OTHER_VENV, Arm, Figures, take_turns
from tests.bench.grpo.work import NEW_TOKENS, Work
from tests.bench.machine import ROOT
from tests.bench.results import Goal, Result, Table

CORES = len(os.sched_getaffinity(0))
FIGURES = PLACE / "figures"
SEEDS, LEARNING_STEPS = (1, 2, 3), 120
BEST_RATIO, DEFAULT_RATIO, TOKENS_RATIO = 1.15, 1.5, 2.0
MIB = 2**20

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "trl": ("trl_arm", {"threads": CORES}),
    "trl-1": ("trl_arm", {"threads": 1}),
    "trl-fp32": ("trl_arm", {"threads": CORES, "precision": "float32"}),
    "default": ("own_arm", {"threads": 1, "settings": "default"}),
    "best": ("own_arm", {"threads": CORES}),
    "best-1": ("own_arm", {"threads": 1}),
    "own-fp32": ("own_arm", {"threads": CORES, "precision": "float32"}),
    "bare": ("bare_arm", {"threads": 1, "processes": CORES}),
    "bare-1": ("bare_arm", {"threads": 1, "processes": 1}),
    "bare-plain": ("bare_arm", {"threads": 1, "processes": 1, "is_compiled": False}),
    "bare-threads": ("bare_arm", {"threads": CORES, "processes": 1}),
}
"""Module and settings of each arm; those of one column differ in what may be fastest here."""
COLUMNS = {
    "TRL": ("trl", "trl-1"),
    "default": ("default",),
    "best": ("best", "best-1"),
    "bare": ("bare", "bare-1", "bare-threads"),
}
"""A column is its fastest arm."""
USUAL = ("trl", "default", "best", "bare")
EQUAL = ("trl-fp32", "own-fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    length: str
    size: str
    warm_up: int
    turns: int
    steps: int
    arms: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.length}-{self.size}"


def _row(length: str, size: str, steps: int) -> Row:
    extra = EQUAL if size == "1M" else ()
    if size == "1M" and length == "short" and CORES > 1:
        extra = (*extra, "trl-1", "best-1")
    return Row(
        length=length,
        size=size,
        warm_up=3 if length == "short" else 2,
        turns=4 if size != "20M" else 2,
        steps=steps,
        arms=(*USUAL, *extra),
    )


STEPS = {"short": {"1M": 12, "5M": 8, "20M": 6}, "long": {"1M": 2, "5M": 1, "20M": 1}}
ROWS = {
    row.name: row
    for row in (
        _row(length, size, STEPS[length][size])
        for length, size in product(STEPS, ("1M", "5M", "20M"))
    )
}


def run() -> Result:
    """GRPO against TRL and a bare torch loop."""
    ensure_venv()
    for row in ROWS.values():
        if _kept(row.name) is None:
            measure(row)
    if _kept("accuracy") is None:
        measure_accuracy()
    return _result()


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


# What is said of it


def columns_of(record: dict[str, Any]) -> dict[str, tuple[str, Figures]]:
    """The fastest arm of each column."""
    known = {name: Figures(**one) for name, one in record["arms"].items()}
    found = {}
    for column, names in COLUMNS.items():
        there = [name for name in names if name in known]
        if there:
            best = min(there, key=lambda name: known[name].step)
            found[column] = (best, known[best])
    return found


def _result() -> Result:
    records = {name: kept for name in ROWS if (kept := _kept(name)) is not None}
    found = {name: columns_of(record) for name, record in records.items()}
    tables = [
        _table("Seconds a step, median of interleaved turns", found, lambda one: _s(one.step)),
        _table("Processor seconds a step", found, lambda one: _s(one.processor_step)),
        _table("Tokens written a second", found, lambda one: f"{one.tokens_per_second:,.0f}"),
        _table("Peak resident memory", found, lambda one: f"{one.peak_bytes / MIB:.0f} MiB"),
        _table("Warm-up, not counted: seconds", found, lambda one: f"{one.warm_up:.1f}"),
    ]
    tables.append(_equal_table(records))
    learned = _kept("accuracy")
    if learned is not None and not learned["failed"]:
        tables.append(_accuracy_table(learned))
    goals = [*_goals(found, records), *_accuracy_goal(learned), *gpu.goals()]
    failures = [
        f"{name}, {arm}: {why}"
        for name, one in records.items()
        for arm, why in one["failed"].items()
    ]
    if (reason := gpu.why_not()) is not None:
        failures.append(f"The row of a GPU was not measured: {reason}.")
    return Result(
        title="GRPO against TRL and a bare loop",
        tables=tuple(tables),
        goals=tuple(goals),
        text="\n".join(failures),
        data=records,
    )


def _s(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}"


def _table(title: str, found: dict[str, dict[str, tuple[str, Figures]]], say: Any) -> Table:
    return Table(
        title=title + ".",
        head=("workload", *COLUMNS, "default / bare", "best / bare", "best / TRL"),
        rows=tuple(
            (
                name,
                *(say(row[c][1]) if c in row else "-" for c in COLUMNS),
                *(_ratio_of(title, row, over, under) for over, under in PAIRS),
            )
            for name, row in found.items()
        ),
    )


PAIRS = (("default", "bare"), ("best", "bare"), ("best", "TRL"))


def _ratio_of(title: str, row: dict[str, tuple[str, Figures]], over: str, under: str) -> str:
    if over not in row or under not in row:
        return "-"
    return f"{_value(title, row[over][1]) / _value(title, row[under][1]):.2f}"


def _value(title: str, one: Figures) -> float:
    match title.split()[0]:
        case "Seconds":
            return one.step
        case "Processor":
            return one.processor_step
        case "Tokens":
            return one.tokens_per_second
        case "Peak":
            return float(one.peak_bytes)
    return one.warm_up


def _equal_table(records: dict[str, dict[str, Any]]) -> Table:
    rows = []
    for name, record in records.items():
        known = {arm: Figures(**one) for arm, one in record["arms"].items()}
        rows += [(name, arm, _s(one.step), _s(one.processor_step)) for arm, one in known.items()]
    return Table(
        title="Every arm: seconds and processor seconds a step.",
        head=("workload", "arm", "seconds", "processor"),
        rows=tuple(rows),
    )


def _accuracy_table(record: dict[str, Any]) -> Table:
    found = record["found"]
    return Table(
        title=f"Greedy accuracy on held-out sums after {LEARNING_STEPS} steps; "
        f"{record['start']:.3f} before.",
        head=("seed", *found),
        rows=tuple(
            (str(seed), *(f"{values[place]:.3f}" for values in found.values()))
            for place, seed in enumerate(SEEDS)
        ),
    )


def _goals(
    found: dict[str, dict[str, tuple[str, Figures]]], records: dict[str, dict[str, Any]]
) -> list[Goal]:
    def ratios(over: str, under: str, what: Any, rows: Sequence[str] = tuple(ROWS)) -> list[float]:
        return [
            what(found[name][over][1]) / what(found[name][under][1])
            for name in rows
            if name in found and over in found[name] and under in found[name]
        ]

    def most(wanted: str, values: list[float], limit: float) -> Goal:
        said = ", ".join(f"{value:.2f}" for value in values) or "nothing"
        return Goal(wanted=wanted, found=said, is_reached=bool(values) and max(values) <= limit)

    long = [name for name in ROWS if name.startswith("long")]
    writing = ratios("best", "TRL", lambda one: one.tokens_per_second, long)
    equal = []
    for record in records.values():
        known = {arm: Figures(**one).step for arm, one in record["arms"].items()}
        equal += [known["own-fp32"] / known["trl-fp32"]] if set(EQUAL) <= set(known) else []
    equal += ratios("best", "TRL", lambda one: one.step)
    return [
        most(
            f"at its best at most {BEST_RATIO} of the bare loop",
            ratios("best", "bare", lambda one: one.step),
            BEST_RATIO,
        ),
        most(
            f"as it comes at most {DEFAULT_RATIO} of the bare loop",
            ratios("default", "bare", lambda one: one.step),
            DEFAULT_RATIO,
        ),
        most("never slower than TRL at equal precision", equal, 1.0),
        Goal(
            wanted=f"tokens a second {TOKENS_RATIO:g} times TRL's or more where texts are long",
            found=", ".join(f"{value:.1f}" for value in writing) or "nothing",
            is_reached=bool(writing) and min(writing) >= TOKENS_RATIO,
        ),
        most(
            "peak memory no higher than TRL's",
            ratios("best", "TRL", lambda one: float(one.peak_bytes)),
            1.0,
        ),
    ]


def _accuracy_goal(record: dict[str, Any] | None) -> list[Goal]:
    """Within noise: means apart by no more than two standard errors of their difference."""
    wanted = "held-out accuracy within noise of TRL's"
    if record is None or record["failed"]:
        return [Goal(wanted=wanted, found="not measured", is_reached=False)]
    theirs = record["found"]["trl"]
    goals = []
    for name in ("default", "best"):
        own = record["found"][name]
        noise = 2 * ((stdev(own) ** 2 + stdev(theirs) ** 2) / len(own)) ** 0.5
        apart = mean(own) - mean(theirs)
        goals.append(
            Goal(
                wanted=f"{wanted} ({name})",
                found=f"{apart:+.3f}, noise {noise:.3f}",
                is_reached=apart >= -max(noise, 0.02),
            )
        )
    return goals


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
