"""What Ray and the driver cost: a step of the quick start on local Ray and in one process.

Same loop, seed and thread count, so the same work; the two take turns, because a shared machine
drifts. Times are of steps of the `rl` phase once warm.
"""

import statistics

from tests.bench.results import Goal, Result, Table
from tests.bench.runs import Run, train

LOOP = "grpo-arithmetic"
PHASE = "rl"
ROUNDS = 3
WARM_AFTER = 10
SETTINGS = {
    "run.seed": 1,
    "schedule.phases.0.steps": 150,
    "schedule.phases.1.steps": 80,
    "nodes.probe.every": 1000,
    "run.checkpoint_every": None,
}
"""Long enough for answers of their usual length; nothing but steps."""
MOST_RATIO = 1.10
MOST_CONTROLLER_SHARE = 0.03


def run() -> Result:
    runs: dict[str, list[Run]] = {"local": [], "ray": []}
    for _ in range(ROUNDS):
        for cluster, found in runs.items():
            found.append(train(LOOP, settings=SETTINGS, cluster=cluster))
    seconds = {cluster: [_step(one) for one in found] for cluster, found in runs.items()}
    ratio = statistics.median(
        ray / local for local, ray in zip(seconds["local"], seconds["ray"], strict=True)
    )
    shares = {cluster: max(map(_share, found)) for cluster, found in runs.items()}
    return Result(
        title="Overhead of Ray and of the driver",
        tables=(
            Table(
                title=f"Median step of `{PHASE}` after {WARM_AFTER} steps, one thread, in turns.",
                head=("cluster", *(f"turn {n + 1}" for n in range(ROUNDS)), "driver's share"),
                rows=tuple(
                    (
                        cluster,
                        *(f"{1000 * value:.0f} ms" for value in seconds[cluster]),
                        f"{100 * shares[cluster]:.2f} %",
                    )
                    for cluster in runs
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"step on local Ray against one process at most {MOST_RATIO:.2f}",
                found=f"{ratio:.3f}",
                is_reached=ratio <= MOST_RATIO,
            ),
            Goal(
                wanted=f"driver's share of a step below {MOST_CONTROLLER_SHARE:.0%}",
                found=", ".join(f"{name} {100 * share:.2f} %" for name, share in shares.items()),
                is_reached=max(shares.values()) < MOST_CONTROLLER_SHARE,
            ),
        ),
        data=seconds,
    )


def _step(one: Run) -> float:
    return one.median_of("step/seconds", phase=PHASE, skip=WARM_AFTER)


def _share(one: Run) -> float:
    return one.median_of("step/controller_share", phase=PHASE, skip=WARM_AFTER)
