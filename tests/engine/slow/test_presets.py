"""Presets of systems rise by what should teach them, and by nothing else."""

from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from tests.engine.slow.proofs import (
    LEAST_RISE,
    MOST_BY_CHANCE,
    PROOFS,
    SEEDS,
    Arm,
    Proof,
    seeded,
)

if TYPE_CHECKING:
    from tests.engine.slow.conftest import Train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SEED = seeded(1)
ACCURACY = "probe.accuracy"
each_preset = pytest.mark.parametrize("proof", PROOFS, ids=[proof.preset for proof in PROOFS])


def rise(train: "Train", proof: Proof, arm: Arm, seed: int) -> float:
    """How far the reading ends above its start."""
    if proof.earlier is not None:
        train(proof.earlier, [seeded(seed)])
    changes, is_control = proof.changes(arm, seed), arm == "shuffled"
    start, end = proof.span(train(proof.preset, changes, may_run_dry=is_control))
    return end - start


@each_preset
def test_a_preset_rises_over_three_seeds(train: "Train", proof: Proof) -> None:
    assert fmean(rise(train, proof, "taught", seed) for seed in SEEDS) >= LEAST_RISE


@each_preset
def test_a_preset_does_not_rise_by_what_chance_says(train: "Train", proof: Proof) -> None:
    assert rise(train, proof, "shuffled", SEEDS[0]) < MOST_BY_CHANCE


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
