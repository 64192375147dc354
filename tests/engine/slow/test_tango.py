"""A solver and its judge that learn from each other both rise, and neither by what chance says."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.slow.test_learning import SEED, SHUFFLED, shuffled

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train, Trained

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

Changes = Sequence[Mapping[str, Any]]

SEEDS = (1, 2, 3)
LEAST_RISE = 0.2
IMITATED, TOGETHER = "first-verdicts", "generate"
"""What ends where the judge begins to be paid, and what begins where the solver is."""
ACCURACY, RECALL, STEP_F1 = "probe.accuracy", "verdicts.class_recall", "found_steps.step_f1"


def of_another_row(source: str, edge: str, weight: float) -> Changes:
    """In place of an edge to the solver's rewards, what a node says of another row."""
    luck = f"luck_of_{source}"
    reward = {"type": "python", "code": SHUFFLED.format(reward=source)}
    added = (
        f"generator.rollouts -> {luck}.rollouts",
        {"from": f"{source}.scores", "to": f"{luck}.scores", "aggregate": "mean"},
        {"from": f"{luck}.scores", "to": "generator.rewards", "id": edge, "weight": weight},
    )
    return (
        {"op": "set", "path": f"nodes.{luck}", "value": {"kind": "reward", "source": reward}},
        {"op": "remove_edge", "path": "edges", "value": edge},
        *({"op": "add_edge", "path": "edges", "value": one} for one in added),
    )


VERDICTS_BY_LUCK = of_another_row("verifier", "steps", 0.1)
OUTCOMES_BY_LUCK = of_another_row("exact", "outcome", 0.9)
JUDGE_PAID_BY_LUCK = shuffled(actor="verifier", reward="agrees")


def solver_rise(run: "Trained") -> float:
    return run.last(ACCURACY) - run.before(TOGETHER, ACCURACY)


def judge_rise(run: "Trained", metric: str) -> float:
    """Between means of three readings of a hundred texts each: before it is paid, at the end."""
    before, after = run.curve(metric, phase=IMITATED), run.curve(metric)
    return fmean(r.value for r in after[-3:]) - fmean(r.value for r in before[-3:])


def test_solver_and_judge_both_rise_over_three_seeds(train: "Train") -> None:
    runs = [train("tango", [{"op": "set", "path": "run.seed", "value": seed}]) for seed in SEEDS]

    assert fmean(solver_rise(run) for run in runs) >= LEAST_RISE
    assert fmean(judge_rise(run, RECALL) for run in runs) >= LEAST_RISE


def test_a_solver_does_not_rise_by_outcomes_and_verdicts_of_other_rows(train: "Train") -> None:
    run = train("tango", [SEED, *OUTCOMES_BY_LUCK, *VERDICTS_BY_LUCK])

    assert solver_rise(run) < LEAST_RISE / 2


def test_a_judge_does_not_rise_where_it_is_paid_for_other_rows(train: "Train") -> None:
    run = train("tango", [SEED, *JUDGE_PAID_BY_LUCK])

    assert judge_rise(run, RECALL) < LEAST_RISE / 2
