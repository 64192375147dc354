"""By the algorithms of scorers that no preset uses, right is told from wrong: from labels, and not
from labels of other rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.shuffles import Changes, shuffled
from tests.engine.slow.proofs import COIN, LEAST_RISE, MOST_BY_CHANCE, SEEDS, seeded

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PHASE, READING = "judge-pre-training", "fresh.class_recall"
"""Where Cooper's reward model learns what a rule says, and the lower of its two recalls of it."""
LEARNS: Mapping[str, Mapping[str, Any]] = {
    "regression": {},
    "label_ce": {"labels": ["wrong", "right"], "values": {"wrong": 0.0, "right": 1.0}},
}
"""By algorithm: how the model is read."""
JUDGE_ALONE: Changes = (
    {"op": "remove_edge", "path": "edges", "value": "right_or_corrupted.pairs -> judge.pairs"},
    {"op": "set", "path": "schedule.phases.2.learn", "value": ["policy.rewards"]},
    {"op": "set", "path": "schedule.phases.2.steps", "value": 1},
)
OF_OTHER_ROWS = shuffled(actor="policy", reward="rule", readers=("judge.labels",))


def learned_by(name: str) -> Changes:
    return (
        {"op": "set", "path": "nodes.judge.algorithm", "value": {"labels": {"name": name}}},
        {"op": "set", "path": "nodes.judge.read", "value": LEARNS[name]},
    )


def recall(train: "Train", *changes: Mapping[str, Any]) -> float:
    run = train("cooper", [seeded(SEEDS[0]), *JUDGE_ALONE, *changes])
    return run.curve(READING, phase=PHASE)[-1].value


@pytest.mark.parametrize("name", LEARNS)
def test_a_scorer_learns_by_its_labels(train: "Train", name: str) -> None:
    assert recall(train, *learned_by(name)) >= COIN + LEAST_RISE


@pytest.mark.parametrize("name", LEARNS)
def test_a_scorer_learns_nothing_from_labels_of_other_rows(train: "Train", name: str) -> None:
    assert recall(train, *learned_by(name), *OF_OTHER_ROWS) < COIN + MOST_BY_CHANCE
