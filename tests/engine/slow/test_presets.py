"""Presets of single algorithms rise by what should teach them, and by nothing else."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.slow.test_learning import SEED, SHUFFLE, shuffled

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SEEDS = (1, 2, 3)
LEAST_RISE = 0.2
PAIR_ACCURACY, ACCURACY = "fit.pair_accuracy", "probe.accuracy"

SWAPPED = """\
import random


def write(chosen, rejected, **columns):
    sides = [chosen, rejected]
    random.shuffle(sides)
    return {"chosen": sides[0], "rejected": sides[1]}
"""
SWAP: tuple[Mapping[str, Any], ...] = (
    {"op": "set", "path": "nodes.luck", "value": {"kind": "template", "code": SWAPPED}},
    {
        "op": "set",
        "path": "nodes.pairs",
        "value": {
            "kind": "pairs",
            "method": "direct",
            "columns": {"chosen": "chosen", "rejected": "rejected"},
        },
    },
    {"op": "remove_edge", "path": "edges", "value": "preferences.pairs -> rm.pairs"},
    {"op": "add_edge", "path": "edges", "value": "preferences.rows -> luck.rows"},
    {"op": "add_edge", "path": "edges", "value": "luck.rows -> pairs.chosen"},
    {"op": "add_edge", "path": "edges", "value": "luck.rows -> pairs.rejected"},
    {"op": "add_edge", "path": "edges", "value": "pairs.pairs -> rm.pairs"},
)
"""Between the pairs and the reward model, a coin that says which side was preferred."""

GRADED_BY_LUCK: tuple[Mapping[str, Any], ...] = (
    SHUFFLE[0],
    {"op": "remove_edge", "path": "edges", "value": "exact.scores -> band.scores"},
    {"op": "add_edge", "path": "edges", "value": "policy.rollouts -> luck.rollouts"},
    {"op": "add_edge", "path": "edges", "value": "exact.scores -> luck.scores"},
    {"op": "add_edge", "path": "edges", "value": "luck.scores -> band.scores"},
)
"""What the band keeps, the outcome, and the labels of the process reward model: of other rows."""

CASES = {
    "dapo": ("rl", ACCURACY, None),
    "omegaprm": ("train", "fit.step_f1", None),
    "prime": ("rl", ACCURACY, GRADED_BY_LUCK),
    "reinforce-pp": ("rl", ACCURACY, SHUFFLE),
    "remax": ("rl", ACCURACY, SHUFFLE),
    "retool": ("critic-warm-up", ACCURACY, shuffled(actor="policy", reward="boxed")),
    "reward-model": ("pairs", PAIR_ACCURACY, SWAP),
    "reward-model-sums": ("pairs", PAIR_ACCURACY, None),
    "search-r1": ("rl", ACCURACY, shuffled(actor="policy")),
    "vapo": ("rl", ACCURACY, None),
}
"""By preset: the phase whose rise is shown, its reading, and what takes its teaching away. DAPO
filters by its score as well, VAPO imitates its own right answers: a shuffled reward is not all that
taught them."""


def rise(train: "Train", name: str, seed: int, changes: Sequence[Mapping[str, Any]] = ()) -> float:
    """How far a reading is above that before its phase; pairs begin at a coin's one half."""
    phase, metric, _ = CASES[name]
    run = train(name, [{"op": "set", "path": "run.seed", "value": seed}, *changes])
    start = 0.5 if metric == PAIR_ACCURACY else run.before(phase, metric)
    return run.last(metric) - start


@pytest.mark.parametrize("name", CASES)
def test_a_preset_rises_over_three_seeds(train: "Train", name: str) -> None:
    assert fmean(rise(train, name, seed) for seed in SEEDS) >= LEAST_RISE


@pytest.mark.parametrize("name", [name for name, (*_, control) in CASES.items() if control])
def test_a_preset_does_not_rise_by_what_chance_says(train: "Train", name: str) -> None:
    control = CASES[name][2]
    assert control is not None

    assert rise(train, name, 1, control) < LEAST_RISE / 2


SEARCHES = "index.tool/calls"


def test_a_policy_learns_to_search_and_is_right_by_it(train: "Train") -> None:
    run = train("search-r1", [SEED])

    searches = [reading.value for reading in run.curve(SEARCHES, phase="rl")]
    assert fmean(searches[-5:]) > fmean(searches[:5]) + 0.3
    assert run.last(ACCURACY) > 0.5


@pytest.mark.parametrize(("name", "tool"), [("search-r1", "index"), ("retool", "calculator")])
def test_a_policy_without_its_tool_fails_what_it_learns_with_it(
    train: "Train", name: str, tool: str
) -> None:
    edge = f"{tool}.tool -> policy.tools"

    run = train(name, [SEED, {"op": "remove_edge", "path": "edges", "value": edge}])

    assert run.last(ACCURACY) < 0.1


def test_ppo_learns_sums_by_a_learned_reward_alone(train: "Train") -> None:
    train("reward-model-sums", [SEED])
    changes = shuffled(actor="policy", reward="rm")

    run, control = (train("ppo-learned-reward", [SEED, *more]) for more in ((), changes))

    start = run.before("ppo", ACCURACY)
    assert run.last(ACCURACY) >= start + LEAST_RISE
    assert control.last(ACCURACY) < start + LEAST_RISE / 2


VOTES_BY_LUCK: tuple[Mapping[str, Any], ...] = (
    shuffled(actor="policy", reward="majority")[0],
    {"op": "remove_edge", "path": "edges", "value": "majority.scores -> half.scores"},
    {"op": "add_edge", "path": "edges", "value": "policy.rollouts -> luck.rollouts"},
    {"op": "add_edge", "path": "edges", "value": "majority.scores -> luck.scores"},
    {"op": "add_edge", "path": "edges", "value": "luck.scores -> half.scores"},
)


def test_samples_come_nearer_to_the_answers_by_votes_alone(train: "Train") -> None:
    """How far is bounded by the majority of the start: less than the 0.2 of other presets."""
    run, control = (train("ttrl", [SEED, *more]) for more in ((), VOTES_BY_LUCK))

    readings = run.curve("sampled.accuracy", phase="test-time")
    start, end = readings[0].value, readings[-1].value
    assert end > start + 0.05
    assert control.last("sampled.accuracy") < start + 0.05
