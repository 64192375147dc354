"""What a policy loss shows of each token is what it computes with."""

import math

import torch
from tests.engine.numerics import near
from tests.engine.recipes.test_recipes import golden_batch, loss_of, policy, rewards
from torch import Tensor

from coloop.algorithms.recipes import recipe_of


def shown() -> dict[str, Tensor]:
    settings = rewards("grpo")
    return dict(recipe_of(settings).loss(golden_batch(), policy(), settings).tokens)


def mean_loss(advantage: Tensor, log_ratio: Tensor, mask: Tensor) -> float:
    """The clipped loss of PPO from what is shown, its mean over trained tokens."""
    ratio = log_ratio.exp()
    loss = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2))
    return float(loss[mask].mean())


def test_advantage_ratio_kl_and_clipped_of_each_token_by_hand() -> None:
    """New minus old of the golden rows; of the first A is 1, of the second −0.5."""
    found = shown()

    assert found["advantage"].tolist() == [[0, 1, 1, 1, 0], [0, -0.5, -0.5, -0.5, -0.5]]
    # -0.6+1.0, -2.5+2.0, -0.5+0.5 | -0.2+0.7, -1.4+1.5, -4.5+3.0, -0.3+0.2
    ratios = [[0, 0.4, -0.5, 0, 0], [0, 0.5, 0.1, -1.5, -0.1]]
    assert found["log_ratio"].tolist() == [near(row) for row in ratios]
    # A > 0 is stopped above 1.2 = e^0.18; A < 0 below 0.8 = e^-0.22
    assert found["clipped"].tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    # the reference is the old policy: e^-d + d - 1
    kl = [[math.exp(-d) + d - 1 for d in row] for row in ratios]
    assert found["kl"].tolist() == [near(row) for row in kl]


def test_the_loss_can_be_computed_from_what_is_shown_and_not_from_what_stands_beside_it() -> None:
    found, mask = shown(), golden_batch().loss_mask
    advantage, ratio = found["advantage"], found["log_ratio"]

    assert mean_loss(advantage, ratio, mask) == near(loss_of(golden_batch(), rewards("grpo")))
    shifted = mean_loss(advantage, ratio.roll(1, dims=1), mask)
    assert shifted != near(loss_of(golden_batch(), rewards("grpo")))
