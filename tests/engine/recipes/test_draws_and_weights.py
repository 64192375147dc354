"""What a row counts: of every recipe, a row of weight w that was drawn n times adds w n times the
loss of a plain one, and n to what the loss is divided by."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.engine.numerics import near

from coloop.algorithms.batch import Batch, Pair, PairBatch, Sequence, collate, collate_pairs
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import ModelOutputs
from coloop.spec.algorithm import (
    BradleyTerry,
    ImplicitPrm,
    LabelCrossEntropy,
    Outcome,
    PreferenceAlgorithm,
    Regression,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    resolve_algorithm,
)

Make = Callable[..., Batch | PairBatch]

SAID = ModelOutputs(
    log_probs=torch.tensor([[0.0, -0.5, -1.5]]),
    entropy=torch.tensor([[0.0, 0.7, 0.2]]),
    values=torch.tensor([[0.0, 0.2, 0.6]]),
    scores=torch.tensor([[0.4]]),
    steps=torch.tensor([[0.0, 0.3, -0.2]]),
    choices=torch.tensor([[-0.5, -1.0]]),
)
SAID_OF_SIDES = ModelOutputs(
    log_probs=torch.tensor([[0.0, -0.5, -1.5], [0.0, -0.9, -0.4]]),
    scores=torch.tensor([[0.4], [-0.7]]),
)


def text(**fields: Any) -> Sequence:
    known = {"log_probs_reference": [0.0, -0.4, -1.0], "log_probs_old": [0.0, -0.6, -1.2]}
    return Sequence(
        id="row", token_ids=[0, 1, 2], loss_mask=[False, True, True], **{**known, **fields}
    )


def row(**fields: Any) -> Batch:
    numbers = {"label": 0.8}
    learned = {"advantages": 0.5, "returns": [0.0, 1.0, 0.5], "values": [0.0, 0.1, 0.9]}
    return collate([text(numbers=numbers, **learned, **fields)])


def pair(**fields: Any) -> PairBatch:
    return collate_pairs([Pair(id="pair", chosen=text(), rejected=text(), **fields)])


KL = {"coefficient": 0.1, "estimator": "k2"}
CASES: dict[str, tuple[Any, str | None, Make, ModelOutputs, float]] = {
    "tokens": (RewardsAlgorithm(name="grpo", kl=KL, entropy=0.1), None, row, SAID, 2),
    "texts": (RewardsAlgorithm(name="gspo"), None, row, SAID, 1),
    "imitation": (Sft(name="sft"), None, row, SAID, 2),
    "values": (ValueLoss(name="value"), None, row, SAID, 2),
    "numbers": (Regression(name="regression"), "scores", row, SAID, 1),
    "numbers of steps": (Outcome(name="outcome", soft=True), "steps", row, SAID, 2),
    "outcomes": (ImplicitPrm(name="implicit_prm"), None, row, SAID, 1),
    "labels in words": (LabelCrossEntropy(name="label_ce"), "choices", row, SAID, 1),
    "order": (BradleyTerry(name="bradley_terry"), None, pair, SAID_OF_SIDES, 1),
    "preferences": (PreferenceAlgorithm(name="dpo"), None, pair, SAID_OF_SIDES, 1),
    "odds": (PreferenceAlgorithm(name="orpo"), None, pair, SAID_OF_SIDES, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_row_counts_by_its_weight_and_its_draws(case: str) -> None:
    entry, reading, make, said, divisor = CASES[case]
    settings = resolve_algorithm(entry, max_new_tokens=2)
    recipe: Any = recipe_of(settings, reading) if reading else recipe_of(settings)

    plain, heavy = make(), make(weight=0.5, count=3.0)

    once = float(recipe.loss(plain, said, settings).total)
    assert once != 0.0
    assert float(recipe.loss(heavy, said, settings).total) == near(1.5 * once, terms=64)
    assert (recipe.count(plain, settings), recipe.count(heavy, settings)) == (divisor, 3 * divisor)
