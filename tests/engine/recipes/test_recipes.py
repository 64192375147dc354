"""Recipes: the registry, their losses on literal numbers, and what they refuse."""

import math
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, near
from tests.engine.recipes.literals import literal, literals

from coloop.algorithms.batch import Batch, Pair, Sequence, collate, collate_pairs
from coloop.algorithms.recipes import RECIPES, recipe_of
from coloop.algorithms.recipes.kl_control import KlController
from coloop.algorithms.recipes.protocol import ModelOutputs
from coloop.spec.algorithm import (
    BradleyTerry,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)
from coloop.spec.algorithms.registry import ALGORITHMS, RUNNABLE_ALGORITHMS

OLD = [[-1.0, -2.0, -0.5], [-0.7, -1.5, -3.0, -0.2]]
NEW = [[-0.6, -2.5, -0.5], [-0.2, -1.4, -4.5, -0.3]]
ROLLOUT = [[-1.1, -1.4, -0.5], [-1.4, -1.5, -1.0, -0.2]]


def rewards(name: str, **fields: Any) -> Any:
    entry = RewardsAlgorithm.model_validate({"name": name, **fields})
    return resolve_rewards_algorithm(entry, max_new_tokens=6)


def pairs(name: str, **fields: Any) -> Any:
    return resolve_pairs_algorithm(PreferenceAlgorithm.model_validate({"name": name, **fields}))


def golden_batch(*, with_rollout: bool = False) -> Batch:
    """Two rows of three and four trained tokens behind a prompt of one."""
    return collate(
        [
            Sequence(
                id=str(row),
                token_ids=[0] * (1 + len(old)),
                loss_mask=[False, *[True] * len(old)],
                log_probs_old=[0.0, *old],
                log_probs_rollout=[0.0, *ROLLOUT[row]] if with_rollout else None,
                log_probs_reference=[0.0, *old],
                advantages=advantage,
            )
            for row, (old, advantage) in enumerate(zip(OLD, (1.0, -0.5), strict=True))
        ]
    )


def policy() -> ModelOutputs:
    rows = [[0.0, *NEW[0], 0.0], [0.0, *NEW[1]]]
    return ModelOutputs(log_probs=torch.tensor(rows), entropy=torch.ones(2, 5))


def loss_of(batch: Batch, settings: Any) -> float:
    recipe = recipe_of(settings)
    return float(recipe.loss(batch, policy(), settings).total) / recipe.count(batch, settings)


GOLDEN: dict[str, tuple[str, dict[str, Any], float]] = {
    "grpo": ("grpo", {}, -0.082452),
    "verl-grpo": ("verl-grpo", {}, -0.082452),
    "rloo": ("rloo", {}, -0.082452),
    "by sequences": ("grpo", {"aggregation": "sequence_mean"}, -0.189085),
    "by sums": ("grpo", {"aggregation": "sequence_sum"}, -0.288583),
    "dr_grpo, 6 tokens": ("dr_grpo", {}, -0.048097),
    "trl-dr_grpo, 6 tokens": ("trl-dr_grpo", {"correction": None}, -0.048097),
    "verl, padded length 4": ("verl-dr_grpo", {"divisor": 4}, -0.072146),
    "dapo": ("dapo", {}, -0.093881),
    # whole texts: s = e^-0.1 with A = 1, and e^-1 with A = -.5, which is clipped at .8
    "trl-rloo": ("trl-rloo", {"kl": None}, (-0.904837 + 0.4) / 2),
    "gspo": ("gspo", {"clip_low": 0.2, "clip_high": 0.2}, -0.283608),
    "verl-gspo": ("verl-gspo", {}, -0.185950),
    "openrlhf-gspo": ("openrlhf-gspo", {"kl": None}, -0.283608),
    "verl-cispo": ("verl-cispo", {}, 0.055808),
    "cispo": ("cispo", {}, 0.190737),
    "trl-sapo": ("trl-sapo", {}, -0.545781),
    "gmpo": ("grpo", {"loss": "gmpo", "aggregation": "sequence_mean"}, -0.182948),
    "dppo": ("dppo", {"old_policy": "trainer"}, 0.062867),
    "dppo by kl": (
        "dppo",
        {
            "old_policy": "trainer",
            "divergence": "kl",
            "divergence_low": 0.05,
            "divergence_high": 0.05,
        },
        0.062867,
    ),
    "vespo": ("vespo", {}, 0.479606),
    "luspo": ("luspo", {}, -0.452824),
    "gdpo": ("gdpo", {}, -0.082452),
    "rae": ("rae", {}, -0.082452),
}


@pytest.mark.parametrize("name", GOLDEN)
@literals(GOLDEN, lambda name: GOLDEN[name][0])
def test_recipes_give_the_losses_of_the_frameworks(name: str) -> None:
    algorithm, fields, expected = GOLDEN[name]

    assert loss_of(golden_batch(), rewards(algorithm, **fields)) == near(expected, digits=6)


