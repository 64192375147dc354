"""Whether GRPO learns what TRL learns: update by update on the same rows, and over seeds.

    python -m tests.bench --only accuracy

Runs that were made at the same state of engine and arms are kept and not made again, so a bench
that was broken off goes on where it was.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from tests.bench.grpo.folders import warmed
from tests.bench.grpo.kept import keep, kept
from tests.bench.grpo.learning import (
    LEARNERS,
    LEARNING_RATE,
    SEEDS,
    STEPS,
    accuracy,
    differences,
    learned,
    noise_of,
)
from tests.bench.grpo.parity import UPDATES, compare
from tests.bench.grpo.turns import ensure_venv
from tests.bench.results import Goal, Result, Table

MOST_APART = 5e-4
"""Of the way that all weights together have gone: rounding, which Adam's first step makes as long
as any where a gradient is nothing else; another epsilon shows as 1e-3."""
LEAST_RISE = 0.05
ALGORITHMS = ("trl-grpo", "grpo")
RECORD = "accuracy"


def run() -> Result:
    ensure_venv()
    record = kept(RECORD) or {"start": accuracy(warmed()), "parity": {}, "found": {}}
    for algorithm in ALGORITHMS:
        if algorithm not in record["parity"]:
            with tempfile.TemporaryDirectory(prefix="bench-parity-") as place:
                compared = compare(algorithm, warmed(), Path(place), rate=LEARNING_RATE)
            record["parity"][algorithm] = [asdict(one) for one in compared]
            keep(RECORD, record)
    for seed in map(str, SEEDS):
        for arm in LEARNERS:
            found = record["found"].setdefault(arm, {})
            if seed not in found:
                found[seed] = learned(arm, int(seed))
                keep(RECORD, record)
    return result_of(record)


def result_of(record: dict[str, Any]) -> Result:
    """Tables and goals of what was found."""
    found: Mapping[str, Mapping[str, float]] = record["found"]
    theirs = record["parity"][ALGORITHMS[0]]
    rise = mean(found["TRL"].values()) - record["start"]
    furthest = max(one["apart"] for one in theirs)
    return Result(
        title="GRPO compared with TRL: accuracy",
        tables=(_parity_table(record["parity"]), _seeds_table(found, record["start"])),
        goals=(
            Goal(
                wanted=f"weights after {UPDATES} updates on the same rows differ from TRL's by "
                f"less than {MOST_APART:g} of their change",
                found=f"{furthest:.1e}",
                is_reached=furthest < MOST_APART,
            ),
            Goal(
                wanted=f"TRL's accuracy rises by {LEAST_RISE} or more",
                found=f"{rise:+.3f}",
                is_reached=rise >= LEAST_RISE,
            ),
            _goal(found, "float32", "TRL"),
            _goal(found, "bfloat16", "TRL"),
            _goal(found, "bfloat16", "float32"),
        ),
        data=record,
    )


def _goal(found: Mapping[str, Mapping[str, float]], over: str, under: str) -> Goal:
    """Within noise: lower by no more than two standard errors of the mean difference."""
    apart = differences(found, over, under)
    noise = noise_of(apart)
    return Goal(
        wanted=f"held-out accuracy of {over} within noise of {under}",
        found=f"{mean(apart):+.3f}, noise {noise:.3f}, {len(apart)} seeds",
        is_reached=mean(apart) >= -noise,
    )


def _parity_table(parity: Mapping[str, list[dict[str, float]]]) -> Table:
    return Table(
        title="Updates of TRL and coloop on the same rows, float32: distance between the weights, "
        "relative to the total change of the weights.",
        head=("algorithm", "update", "difference of weights", "difference of advantages"),
        rows=tuple(
            (algorithm, str(number), f"{one['apart']:.1e}", f"{one['advantage']:.1e}")
            for algorithm, updates in parity.items()
            for number, one in enumerate(updates, 1)
        ),
    )


def _seeds_table(found: Mapping[str, Mapping[str, float]], start: float) -> Table:
    seeds = [seed for seed in map(str, SEEDS) if any(seed in own for own in found.values())]
    means = [f"{mean(own.values()):.3f}" if own else "-" for own in found.values()]
    return Table(
        title=f"Greedy accuracy on held-out sums after {STEPS} steps; {start:.3f} at the start.",
        head=("seed", *found),
        rows=(
            *(
                (seed, *(f"{own[seed]:.3f}" if seed in own else "-" for own in found.values()))
                for seed in seeds
            ),
            ("mean", *means),
        ),
    )
