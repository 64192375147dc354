"""Loops learn what they are there to learn, and only from what should teach them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.numerics import near
from tests.engine.shuffles import shuffled
from tests.experiments.table import seeded

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEED = seeded(1)
SHUFFLE = shuffled()

UNITS_FROZEN: tuple[Mapping[str, Any], ...] = (
    {"op": "remove_edge", "path": "edges", "value": "joint.scores -> units.rewards"},
    {"op": "set", "path": "schedule.phases.1.learn", "value": ["tens.rewards"]},
)


def test_the_quick_start_rises_by_reinforcement_alone(train: "Train") -> None:
    run = train("grpo-arithmetic", [SEED])

    start, end = run.before("rl", "probe.accuracy"), run.last("probe.accuracy")
    assert start < 0.5
    assert end >= start + 0.3
    assert end > 0.75


def test_the_quick_start_does_not_rise_by_shuffled_rewards(train: "Train") -> None:
    run = train("grpo-arithmetic", [SEED, *SHUFFLE])

    assert run.last("probe.accuracy") < run.before("rl", "probe.accuracy") + 0.1


def test_self_play_begins_each_iteration_at_ln_2_and_lifts_its_start(train: "Train") -> None:
    run = train("spin", [SEED])

    losses = run.curve("policy.loss", phase="train")
    rounds = dict.fromkeys(reading.round for reading in losses)
    firsts = [next(r.value for r in losses if r.round == number) for number in rounds]
    assert len(firsts) == 4
    assert firsts == near([math.log(2)] * 4, terms=3000)
    assert run.last("probe.accuracy") > run.before("collect", "probe.accuracy")


def test_two_learners_rise_above_one_whose_partner_is_frozen(train: "Train") -> None:
    both, one = train("two-halves", [SEED]), train("two-halves", [SEED, *UNITS_FROZEN])

    assert both.before("together", "probe.score") == one.before("together", "probe.score")
    assert both.last("probe.score") > both.before("together", "probe.score")
    assert both.last("probe.score") > one.last("probe.score")