# a ratio times -A, cut at 1.2 where A > 0 and at .8 where A < 0: e^.4 and e^-1.5 are
_CLIPPED = -(1.2 + math.exp(-0.5) + 1.0) + 0.5 * (math.exp(0.5) + math.exp(0.1) + 0.8)
_CLIPPED += 0.5 * math.exp(-0.1)
# -A log π: .6 + 2.5 + .5 of the first row, less half of .2 + 1.4 + 4.5 + .3
_PLAIN = 3.6 - 0.5 * 6.4
BY_HAND = {
    **dict.fromkeys(("reinforce_pp", "reinforce_pp_baseline", "ppo", "pf_ppo"), _CLIPPED / 7),
    "vapo": (_CLIPPED - 0.08) / 7,  # cut at 1.28
    **dict.fromkeys(("opo", "remax", "reinforce"), _PLAIN / 7),
    # means of whole texts: -.1/3 with A = 1, and -1/4 with A = -.5, where e^-.25 is cut at 1 - 3e-4
    "gspo": (-math.exp(-0.1 / 3) + 0.5 * 0.9997) / 2,
}


@pytest.mark.parametrize("name", BY_HAND)
@literals(BY_HAND)
def test_losses_of_our_own_settings_by_hand(name: str) -> None:
    assert loss_of(golden_batch(), rewards(name)) == near(BY_HAND[name], terms=64)


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ({"method": "token_tis", "min": 0.5, "max": 5.0}, 0.029427),
        ({"method": "icepop", "min": 0.5, "max": 5.0}, 0.000855),
        ({"method": "none"}, -0.082452),
    ],
)
def test_recipes_correct_for_the_engine(correction: dict[str, Any], expected: float) -> None:
    settings = rewards("grpo", correction=correction)

    assert loss_of(golden_batch(with_rollout=True), settings) == near(expected, digits=6)


def test_dual_clip_caps_the_loss_of_a_bad_token() -> None:
    """verl's default, which the others leave out: A < 0 and a ratio above c."""
    settings = rewards("verl-grpo")
    batch = replace(golden_batch(), advantages=-torch.ones(2, 5))
    outputs = ModelOutputs(log_probs=torch.zeros(2, 5), entropy=torch.ones(2, 5))

    dual = recipe_of(settings).loss(batch, outputs, settings).total
    plain = recipe_of(settings).loss(batch, outputs, rewards("grpo")).total

    # ratios e^1 e^2 e^.5 | e^.7 e^1.5 e^3 e^.2; those above 3 count 3
    ratios = [math.exp(x) for x in (1, 2, 0.5, 0.7, 1.5, 3, 0.2)]
    assert float(plain) == near(sum(ratios), terms=64)
    assert float(dual) == near(sum(min(r, 3) for r in ratios), terms=64)


def test_kl_and_entropy_are_part_of_the_loss_with_the_same_weights() -> None:
    kl = {"coefficient": 0.5, "estimator": "k1", "into": "loss"}
    settings = rewards("grpo", kl=kl, entropy=0.1)

    found = loss_of(golden_batch(), settings)

    # mean k1 over 7 tokens: (.4 - .5 + 0 + .5 + .1 - 1.5 - .1)/7 = -1.1/7; entropy 1 everywhere
    assert found == near(-0.082452 + 0.5 * -1.1 / 7 - 0.1, terms=64)


def test_kl_times_the_ratio_on_literal_numbers() -> None:
    """ρ k3 = e^x (e^-x + x - 1) = 1 + (x - 1) e^x, where the reference is the old policy."""
    kl = {"coefficient": 0.5, "estimator": "k3", "by_ratio": True}

    found = loss_of(golden_batch(), rewards("grpo", kl=kl))

    # .104905 + .090204 + 0 + .175639 + .005346 + .442175 + .004679 over 7 tokens
    assert found == near(-0.082452 + 0.5 * 0.822948 / 7, digits=5)


