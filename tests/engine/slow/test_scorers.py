"""By the algorithms of scorers that no preset uses, right is told from wrong: from labels, and not
from labels of other rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.shuffles import Changes, shuffled
from tests.experiments.table import COIN, LEAST_RISE, MOST_BY_CHANCE, SEEDS, seeded

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

READING = "fresh.class_recall"
"""How well Cooper's reward model says what a rule says of answers to held-out problems, once it has
learned that: the lower of its two recalls."""
LEARNS: Mapping[str, Mapping[str, Any]] = {
    "regression": {},
    "label_ce": {"labels": ["right", "wrong"], "values": {"right": 1.0, "wrong": 0.0}},
}
"""By algorithm: how the model is read."""
EXAM: Mapping[str, Any] = {
    "kind": "evaluate",
    "instead_of": "problems",
    "every": 100,
    "right_at": COIN,
    "metrics": ["class_recall"],
}
JUDGE_ALONE: Changes = (
    {"op": "set", "path": "nodes.fresh", "value": EXAM},
    {"op": "add_edge", "path": "edges", "value": "held_out.rows -> fresh.rows"},
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
    return train("cooper", [seeded(SEEDS[0]), *JUDGE_ALONE, *changes]).last(READING)


@pytest.mark.parametrize("name", LEARNS)
def test_a_scorer_learns_by_its_labels(train: "Train", name: str) -> None:
    assert recall(train, *learned_by(name)) >= COIN + LEAST_RISE


@pytest.mark.parametrize("name", LEARNS)
def test_a_scorer_learns_nothing_from_labels_of_other_rows(train: "Train", name: str) -> None:
    assert recall(train, *learned_by(name), *OF_OTHER_ROWS) < COIN + MOST_BY_CHANCE
