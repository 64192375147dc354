"""Which fields of an algorithm are read is said in one table; here it is compared with what changes
when a field does: advantages, loss and its gradient."""

import random
from collections.abc import Iterator
from itertools import product
from operator import attrgetter
from typing import Any, get_args

import numpy as np
import pytest
import torch

from coloop.algorithms.batch import Batch, Pair, Sequence, collate, collate_pairs
from coloop.algorithms.recipes import RECIPES, recipe_of
from coloop.algorithms.recipes.protocol import EdgeScores, ModelOutputs
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.spec.algorithm import (
    REWARDS_NAMES,
    Advantage,
    Aggregation,
    BradleyTerry,
    PolicyLoss,
    PreferenceAlgorithm,
    PreferenceLoss,
    RewardsAlgorithm,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)
from coloop.spec.algorithm_reads import READ_WHERE, unread_fields
from coloop.spec.training import Credit

LENGTHS = (3, 5, 2, 4, 4, 3)
VALUES: dict[str, tuple[Any, Any]] = {
    "divisor": (3, 7),
    "clip_low": (0.1, 0.4),
    "clip_high": (0.1, 0.4),
    "dual_clip": (1.2, 4.0),
    "ratio_min": (0.3, 0.9),
    "ratio_max": (1.1, 1.6),
    "reduce": ("mean", "sum"),
    "epsilon": (0.1, 0.5),
    "deviation": ("unbiased", "population"),
    "whiten_deviation": ("unbiased", "population"),
    "gae_lambda": (0.3, 0.8),
    "length_alpha": (0.5, 0.9),
    "tau_positive": (0.5, 2.0),
    "tau_negative": (0.5, 2.0),
    "k_positive": (1.0, 3.0),
    "k_negative": (1.0, 3.0),
    "lambda_positive": (1.0, 4.0),
    "lambda_negative": (1.0, 4.0),
    "divergence": ("tv", "kl"),
    "divergence_low": (0.001, 0.5),
    "divergence_high": (0.001, 0.5),
    "baseline_decay": (0.5, 0.9),
    "covariance_share": (0.2, 0.6),
    "allow_group_of_one": (False, True),
    "correction.min": (0.7, 0.9),
    "correction.max": (1.1, 1.3),
}
"""By field, two values that differ wherever the field is read."""
OF_A_RUN = {"kl.horizon"}
"""Fields that are read between updates (`KlController`), and by no credit and no loss."""


def combinations() -> Iterator[dict[str, Any]]:
    """What decides over readers: of the credit, of the loss, of the correction."""
    variants: list[dict[str, Any]] = [
        {"deviation": "unbiased"},
        {"deviation": "none"},
        {"whiten": True},
        {"length_alpha": 0.7},
    ]
    for advantage, variant in product(get_args(Advantage), variants):
        yield {"advantage": advantage, **variant}
    yield from ({"loss": loss, "aggregation": "sequence_mean"} for loss in get_args(PolicyLoss))
    yield from ({"aggregation": aggregation} for aggregation in get_args(Aggregation))
    for method in ("token_tis", "icepop", "sequence_mask", "none"):
        yield {"correction": {"method": method}}


def numbers(seed: int, size: int, spread: float) -> list[float]:
    draw = random.Random(seed)
    return [-2 + draw.uniform(-spread, spread) for _ in range(size)]


def batch() -> Batch:
    return collate(
        [
            Sequence(
                id=str(row),
                token_ids=[0] * (1 + size),
                loss_mask=[False, *[True] * size],
                log_probs_old=[0.0, *numbers(row, size, 0.9)],
                log_probs_rollout=[0.0, *numbers(row + 9, size, 0.9)],
                advantages=(-1.0) ** row * (1 + row),
            )
            for row, size in enumerate(LENGTHS)
        ]
    )


def outcome(settings: Any) -> list[Any]:
    """All that an algorithm of scores says of a few rows."""
    recipe: Any = recipe_of(settings)
    credit = recipe.credit(
        CreditBatch(
            edges=[EdgeScores(name="a", weight=1.0, scores=[1.0, 0.0, 0.4, 0.7, 0.1, 0.5])],
            groups=[0, 0, 0, 1, 1, 2],
            loss_masks=[[True] * size for size in LENGTHS],
            values=[numbers(row + 30, size, 0.9) for row, size in enumerate(LENGTHS)],
            greedy_scores=[0.3] * len(LENGTHS),
        ),
        settings,
        Credit(),
    )
    rows = batch()
    said = [[0.0, *numbers(row + 60, size, 0.9)] for row, size in enumerate(LENGTHS)]
    width = max(LENGTHS) + 1
    log_probs = torch.tensor([[*one, *[0.0] * (width - len(one))] for one in said])
    outputs = ModelOutputs(log_probs=log_probs.requires_grad_(), entropy=torch.ones_like(log_probs))
    prepared = recipe.prepare(rows, outputs, settings, torch.Generator().manual_seed(3))
    others = {name: one.detach() for name, one in prepared.items() if name != "log_probs_old"}
    found = recipe.loss(rows.with_numbers(others), outputs, settings)
    found.total.backward()
    return [
        [np.asarray(one).tolist() for one in credit.advantages],
        [np.asarray(one).tolist() for one in credit.returns or ()],
        credit.alerts,
        float(found.total.detach()),
        log_probs.grad.tolist() if log_probs.grad is not None else None,
        recipe.count(rows, settings),
    ]