def test_kl_times_the_ratio_of_the_text_where_the_loss_has_that_one() -> None:
    kl = {"coefficient": 0.5, "estimator": "k1", "by_ratio": True}
    settings = rewards("trl-rloo", kl={**kl, "into": "loss"})

    found = loss_of(golden_batch(), settings)

    # mean k1 of a row: -.1/3 and -1/4; times e^-0.1 and e^-1
    expected = (-0.1 / 3 * math.exp(-0.1) - 0.25 * math.exp(-1.0)) / 2
    assert found == near((-0.904837 + 0.4) / 2 + 0.5 * expected, digits=5)


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_kl_times_the_ratio_has_the_gradient_of_the_kl_on_its_own_samples(estimator: str) -> None:
    """At ρ = 1 it is x for k3, and x + 1 for k1, of which the 1 has mean zero."""
    kl = {"coefficient": 1.0, "estimator": estimator, "by_ratio": True}
    settings = rewards("grpo", kl=kl)
    rows = replace(golden_batch(), log_probs_old=None, advantages=torch.zeros(2, 5))
    log_probs = policy().log_probs.requires_grad_()
    reference = golden_batch().log_probs_reference
    assert reference is not None

    outputs = ModelOutputs(log_probs=log_probs, entropy=torch.ones(2, 5))
    recipe_of(settings).loss(rows, outputs, settings).total.backward()

    expected = (log_probs.detach() - reference + (estimator == "k1"))[rows.loss_mask]
    assert log_probs.grad is not None
    assert_near(log_probs.grad[rows.loss_mask], expected, terms=16, scale=4.0)
    assert (log_probs.grad[~rows.loss_mask] == 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_kl_times_the_ratio_equals_the_slow_loop(seed: int) -> None:
    draw = random.Random(seed)
    rows = [[draw.uniform(-4, -0.1) for _ in range(draw.randint(1, 6))] for _ in range(4)]
    new, old, reference = ([[x + draw.gauss(0, 0.5) for x in row] for row in rows] for _ in "nor")
    batch = collate(
        [
            Sequence(
                id=str(row),
                token_ids=[0] * (1 + len(own)),
                loss_mask=[False, *[True] * len(own)],
                log_probs_old=[0.0, *own],
                log_probs_reference=[0.0, *reference[row]],
                advantages=0.0,
            )
            for row, own in enumerate(old)
        ]
    )
    outputs = ModelOutputs(
        log_probs=torch.tensor([[0.0, *row, *[0.0] * (6 - len(row))] for row in new])[
            :, : batch.token_ids.shape[1]
        ]
    )
    settings = rewards("grpo", kl={"coefficient": 1.0, "estimator": "k3", "by_ratio": True})

    found = float(recipe_of(settings).loss(batch, outputs, settings).total)

    expected = 0.0
    for ours, before, theirs in zip(new, old, reference, strict=True):
        for x, y, z in zip(ours, before, theirs, strict=True):
            expected += math.exp(x - y) * (math.exp(z - x) - (z - x) - 1)
    assert found == near(expected, terms=200)


def test_a_loss_without_a_ratio_is_weighed_by_the_policy_of_the_moment() -> None:
    """Several steps on one row set: w = min(π / π_rollout, 2), with π as it is, not as it was."""
    rows = golden_batch(with_rollout=True)
    settings = rewards("reinforce")

    found = loss_of(rows, settings)

    weights = [
        [min(math.exp(x - y), 2.0) for x, y in zip(new, engine, strict=True)]
        for new, engine in zip(NEW, ROLLOUT, strict=True)
    ]
    expected = -sum(w * x for w, x in zip(weights[0], NEW[0], strict=True))
    expected += 0.5 * sum(w * x for w, x in zip(weights[1], NEW[1], strict=True))
    assert found == near(expected / 7, terms=64)


def test_shown_metrics_are_means_over_tokens() -> None:
    settings = rewards("grpo")

    output = recipe_of(settings).loss(golden_batch(), policy(), settings)

    means = {name: float(total) / float(count) for name, (total, count) in output.metrics.items()}
    # clipped: token 0 of row 0 (A > 0, ratio above 1.2) and token 2 of row 1 (A < 0, below 0.8)
    assert means["clip_fraction"] == near(2 / 7)
    assert means["entropy"] == 1.0
    assert means["kl"] > 0
    assert float(output.maxima["ratio/max"]) == near(math.exp(0.5))


def test_gaps_of_the_mask_are_neither_learned_nor_shown() -> None:
    """At the gap the reference is far away, the policy unsure and the engine wrong."""
    row = Sequence(
        id="0",
        token_ids=[0, 1, 2, 3],
        loss_mask=[False, True, False, True],
        log_probs_old=[0.0, -1.0, -7.0, -2.0],
        log_probs_rollout=[0.0, -1.0, -3.0, -2.0],
        log_probs_reference=[0.0, -1.0, -9.0, -2.0],
        advantages=1.0,
    )
    settings = rewards("grpo", kl={"coefficient": 1.0}, entropy=0.5)
    outputs = ModelOutputs(
        log_probs=torch.tensor([[0.0, -1.0, 0.0, -2.0]]),
        entropy=torch.tensor([[5.0, 0.4, 6.0, 0.8]]),
    )

    output = recipe_of(settings).loss(collate([row]), outputs, settings)

    means = {name: float(total) / float(count) for name, (total, count) in output.metrics.items()}
    assert means["kl"] == 0.0
    assert means["entropy"] == near(0.6)
    assert float(output.maxima["ratio/max"]) == 1.0
    # ratio 1, KL 0: -A a token and half of its entropy
    assert float(output.total) == near(-2.0 - 0.5 * 1.2)


@pytest.mark.parametrize("name", ["grpo", "gspo", "trl-rloo"])
def test_what_is_shown_keeps_no_gradient(name: str) -> None:
    settings = rewards(name)
    outputs = ModelOutputs(
        log_probs=policy().log_probs.requires_grad_(), entropy=torch.ones(2, 5).requires_grad_()
    )

    output = recipe_of(settings).loss(golden_batch(), outputs, settings)

    shown = [number for pair in output.metrics.values() for number in pair]
    shown += list(output.maxima.values())
    assert output.total.requires_grad
    assert not any(getattr(number, "requires_grad", False) for number in shown)


@literal("sft")
def test_imitation_is_the_mean_over_all_tokens() -> None:
    settings = Sft(name="sft")

    assert loss_of(golden_batch(), settings) == near(-sum(map(sum, NEW)) / 7, digits=6)


def test_imitation_shows_the_entropy_of_the_tokens_that_it_trains() -> None:
    settings = Sft(name="sft")
    row = Sequence(id="0", token_ids=[0, 1, 2, 3], loss_mask=[False, True, False, True])
    outputs = ModelOutputs(
        log_probs=torch.tensor([[0.0, -1.0, 0.0, -2.0]]),
        entropy=torch.tensor([[5.0, 0.4, 6.0, 0.8]]),
    )

    metrics = recipe_of(settings).loss(collate([row]), outputs, settings).metrics

    assert recipe_of(settings).needs(settings).entropy
    assert {name: float(a) / float(b) for name, (a, b) in metrics.items()} == near({"entropy": 0.6})


def pair_batch(*, probability: float = 1.0) -> Any:
    """Log ratios: chosen -0.5 over 2 tokens, rejected 0.25 over 1."""

    def side(name: str, reference: list[float]) -> Sequence:
        return Sequence(
            id=name,
            token_ids=[0] * (1 + len(reference)),
            loss_mask=[False, *[True] * len(reference)],
            log_probs_reference=[0.0, *reference],
        )

    return collate_pairs(
        [
            Pair(
                id="p",
                chosen=side("c", [-1.0, -1.0]),
                rejected=side("r", [-2.0]),
                probability=probability,
            )
        ]
    )


def pair_policy() -> ModelOutputs:
    return ModelOutputs(log_probs=torch.tensor([[0.0, -1.5, -1.0], [0.0, -1.75, 0.0]]))


def pair_loss(settings: Any, **fields: Any) -> float:
    return float(recipe_of(settings).loss(pair_batch(**fields), pair_policy(), settings).total)


@literal("dpo", "online_dpo", "spin", "ipo")
def test_preferences_on_literal_log_ratios() -> None:
    def minus_log_sigma(x: float) -> float:
        return math.log(1 + math.exp(-x))

    # sums: z = -0.5 - 0.25 = -0.75; means: z = -0.25 - 0.25 = -0.5
    assert pair_loss(pairs("dpo")) == near(minus_log_sigma(-0.075), digits=6)
    assert pair_loss(pairs("online_dpo")) == near(minus_log_sigma(-0.075), digits=6)
    assert pair_loss(pairs("spin", beta=1.0)) == near(minus_log_sigma(-0.75), digits=6)
    assert pair_loss(pairs("dpo", reduce="mean")) == near(minus_log_sigma(-0.05), digits=6)
    assert pair_loss(pairs("ipo")) == near((-0.5 - 5) ** 2)
    assert pair_loss(pairs("openrlhf-ipo")) == near((-0.75 - 5) ** 2)
    smooth = 0.9 * minus_log_sigma(-0.075) + 0.1 * minus_log_sigma(0.075)
    assert pair_loss(pairs("dpo", label_smoothing=0.1)) == near(smooth, digits=6)
    assert pair_loss(pairs("dpo"), probability=0.9) == near(smooth, digits=6)
    # imitation: mean of 1.5 and 1.0
    mixed = 0.2 * 1.25 + 0.8 * minus_log_sigma(-0.075)
    assert pair_loss(pairs("dpo", sft=0.2)) == near(mixed, digits=6)


@literal("simpo", "orpo")
def test_preferences_without_a_reference_on_literal_log_probs() -> None:
    """Sums: −2.5 of two tokens, −1.75 of one; means −1.25 and −1.75."""
    log_odds = [math.log(math.exp(x) / (1 - math.exp(x))) for x in (-1.25, -1.75)]

    assert pair_loss(pairs("simpo")) == near(-math.log(sigma(2.0 * 0.5 - 0.5)))
    expected = 1.25 - 0.1 * math.log(sigma(log_odds[0] - log_odds[1]))
    assert pair_loss(pairs("orpo")) == near(expected)
    assert pair_loss(pairs("orpo", loss="sigmoid")) == near(-math.log(sigma(0.1 * 0.5)))
    assert not recipe_of(pairs("orpo")).needs(pairs("orpo")).reads
    shown = recipe_of(pairs("simpo")).loss(pair_batch(), pair_policy(), pairs("simpo")).metrics
    assert float(shown["log_prob/chosen"][0]) == near(-1.25)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        # rewards .1 · −.5 and .1 · .25, their mean −.0125
        ("bco", -math.log(1 / (1 + math.exp(0.0375))) * 2),
        # alone in its batch a pair is sorted against itself: dpo
        ("aot", math.log(1 + math.exp(0.075))),
    ],
)
def test_losses_across_pairs_read_what_was_prepared(loss: str, expected: float) -> None:
    settings = pairs("dpo", loss=loss)
    recipe: Any = recipe_of(settings)

    found = recipe.prepare(pair_batch(), pair_policy(), settings, torch.Generator())

    assert set(found) == recipe.needs(settings).prepares
    batch = pair_batch().with_numbers(found)
    assert float(recipe.loss(batch, pair_policy(), settings).total) == near(expected)
    with pytest.raises(ValueError, match="prepare"):
        recipe.loss(pair_batch(), pair_policy(), settings)


