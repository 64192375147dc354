"""MAGRPO on three seeds: the joint reward rises, and ends above the arm that freezes one agent."""

from tests.bench.results import Goal, Result, Table
from tests.bench.runs import Run, train

LOOP = "two-halves"
SEEDS = (1, 2, 3)
FROZEN = (
    {"op": "remove_edge", "path": "edges", "value": "joint.scores -> units.rewards"},
    {"op": "set", "path": "schedule.phases.1.learn", "value": ["tens.rewards"]},
)
"""The same loop, in which `units` stays as the warm-up left it."""


def run() -> Result:
    both = {seed: train(LOOP, settings={"run.seed": seed}) for seed in SEEDS}
    frozen = {seed: train(LOOP, settings={"run.seed": seed}, changes=FROZEN) for seed in SEEDS}
    rises = [_end(found) - _start(found) for found in both.values()]
    leads = [_end(both[seed]) - _end(frozen[seed]) for seed in SEEDS]
    return Result(
        title="Two learners (two-halves)",
        tables=(
            Table(
                title="Greedy joint score and accuracy on 128 held-out sums.",
                head=(
                    "seed",
                    "arm",
                    "score at the start",
                    "score at the end",
                    "accuracy",
                    "seconds",
                    "CPU seconds",
                ),
                rows=tuple(
                    (
                        str(seed),
                        arm,
                        f"{_start(found):.3f}",
                        f"{_end(found):.3f}",
                        f"{found.last('probe', 'accuracy'):.3f}",
                        f"{found.seconds:.0f}",
                        f"{found.processor_seconds:.0f}",
                    )
                    for seed in SEEDS
                    for arm, found in (("both learn", both[seed]), ("units frozen", frozen[seed]))
                ),
            ),
        ),
        goals=(
            _above_zero("the joint score rises", rises),
            _above_zero("it ends above the arm with one agent frozen", leads),
        ),
        data={
            f"{seed}, {arm}": [(p.step, p.value) for p in found.curve("probe", "score")]
            for arm, runs in (("both", both), ("frozen", frozen))
            for seed, found in runs.items()
        },
    )


def _start(found: Run) -> float:
    return found.at_start_of("together", "probe", "score")


def _end(found: Run) -> float:
    return found.last("probe", "score")


def _above_zero(wanted: str, differences: list[float]) -> Goal:
    return Goal(
        wanted=wanted,
        found=", ".join(f"{difference:+.3f}" for difference in differences),
        is_reached=min(differences) > 0,
    )