def entry_of(combination: dict[str, Any], field: str, value: Any) -> RewardsAlgorithm:
    first, _, rest = field.partition(".")
    given = {**combination.get(first, {}), rest: value} if rest else value
    if field == "correction.min":
        given["max"] = 1.5
    if field == "correction.max" and given.get("method") == "sequence_mask":
        given["max"] = value**9  # the ratio of a whole text
    return RewardsAlgorithm.model_validate({"name": "grpo", **combination, first: given})


@pytest.mark.sample(5)
@pytest.mark.parametrize("field", VALUES)
def test_a_field_is_read_just_where_the_table_says(field: str) -> None:
    readers = READ_WHERE[RewardsAlgorithm][field]
    wrong = []
    for combination in combinations():
        low, high = (
            resolve_rewards_algorithm(entry_of(combination, field, one), max_new_tokens=8)
            for one in VALUES[field]
        )
        is_said = all(one.is_met(attrgetter(one.by)(low)) for one in readers)
        if (outcome(low) != outcome(high)) is not is_said:
            wrong.append((combination, is_said))

    assert wrong == []


def test_the_table_is_measured_whole() -> None:
    assert VALUES.keys() | OF_A_RUN == READ_WHERE[RewardsAlgorithm].keys()


@pytest.mark.parametrize("field", READ_WHERE[PreferenceAlgorithm])
@pytest.mark.parametrize("loss", get_args(PreferenceLoss))
def test_a_field_of_pairs_is_refused_just_where_its_recipe_would_refuse_it(
    field: str, loss: str
) -> None:
    entry = PreferenceAlgorithm.model_validate({"name": "dpo", "loss": loss, field: 0.1})
    full = resolve_pairs_algorithm(entry)

    refused = RECIPES["dpo"].refusal(full)

    assert [one.field for one in unread_fields(entry)] == [field] * (refused is not None)


@pytest.mark.parametrize("soft", [False, True])
def test_a_scorer_smooths_labels_that_are_not_soft(soft: bool) -> None:
    text = Sequence(id="0", token_ids=[0, 1], loss_mask=[False, True])
    pairs = collate_pairs([Pair(id="0", chosen=text, rejected=text, probability=0.8)])
    outputs = ModelOutputs(scores=torch.tensor([[1.0], [-0.5]]))
    losses = []
    for share in (0.1, 0.3):
        entry = BradleyTerry(name="bradley_terry", soft=soft, label_smoothing=share)
        losses.append(float(recipe_of(entry).loss(pairs, outputs, entry).total))

        assert [one.field for one in unread_fields(entry)] == ["label_smoothing"] * soft

    assert (losses[0] == losses[1]) is soft


UNREAD = [
    ({"name": "cispo", "clip_low": 0.2}, "clip_low"),
    ({"name": "cispo", "gae_lambda": 0.9}, "gae_lambda"),
    ({"name": "opo", "clip_high": 0.2}, "clip_high"),
    ({"name": "gspo", "dual_clip": 3.0}, "dual_clip"),
    ({"name": "grpo", "divisor": 9}, "divisor"),
    ({"name": "grpo", "whiten_deviation": "population"}, "whiten_deviation"),
    ({"name": "reinforce_pp", "epsilon": 0.1}, "epsilon"),
    ({"name": "reinforce_pp", "deviation": "batch"}, "deviation"),
    ({"name": "grpo", "divergence_low": 0.1}, "divergence_low"),
    ({"name": "grpo", "baseline_decay": 0.5}, "baseline_decay"),
    ({"name": "grpo", "k_positive": 1.0}, "k_positive"),
    ({"name": "vapo", "gae_lambda": 0.9}, "gae_lambda"),
    ({"name": "grpo", "kl": {"horizon": 5}}, "kl.horizon"),
    ({"name": "grpo", "correction": {"method": "none", "max": 3.0}}, "correction.max"),
]
READ = [
    {"name": "cispo", "ratio_max": 4.0, "clip_low": None},
    {"name": "cispo", "gae_lambda": 1.0},
    {"name": "vapo", "gae_lambda": 0.9, "length_alpha": None},
    {"name": "dr_grpo", "divisor": 9, "deviation": "none"},
    {"name": "grpo", "kl": {"target": 0.1, "horizon": 5}},
    {"name": "openrlhf-grpo", "epsilon": 1.0e-9, "kl": {"coefficient": 0.1}},
]


@pytest.mark.parametrize(("written", "field"), UNREAD)
def test_a_written_field_that_nothing_reads_is_named(written: dict[str, Any], field: str) -> None:
    entry = RewardsAlgorithm.model_validate(written)

    assert [one.field for one in unread_fields(entry)] == [field]


@pytest.mark.parametrize("written", READ)
def test_what_is_read_or_says_what_happens_anyway_is_fine(written: dict[str, Any]) -> None:
    assert unread_fields(RewardsAlgorithm.model_validate(written)) == []


@pytest.mark.parametrize("name", REWARDS_NAMES)
def test_a_preset_alone_is_fine(name: str) -> None:
    assert unread_fields(RewardsAlgorithm.model_validate({"name": name})) == []