def test_rows_of_others_have_no_ratio_no_clip_and_no_reference() -> None:
    """The second row is another's: −A π / (π + c), and KL of the first row alone."""
    kl = {"coefficient": 0.5, "estimator": "k1"}
    fields = {"off_policy": {"shaping": 0.1}, "aggregation": "sequence_sum", "kl": kl}
    settings = rewards("grpo", **fields)
    batch = replace(golden_batch(), numbers={"of_others": torch.tensor([0.0, 1.0])})
    recipe = recipe_of(settings)

    output = recipe.loss(batch, policy(), settings)

    own = -(1.2 + math.exp(-0.5) + 1.0) + 0.5 * (0.4 - 0.5)  # e^.4 is clipped
    probabilities = [math.exp(x) for x in NEW[1]]
    others = 0.5 * sum(p / (p + 0.1) for p in probabilities)
    assert float(output.total) == near(own + others, terms=64)
    assert float(output.metrics["entropy"][1]) == 3.0  # own tokens
    assert float(output.maxima["ratio/max"]) == near(math.exp(0.4))


def test_a_batch_of_own_rows_alone_is_learned_as_ever() -> None:
    settings = rewards("grpo", off_policy={"shaping": 0.1})
    batch = replace(golden_batch(), numbers={"of_others": torch.zeros(2)})

    assert loss_of(batch, settings) == near(-0.082452, digits=6)


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def answers_to_others(*texts: tuple[list[float], float]) -> Any:
    """A pair beside which stand further texts: log-probs of the reference, and how often drawn."""
    extra = tuple(
        Sequence(
            id=str(place),
            token_ids=[0] * (1 + len(reference)),
            loss_mask=[False, *[True] * len(reference)],
            log_probs_reference=[0.0, *reference],
            count=count,
        )
        for place, (reference, count) in enumerate(texts)
    )
    pair = pair_batch()
    return replace(pair, extra=collate(extra) if extra else None)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # log ratios 0.5 + 0.25 of the first, drawn twice, -0.3 of the second: (2 * 0.75 - 0.3) / 3
        ([[0.0, -0.5, -1.75], [0.0, -1.3, 0.0]], 0.4),
        # below zero it counts as zero: (2 * -0.5 - 0.3) / 3
        ([[0.0, -1.5, -2.0], [0.0, -1.3, 0.0]], 0.0),
    ],
)
def test_kto_measures_how_far_the_policy_is_by_answers_to_other_prompts(
    said: list[list[float]], expected: float
) -> None:
    batch = answers_to_others(([-1.0, -2.0], 2.0), ([-1.0], 1.0))
    outputs = replace(pair_policy(), extra=ModelOutputs(log_probs=torch.tensor(said)))
    settings = pairs("kto")
    recipe: Any = recipe_of(settings)

    found = recipe.prepare(batch, outputs, settings, torch.Generator())

    assert set(found) == recipe.needs(settings).prepares
    assert found["divergence"].tolist() == near([expected])
    output = recipe.loss(batch.with_numbers(found), pair_policy(), settings)
    # log ratios of the sides are -0.5 and 0.25, beta is 0.1
    desired = 1 - sigma(0.1 * (-0.5 - expected))
    undesired = 1 - sigma(0.1 * (expected - 0.25))
    assert float(output.total) == near((desired + undesired) / 2)
    assert float(output.metrics["divergence"][0]) == near(expected)


