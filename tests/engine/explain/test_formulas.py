"""Formulas of algorithms: made from the settings, and nothing in them that is off."""

import itertools
from typing import Any, get_args

import pytest

from coloop.explain.algorithm import algorithm_names, explain_algorithm
from coloop.explain.maths import MathElement
from coloop.spec.algorithm import Advantage, Aggregation, PolicyLoss, PreferenceLoss
from coloop.spec.algorithms.registry import DISTILLATION_BASE, PREFERENCE_BASE, REWARDS_BASE
from coloop.spec.metrics import METRICS


def formulas(name: str, **settings: Any) -> dict[str, str]:
    found = explain_algorithm({"name": name, **settings}, max_new_tokens=128)
    return {one.name: one.text for one in found.formulas}


def leaves(element: MathElement) -> list[str]:
    return [element.text] if element.text else [t for c in element.children for t in leaves(c)]


def test_a_grpo_node_shows_its_own_numbers() -> None:
    found = formulas("grpo", clip_high=0.28, kl={"coefficient": 0.001, "estimator": "k3"})

    assert found["Loss of a token"] == "ℓ_t = − min(ρ_t A_t, clip(ρ_t, 1 − 0.2, 1 + 0.28) A_t)"
    assert found["KL of a token"] == "k_t = e^{−x} + x − 1 with x = log π_t / π_t^ref"
    assert found["Strength of the KL"] == "β = 0.001"
    assert found["Loss"] == "L = 1 / (all tokens) ∑_i ∑_t (w_t ℓ_t + β k_t)"


def test_terms_that_are_off_are_absent() -> None:
    plain = formulas("grpo", correction={"method": "none"})

    assert "KL of a token" not in plain
    assert "Correction" not in plain
    assert "Whitening" not in plain
    assert plain["Loss"] == "L = 1 / (all tokens) ∑_i ∑_t ℓ_t"


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("grpo", {"clip_low": 0.1}),
    ("grpo", {"clip_high": 0.3}),
    ("grpo", {"dual_clip": 3.0}),
    ("grpo", {"aggregation": "sequence_mean"}),
    ("grpo", {"aggregation": "constant"}),
    ("dr_grpo", {"divisor": 77}),
    ("grpo", {"advantage": "leave_one_out"}),
    ("grpo", {"deviation": "batch"}),
    ("grpo", {"epsilon": 0.5}),
    ("grpo", {"whiten": True}),
    ("grpo", {"reward_clip": 5.0}),
    ("grpo", {"entropy": 0.01}),
    ("grpo", {"gamma": 0.9}),
    ("grpo", {"weight": 0.5}),
    ("grpo", {"kl": {"coefficient": 0.1}}),
    ("grpo", {"kl": {"coefficient": 0.001, "into": "reward"}}),
    ("grpo", {"kl": {"coefficient": 0.001, "by_ratio": True}}),
    ("grpo", {"kl": {"coefficient": 0.001, "target": 0.1}}),
    ("grpo", {"correction": {"method": "icepop"}}),
    ("grpo", {"correction": {"max": 7.0}}),
    ("grpo", {"off_policy": {"shaping": 0.3}}),
    ("gspo", {"reduce": "sum"}),
    ("cispo", {"ratio_max": 3.0}),
    ("trl-sapo", {"tau_positive": 2.0}),
    ("ppo", {"gae_lambda": 0.95}),
    ("ppo", {"gamma": 0.99}),
    ("vapo", {"length_alpha": 0.2}),
    ("dpo", {"beta": 0.3}),
    ("dpo", {"label_smoothing": 0.1}),
    ("dpo", {"reduce": "mean"}),
    ("dpo", {"sft": 0.2}),
    ("simpo", {"gamma": 1.5}),
    ("bradley_terry", {"center": 0.01}),
    ("bradley_terry", {"margin": "gap"}),
    ("bradley_terry", {"label_smoothing": 0.1}),
    ("label_ce", {"label_smoothing": 0.1}),
    ("implicit_prm", {"beta": 0.5}),
    ("value", {"clip": 0.2}),
    ("value", {"clip": None}),
]


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=lambda part: str(part))
def test_a_setting_changes_the_formula(name: str, change: dict[str, Any]) -> None:
    assert formulas(name, **change) != formulas(name)


@pytest.mark.parametrize("name", algorithm_names())
def test_every_algorithm_is_explained(name: str) -> None:
    found = explain_algorithm({"name": name})

    assert found.formulas[-1].name == "Loss"
    assert found.source.startswith("https://")
    assert len(found.curves) > 2
    for curve in found.curves:
        assert curve.metric in METRICS
        assert curve.expect
        assert len(curve.otherwise) > 20


@pytest.mark.sample(24)
@pytest.mark.parametrize(
    ("advantage", "loss"), [*itertools.product(get_args(Advantage), get_args(PolicyLoss))]
)
def test_every_advantage_goes_with_every_loss(advantage: str, loss: str) -> None:
    means = get_args(Aggregation)[1:] if loss == "sequence_clipped" else get_args(Aggregation)
    told = {str(formulas("grpo", advantage=advantage, loss=loss, aggregation=a)) for a in means}

    assert len(told) == len(means)


@pytest.mark.parametrize("loss", get_args(PreferenceLoss))
def test_every_preference_loss_has_a_formula_of_its_own(loss: str) -> None:
    others = [formulas("dpo", loss=one) for one in get_args(PreferenceLoss) if one != loss]

    assert formulas("dpo", loss=loss) not in others


def test_page_and_terminal_show_the_same_numbers() -> None:
    found = explain_algorithm({"name": "gspo"})
    [loss] = [one for one in found.formulas if one.name == "Loss of a token"]

    assert loss.text.endswith("clip(s, 1 − 3e-4, 1 + 4e-4) A_t)")
    assert {"3", "4", "10", "clip", "min"} <= set(leaves(loss.maths))


def test_settings_of_a_formula_are_fields_of_its_algorithm() -> None:
    known = REWARDS_BASE.keys() | PREFERENCE_BASE.keys() | DISTILLATION_BASE.keys()
    known |= {"weight", "margin", "soft", "center", "mask", "clip"}
    named = {
        field.partition(".")[0]
        for name in algorithm_names()
        for one in explain_algorithm({"name": name}).formulas
        for field in one.settings
    }

    assert named <= known
