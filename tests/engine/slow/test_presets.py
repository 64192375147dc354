"""Presets of systems rise by what should teach them, and by nothing else."""

from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from tests.experiments.table import (
    EXPERIMENTS,
    FULL,
    MOST_BY_CHANCE,
    SEEDS,
    SHUFFLED,
    Experiment,
    seeded,
)

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SEED = seeded(1)
ACCURACY = "probe.accuracy"
each_preset = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.preset)


def rise(train: "Train", experiment: Experiment, arm: str, seed: int) -> float:
    """How far the reading ends above its start."""
    if experiment.earlier is not None:
        train(experiment.earlier, [seeded(seed)])
    changes, is_control = experiment.changes(arm, seed), arm != FULL
    start, end = experiment.span(train(experiment.preset, changes, may_run_dry=is_control), arm)
    return end - start


@each_preset
def test_a_preset_rises_over_three_seeds(train: "Train", experiment: Experiment) -> None:
    assert fmean(rise(train, experiment, FULL, seed) for seed in SEEDS) >= experiment.least_rise


@pytest.mark.parametrize(
    "experiment", [one for one in EXPERIMENTS if SHUFFLED in one.arms], ids=lambda one: one.preset
)
def test_a_preset_does_not_rise_by_what_chance_says(train: "Train", experiment: Experiment) -> None:
    assert rise(train, experiment, SHUFFLED, SEEDS[0]) < MOST_BY_CHANCE


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