@literal("kto")
def test_kto_without_another_prompt_measures_against_nothing() -> None:
    settings = pairs("trl-kto", beta=1.0)
    recipe: Any = recipe_of(settings)

    found = recipe.prepare(answers_to_others(), pair_policy(), settings, torch.Generator())

    assert found["divergence"].tolist() == [0.0]
    output = recipe.loss(pair_batch().with_numbers(found), pair_policy(), settings)
    assert float(output.total) == near((1 - sigma(-0.5) + 1 - sigma(-0.25)) / 2)
    with pytest.raises(ValueError, match="prepare"):
        recipe.loss(pair_batch(), pair_policy(), settings)
    with pytest.raises(ValueError, match="not defined for soft pairs"):
        recipe.loss(pair_batch(probability=0.5).with_numbers(found), pair_policy(), settings)


@pytest.mark.parametrize("name", ["dpo", "spin", "ipo"])
def test_what_is_shown_of_a_pair_keeps_no_gradient(name: str) -> None:
    settings = pairs(name)
    outputs = ModelOutputs(log_probs=pair_policy().log_probs.requires_grad_())

    output = recipe_of(settings).loss(pair_batch(), outputs, settings)

    shown = [number for pair in output.metrics.values() for number in pair]
    assert output.total.requires_grad
    assert not any(getattr(number, "requires_grad", False) for number in shown)


