"""A solver and its judge that learn from each other both rise, and neither by what chance says."""

from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from tests.engine.shuffles import Changes, scores_of_other_rows, shuffled
from tests.experiments.table import LEAST_RISE, MOST_BY_CHANCE, SEEDS, seeded

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train
    from tests.engine.slow.curves import Trained

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

PAID, TOGETHER = "verifier-warm-up", "generate"
"""Where the judge begins to be paid, at a reading of the exam, and where the solver does."""
ACCURACY = "probe.accuracy"
"""Of the solver, greedy."""
RECALL, STEPS = "exam.class_recall", "exam_steps.step_f1"
"""Of the judge, on the solutions that the first solver wrote: the lower of its recalls of right and
of wrong answers, and how well it finds wrong steps."""
MOVING = ("verdicts.class_recall.right", "verdicts.class_recall.wrong")
"""Of the judge, on what the solver writes by now."""


def of_other_rows(source: str, edge: str, weight: float) -> Changes:
    """In place of an edge to the solver's rewards, what a node says of other rows."""
    luck = f"luck_of_{source}"
    added = (
        f"generator.rollouts -> {luck}.rollouts",
        {"from": f"{source}.scores", "to": f"{luck}.scores", "aggregate": "mean"},
        {"from": f"{luck}.scores", "to": "generator.rewards", "id": edge, "weight": weight},
    )
    return (
        {"op": "set", "path": f"nodes.{luck}", "value": scores_of_other_rows(source)},
        {"op": "remove_edge", "path": "edges", "value": edge},
        *({"op": "add_edge", "path": "edges", "value": one} for one in added),
    )


SOLVER_PAID_BY_LUCK = (
    *of_other_rows("verifier", "steps", 0.1),
    *of_other_rows("exact", "outcome", 0.9),
)
JUDGE_PAID_BY_LUCK = shuffled(actor="verifier", reward="agrees")


def solver_rise(run: "Trained") -> float:
    return run.last(ACCURACY) - run.before(TOGETHER, ACCURACY)


def judge_rise(run: "Trained", reading: str) -> float:
    """From the end of its imitation to the mean of the last three readings."""
    start, end = run.curve(reading, phase=PAID)[0], run.curve(reading)[-3:]
    return fmean(one.value for one in end) - start.value


def test_solver_and_judge_both_rise_over_three_seeds(train: "Train") -> None:
    runs = [train("tango", [seeded(seed)]) for seed in SEEDS]

    assert fmean(solver_rise(run) for run in runs) >= LEAST_RISE
    assert fmean(judge_rise(run, RECALL) for run in runs) >= LEAST_RISE
    assert fmean(judge_rise(run, STEPS) for run in runs) >= LEAST_RISE
    for run in runs:
        assert all(one.value > 0 for name in MOVING for one in run.curve(name))


def test_a_solver_does_not_rise_by_what_is_said_of_other_rows(train: "Train") -> None:
    run = train("tango", [seeded(SEEDS[0]), *SOLVER_PAID_BY_LUCK])

    assert solver_rise(run) < MOST_BY_CHANCE


def test_a_judge_does_not_rise_where_it_is_paid_for_other_rows(train: "Train") -> None:
    run = train("tango", [seeded(SEEDS[0]), *JUDGE_PAID_BY_LUCK])

    assert judge_rise(run, RECALL) < MOST_BY_CHANCE
    assert judge_rise(run, STEPS) < MOST_BY_CHANCE
