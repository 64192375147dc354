"""SPIN on three seeds: the loss of each iteration begins at ln 2, and accuracy ends higher; beside
a control that spends the same updates on plain imitation of the same gold answers.

The control says whose rise it is: its learner starts from the same weights, takes as many updates
of as many rows at the same rate, and meets no opponent. It ends as high or higher: gold answers
alone carry the rise here, and nothing is claimed for self-play but that its loop does what the
paper says (pairs, moving reference, kept iterations).
"""

import math

from tests.bench.results import Goal, Result, Table
from tests.bench.runs import Run, train

LOOP = "spin"
SEEDS = (1, 2, 3)
TOLERANCE = 1e-4

UPDATES = 32 + 3 * 64
"""Of self-play: one iteration's pairs in the first, two iterations' from then on."""

SELF_PLAY_EDGES = (
    "gold.rows -> opponent.prompts",
    "gold.rows -> real_or_own.chosen",
    "opponent.rollouts -> real_or_own.rejected",
    "real_or_own.pairs -> iterations.pairs",
    "iterations.pairs -> policy.pairs",
    "iterations.pairs -> previous.pairs",
    "previous.log_probs -> policy.reference",
)
SELF_PLAY_NODES = ("previous", "iterations", "real_or_own", "opponent")

IMITATION = (
    *({"op": "remove_edge", "path": "edges", "value": edge} for edge in SELF_PLAY_EDGES),
    *({"op": "remove", "path": f"nodes.{node}"} for node in SELF_PLAY_NODES),
    {"op": "remove", "path": "nodes.policy.algorithm.pairs"},
    {
        "op": "set",
        "path": "schedule.phases.1",
        "value": {
            "name": "imitate",
            "steps": UPDATES,
            "learn": ["policy.demonstrations"],
            "do": {"reset_optimizer": "policy"},
        },
    },
)
"""As many updates on as many gold answers, at the same rate, by imitation."""


def run() -> Result:
    runs = {seed: train(LOOP, settings={"run.seed": seed}) for seed in SEEDS}
    controls = {seed: train(LOOP, settings={"run.seed": seed}, changes=IMITATION) for seed in SEEDS}
    firsts = {seed: first_losses(found) for seed, found in runs.items()}
    farthest = max(abs(loss - math.log(2)) for losses in firsts.values() for loss in losses)
    rises = [_end(found) - _start(found) for found in runs.values()]
    return Result(
        title="SPIN (spin)",
        tables=(
            Table(
                title="Greedy accuracy on 256 held-out sums.",
                head=("seed", "start of self-play", *_iterations(runs), "seconds", "CPU seconds"),
                rows=tuple(
                    (
                        str(seed),
                        f"{_start(found):.3f}",
                        *(f"{value:.3f}" for value in _ends(found)),
                        f"{found.seconds:.0f}",
                        f"{found.processor_seconds:.0f}",
                    )
                    for seed, found in runs.items()
                ),
            ),
            Table(
                title=(
                    "SFT instead of self-play from the same start, on the same rows with the same "
                    "learning rate. It ends as high, so the rise is not due to self-play."
                ),
                head=("seed", "start", "end of self-play", "end of SFT", "difference"),
                rows=tuple(
                    (
                        str(seed),
                        f"{_start(found):.3f}",
                        f"{_end(found):.3f}",
                        f"{_end(controls[seed]):.3f}",
                        f"{_end(found) - _end(controls[seed]):+.3f}",
                    )
                    for seed, found in runs.items()
                ),
            ),
            Table(
                title="Loss of an iteration's first and last update.",
                head=("seed", *_iterations(runs)),
                rows=tuple(
                    (
                        str(seed),
                        *(f"{losses[0]:.4f} to {losses[-1]:.4f}" for losses in _losses(found)),
                    )
                    for seed, found in runs.items()
                ),
            ),
        ),
        goals=(
            Goal(
                wanted=f"first loss of each iteration ln 2 within {TOLERANCE:g}",
                found=f"{farthest:.1e} away at most",
                is_reached=farthest <= TOLERANCE,
            ),
            Goal(
                wanted="ends above its start",
                found=", ".join(f"{rise:+.3f}" for rise in rises),
                is_reached=min(rises) > 0,
            ),
        ),
        data={
            seed: [(point.step, point.value) for point in found.curve("probe", "accuracy")]
            for seed, found in runs.items()
        },
    )


def first_losses(found: Run) -> list[float]:
    return [losses[0] for losses in _losses(found)]


def _losses(found: Run) -> list[list[float]]:
    """Of each iteration in turn."""
    points = found.curve("policy", "loss", phase="train")
    numbers = dict.fromkeys(point.number for point in points)
    return [[p.value for p in points if p.number == number] for number in numbers]


def _start(found: Run) -> float:
    return found.at_start_of("collect", "probe", "accuracy")


def _end(found: Run) -> float:
    return found.last("probe", "accuracy")


def _ends(found: Run) -> list[float]:
    """The last reading of what each iteration left, before the next one changes it."""
    points = found.curve("probe", "accuracy")
    begun = list(dict.fromkeys(p.number for p in found.curve("policy", "loss", phase="train")))
    spans = zip(begun, [*begun[1:], points[-1].number + 1], strict=True)
    return [
        [point.value for point in points if first <= point.number < following][-1]
        for first, following in spans
    ]


def _iterations(runs: dict[int, Run]) -> list[str]:
    count = max(len(_losses(found)) for found in runs.values())
    return [f"iteration {number + 1}" for number in range(count)]