def test_both_sides_of_a_pair_are_shown() -> None:
    settings = pairs("dpo")

    metrics = recipe_of(settings).loss(pair_batch(), pair_policy(), settings).metrics

    assert float(metrics["log_ratio/chosen"][0]) == near(-0.5)
    assert float(metrics["log_ratio/rejected"][0]) == near(0.25)
    assert float(metrics["margin"][0]) == near(-0.075)
    assert float(metrics["accuracy"][0]) == 0.0


def test_pairs_show_entropy_and_kl_over_the_tokens_of_both_sides() -> None:
    settings = pairs("dpo")
    outputs = replace(pair_policy(), entropy=torch.tensor([[9.0, 0.2, 0.4], [9.0, 0.6, 9.0]]))

    metrics = recipe_of(settings).loss(pair_batch(), outputs, settings).metrics

    def k3(x: float) -> float:
        return math.exp(-x) + x - 1

    assert recipe_of(settings).needs(settings).entropy
    assert float(metrics["entropy"][0]) == near(1.2)
    # chosen -1.5 + 1 and -1 + 1, rejected -1.75 + 2
    assert float(metrics["kl"][0]) == near(k3(-0.5) + k3(0.0) + k3(0.25), terms=16)
    assert float(metrics["kl"][1]) == float(metrics["entropy"][1]) == 3.0


@pytest.mark.parametrize("name", ["orpo", "simpo"])
def test_pairs_without_a_reference_show_no_kl(name: str) -> None:
    settings = pairs(name)

    shown = recipe_of(settings).loss(pair_batch(), pair_policy(), settings).metrics

    assert "kl" not in shown


def value_row(*, returns: list[float] | None = None, **fields: Any) -> Batch:
    row = Sequence(
        id="0",
        token_ids=[0, 1, 2],
        loss_mask=[False, True, True],
        returns=[0.0, *(returns or [1.0, -0.4])],
        **fields,
    )
    return collate([row])


@literal("value")
def test_a_critic_loses_what_the_frameworks_say() -> None:
    """V = [.9, .1], V_old = [.2, .2], R = [1, -.4]; verl's numbers for two clips."""
    rows = value_row(values=[0.0, 0.2, 0.2])
    outputs = ModelOutputs(values=torch.tensor([[0.0, 0.9, 0.1]]))

    def loss(clip: float | None) -> float:
        settings = ValueLoss(name="value", clip=clip)
        recipe = recipe_of(settings)
        return float(recipe.loss(rows, outputs, settings).total) / recipe.count(rows, settings)

    assert loss(0.5) == near(0.085)
    assert loss(0.2) == near(0.1525)
    assert loss(None) == near((0.005 + 0.125) / 2)


def test_a_critic_shows_what_it_explains_and_clips() -> None:
    settings = ValueLoss(name="value", clip=0.5)
    rows = value_row(values=[0.0, 0.2, 0.2])
    values = torch.tensor([[0.0, 0.9, 0.1]]).requires_grad_()

    output = recipe_of(settings).loss(rows, ModelOutputs(values=values), settings)

    shown = {name: float(total) / float(count) for name, (total, count) in output.metrics.items()}
    assert shown == near({"value/mean": 0.5, "return/mean": 0.3, "clip_fraction": 0.5})
    truth, said = output.explained["explained_variance"]
    assert (truth.tolist(), said.tolist()) == (near([1.0, -0.4]), near([0.9, 0.1]))
    assert not said.requires_grad


def test_a_value_at_the_bound_is_not_clipped() -> None:
    settings = ValueLoss(name="value", clip=0.5)
    rows = value_row(values=[0.0, 0.25, 0.25])
    values = torch.tensor([[0.0, 0.75, 0.0]])

    output = recipe_of(settings).loss(rows, ModelOutputs(values=values), settings)

    clipped, count = output.metrics["clip_fraction"]
    assert (float(clipped), float(count)) == (0.0, 2.0)


def test_the_old_values_are_those_of_the_critic_before_the_order() -> None:
    settings = ValueLoss(name="value")
    recipe: Any = recipe_of(settings)
    outputs = ModelOutputs(values=torch.tensor([[0.0, 0.9, 0.1]]))

    found = recipe.prepare(value_row(), outputs, settings, torch.Generator())

    assert set(found) == recipe.needs(settings).prepares
    assert torch.equal(found["values"], outputs.values)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # two pairs: s = (1, .5) against (-.5, 1), leads 1.5 and -.5
        ({}, (math.log1p(math.exp(-1.5)) + math.log1p(math.exp(0.5))) / 2),
        ({"margin": "lead"}, (math.log1p(math.exp(-1.2)) + math.log1p(math.exp(0.5))) / 2),
        (
            {"center": 0.1},
            (math.log1p(math.exp(-1.5)) + math.log1p(math.exp(0.5)) + 0.1 * (0.25 + 2.25)) / 2,
        ),
        (
            {"label_smoothing": 0.2},
            0.4 * (math.log1p(math.exp(-1.5)) + math.log1p(math.exp(0.5)))
            + 0.1 * (math.log1p(math.exp(1.5)) + math.log1p(math.exp(-0.5))),
        ),
        (
            {"soft": True},
            (
                0.75 * math.log1p(math.exp(-1.5))
                + 0.25 * math.log1p(math.exp(1.5))
                + math.log1p(math.exp(0.5))
            )
            / 2,
        ),
    ],
    ids=["plain", "margin", "center", "smoothed", "soft"],
)
def test_a_scorer_learns_the_order_of_pairs(fields: dict[str, Any], expected: float) -> None:
    def side(name: str) -> Sequence:
        return Sequence(id=name, token_ids=[0, 1], loss_mask=[False, True])

    rows = collate_pairs(
        [
            Pair(id="a", chosen=side("c"), rejected=side("r"), margin=0.3, probability=0.75),
            Pair(id="b", chosen=side("c"), rejected=side("r")),
        ]
    )
    settings = BradleyTerry(name="bradley_terry", **fields)
    outputs = ModelOutputs(scores=torch.tensor([[1.0], [0.5], [-0.5], [1.0]]))

    output = recipe_of(settings).loss(rows, outputs, settings)

    assert float(output.total) / recipe_of(settings).count(rows, settings) == near(expected)
    assert float(output.metrics["accuracy"][0]) == 1.0  # of two


def test_of_two_equal_scores_half_is_right() -> None:
    side = Sequence(id="s", token_ids=[0, 1], loss_mask=[False, True])
    rows = collate_pairs([Pair(id="a", chosen=side, rejected=side)])
    outputs = ModelOutputs(scores=torch.tensor([[0.5], [0.5]]))
    settings = BradleyTerry(name="bradley_terry")

    output = recipe_of(settings).loss(rows, outputs, settings)

    assert float(output.metrics["accuracy"][0]) == 0.5


@literal("bradley_terry")
def test_scores_are_drawn_to_zero_by_their_sum_not_by_their_lead() -> None:
    side = Sequence(id="s", token_ids=[0, 1], loss_mask=[False, True])
    rows = collate_pairs([Pair(id="a", chosen=side, rejected=side)])
    settings = BradleyTerry(name="bradley_terry", center=0.1)
    outputs = ModelOutputs(scores=torch.tensor([[2.0], [1.0]]))

    # a lead of 1, and 0.1 * (2 + 1)^2
    assert float(recipe_of(settings).loss(rows, outputs, settings).total) == near(
        math.log1p(math.exp(-1.0)) + 0.9
    )


def test_tokens_are_chosen_by_the_covariance_of_the_whole_batch() -> None:
    """Advantages 1 and -.5, log-probs of `OLD`: centred products by hand."""
    batch = replace(golden_batch(), log_probs_old=None)
    old = torch.tensor([[0.0, *OLD[0], 0.0], [0.0, *OLD[1]]])
    flat = [(1.0, x) for x in OLD[0]] + [(-0.5, x) for x in OLD[1]]
    mean_a, mean_x = (sum(one[k] for one in flat) / 7 for k in (0, 1))
    covariances = [(a - mean_a) * (x - mean_x) for a, x in flat]
    first, second = sorted(range(7), key=lambda k: -covariances[k])[:2]

    settings = rewards("grpo", loss="kl_cov", covariance_share=0.3)
    recipe: Any = recipe_of(settings)
    found = recipe.prepare(batch, ModelOutputs(log_probs=old), settings, torch.Generator())

    chosen = found["kl_cov_selected"][batch.loss_mask].nonzero().flatten().tolist()
    assert sorted(chosen) == sorted([first, second])  # int(.3 * 7) tokens
    # the loss: -A rho everywhere, and |log rho| on those
    output = recipe.loss(batch.with_numbers(found), policy(), settings)
    log_ratios = [y - x for (_, x), y in zip(flat, [*NEW[0], *NEW[1]], strict=True)]
    expected = -sum(a * math.exp(d) for (a, _), d in zip(flat, log_ratios, strict=True))
    expected += sum(abs(log_ratios[k]) for k in (first, second))
    assert float(output.total) == near(expected, terms=64)
    with pytest.raises(ValueError, match="prepare"):
        recipe.loss(batch, policy(), settings)


def test_bounds_of_whole_texts_differ_above_and_below() -> None:
    """Two tokens each: s = e^.2 with A = 1, cut at 1.1; s = e^-.4 with A = -1, cut at 0.7."""
    batch = collate(
        [
            Sequence(
                id=str(advantage),
                token_ids=[0, 1, 2],
                loss_mask=[False, True, True],
                log_probs_old=[0.0, -1.0, -1.0],
                advantages=advantage,
            )
            for advantage in (1.0, -1.0)
        ]
    )
    new = torch.tensor([[0.0, -0.7, -0.9], [0.0, -1.2, -1.6]])
    settings = rewards("gspo", clip_low=0.3, clip_high=0.1)
    recipe = recipe_of(settings)

    output = recipe.loss(batch, ModelOutputs(log_probs=new), settings)

    # s = 0.6703 is below 0.7
    assert float(output.total) / recipe.count(batch, settings) == near((-1.1 + 0.7) / 2)


def test_clip_cov_learns_from_what_it_keeps_and_from_nothing_else() -> None:
    settings = rewards("grpo", loss="clip_cov", aggregation="sequence_sum")
    kept = torch.zeros(2, 5)
    kept[0, 1] = 1.0

    output = recipe_of(settings).loss(
        golden_batch().with_numbers({"clip_cov_kept": kept}), policy(), settings
    )

    assert float(output.total) == near(-1.2)  # e^.4 with A = 1, cut at 1.2


def test_tokens_of_others_are_chosen_by_no_covariance() -> None:
    """The second row is another's: it is not chosen from, and no mean is taken over it."""
    settings = rewards("grpo", loss="kl_cov", covariance_share=0.4, off_policy={"shaping": 0.1})
    batch = replace(golden_batch(), numbers={"of_others": torch.tensor([0.0, 1.0])})
    advantages = torch.tensor([[0.0, 1.0, 2.0, 3.0, 0.0], [0.0, 90.0, 90.0, 90.0, 90.0]])
    old = torch.tensor([[0.0, -1.0, -2.0, -3.0, 0.0], [0.0, -1.0, -1.0, -1.0, -1.0]])
    recipe: Any = recipe_of(settings)

    found = recipe.prepare(
        replace(batch, advantages=advantages),
        ModelOutputs(log_probs=old),
        settings,
        torch.Generator(),
    )

    # of the own three A - 2 is -1, 0, 1 and x + 2 is 1, 0, -1: one of them, int(.4 * 3), is chosen;
    # by the means of both rows it would be the third
    assert found["kl_cov_selected"].nonzero().tolist() == [[0, 2]]


def test_clip_cov_drops_some_tokens_of_the_band_and_draws_them_from_its_generator() -> None:
    row = Sequence(
        id="0",
        token_ids=[0] * 9,
        loss_mask=[False, *[True] * 8],
        advantages=[0.0, *[3.0, -3.0] * 4],
    )
    log_probs = torch.tensor([[0.0, *[-1.0, -2.0] * 4]])  # every covariance is 3 * .5 = 1.5
    settings = rewards("grpo", loss="clip_cov", covariance_share=0.25)
    recipe: Any = recipe_of(settings)
    batch = collate([row])

    def kept(seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        outputs = ModelOutputs(log_probs=log_probs)
        found = recipe.prepare(batch, outputs, settings, generator)
        return found["clip_cov_kept"]

    assert torch.equal(kept(0), kept(0))
    assert all(int(kept(seed).sum()) == 6 for seed in range(4))
    assert any(not torch.equal(kept(0), kept(seed)) for seed in range(1, 8))


def test_every_recipe_is_of_the_language_and_what_a_plan_lets_run_has_one() -> None:
    assert set(RECIPES) <= set(ALGORITHMS)
    assert set(RUNNABLE_ALGORITHMS) == set(RECIPES)
    assert all(recipe.name == name for name, recipe in RECIPES.items())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (lambda: pairs("dpo", loss="hinge", label_smoothing=0.1), "label_smoothing"),
        (lambda: pairs("orpo", label_smoothing=0.1), "label_smoothing"),
        (lambda: pairs("dpo", gamma=0.5), "gamma"),
        (lambda: SimpleNamespace(name="unheard_of"), "no recipe"),
    ],
)
def test_what_cannot_run_is_refused_with_its_reason(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipe_of(settings())


def test_what_a_loss_reads_must_be_there() -> None:
    settings = rewards("grpo", kl={"coefficient": 0.1})
    bare = replace(golden_batch(), log_probs_reference=None)

    with pytest.raises(ValueError, match="reference"):
        recipe_of(settings).loss(bare, policy(), settings)
    with pytest.raises(ValueError, match="advantages"):
        recipe_of(settings).loss(replace(bare, advantages=None), policy(), settings)
    with pytest.raises(ValueError, match="not defined for soft pairs"):
        pair_loss(pairs("dpo", loss="apo"), probability=0.5)


def test_an_edited_kl_coefficient_starts_its_controller_anew() -> None:
    settings = rewards("grpo", kl={"coefficient": 0.1, "target": 0.5, "horizon": 10})
    edited = rewards("grpo", kl={"coefficient": 0.3, "target": 0.5, "horizon": 10})
    controller = KlController.of(settings.kl)

    controller.observe(5.0, settings.kl, samples=10)

    assert controller.applied(settings).kl.coefficient == near(0.12)
    assert KlController.from_state(controller.state()) == controller
    assert controller.applied(edited).kl.coefficient == 0.3
