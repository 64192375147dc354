"""Preference losses: literal values, soft labels, and gradients that point the right way."""

import math
from collections.abc import Callable

import pytest
import torch
from tests.engine.algos.wholes import sorted_aot
from tests.engine.numerics import assert_near, near
from torch import Tensor

from coloop.algorithms import preference
from coloop.spec.algorithm import SOFT_LOSSES

A, B, BETA = 0.8, -0.4, 0.5
Z = BETA * (A - B)  # 0.6


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


EXPECTED = {
    "sigmoid": -math.log(sigma(Z)),
    "hinge": 1 - Z,
    "ipo": (1.2 - 1.0) ** 2,
    "robust": -math.log(sigma(Z)),
    "exo": sigma(Z) * (math.log(sigma(Z)) - math.log(1 - 1e-3))
    + sigma(-Z) * (math.log(sigma(-Z)) - math.log(1e-3)),
    "nca": -math.log(sigma(0.4)) - math.log(sigma(-0.4)) / 2 - math.log(sigma(0.2)) / 2,
    "bco": -math.log(sigma(0.4)) - math.log(sigma(0.2)),
    "sppo": (0.8 - 1) ** 2 + (-0.4 + 1) ** 2,
    "aot": -math.log(sigma(Z)),
    "apo": 1 - sigma(0.4) + sigma(-0.2),
    "discopop": -math.log(sigma(Z)) * (1 - sigma(Z / 0.05)) + math.exp(-Z) * sigma(Z / 0.05),
}


def loss_of(name: str) -> Callable[..., Tensor]:
    """A loss by its name; of `aot` with what it compares pairs with."""

    def aot(chosen: Tensor, rejected: Tensor, *, beta: float) -> Tensor:
        others = preference.sorted_opposites(chosen, rejected, torch.ones_like(chosen))
        return preference.aot(chosen, rejected, *others, beta=beta)

    return aot if name == "aot" else getattr(preference, name)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_loss_equals_its_formula(name: str) -> None:
    loss = loss_of(name)(torch.tensor([A]), torch.tensor([B]), beta=BETA)

    assert loss.item() == near(EXPECTED[name])


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - {"discopop"}))
def test_each_loss_raises_chosen_over_rejected(name: str) -> None:
    chosen = torch.tensor([0.0], requires_grad=True)
    rejected = torch.tensor([0.0], requires_grad=True)

    loss_of(name)(chosen, rejected, beta=0.3).sum().backward()

    assert chosen.grad is not None
    assert rejected.grad is not None
    assert chosen.grad.item() - rejected.grad.item() < 0


def test_discopop_is_not_monotone_near_zero_but_is_far_from_it() -> None:
    z = torch.tensor([-1.0, 1.0]).requires_grad_()

    preference.discopop(z, torch.zeros(2), beta=1.0).sum().backward()

    assert z.grad is not None
    assert (z.grad < 0).all()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_sides_of_different_sizes_are_refused(name: str) -> None:
    loss = loss_of(name)

    with pytest.raises(ValueError, match="rejected has 2 rows, expected 1"):
        loss(torch.zeros(1), torch.zeros(2), beta=BETA)
    with pytest.raises(ValueError, match="chosen must have rank 1"):
        loss(torch.zeros(1, 1), torch.zeros(1), beta=BETA)


def test_dpo_starts_at_ln_2() -> None:
    loss = preference.sigmoid(torch.zeros(3), torch.zeros(3))

    assert loss.tolist() == near([math.log(2)] * 3)


@pytest.mark.parametrize("name", sorted(SOFT_LOSSES))
def test_a_soft_label_mixes_both_directions(name: str) -> None:
    loss = loss_of(name)
    chosen, rejected = torch.tensor([A]), torch.tensor([B])

    mixed = loss(chosen, rejected, beta=BETA, probability=torch.tensor([0.7]))

    expected = 0.7 * loss(chosen, rejected, beta=BETA) + 0.3 * loss(rejected, chosen, beta=BETA)
    assert mixed.item() == near(expected.item())


def test_label_smoothing_is_a_soft_label() -> None:
    chosen, rejected = torch.tensor([A]), torch.tensor([B])

    smooth = preference.sigmoid(chosen, rejected, label_smoothing=0.1)
    soft = preference.sigmoid(chosen, rejected, probability=torch.tensor([0.9]))

    assert smooth.item() == near(soft.item())


def test_robust_is_unbiased_under_flipped_labels() -> None:
    """E over a flip with probability s of the robust loss is the plain loss."""
    s, chosen, rejected = 0.2, torch.tensor([A]), torch.tensor([B])

    right = preference.robust(chosen, rejected, beta=BETA, label_smoothing=s)
    flipped = preference.robust(rejected, chosen, beta=BETA, label_smoothing=s)

    plain = preference.sigmoid(chosen, rejected, beta=BETA)
    assert ((1 - s) * right + s * flipped).item() == near(plain.item())


def test_aot_compares_sorted_sides() -> None:
    chosen, rejected = torch.tensor([3.0, 1.0]), torch.tensor([0.0, 2.0])

    others = preference.sorted_opposites(chosen, rejected, torch.ones(2))
    found = preference.aot(chosen, rejected, *others, beta=1.0)

    # sorted: (1, 0) and (3, 2), both with z = 1
    assert found.tolist() == near([-math.log(sigma(1.0))] * 2)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_aot_of_pairs_is_that_of_the_sorted_batch_in_value_and_gradient(smoothing: float) -> None:
    """Slow reference: the sorted batch at once."""
    drawn = torch.Generator().manual_seed(0)
    chosen, rejected = torch.randn(2, 9, generator=drawn, dtype=torch.float64)
    sides = [side.clone().requires_grad_() for side in (chosen, rejected)] * 2
    whole = sorted_aot(*sides[:2], beta=0.7, label_smoothing=smoothing).sum()
    expected = torch.autograd.grad(whole, sides[:2])

    others = preference.sorted_opposites(chosen, rejected, torch.ones(9))
    apart = preference.aot(*sides[2:], *others, beta=0.7, label_smoothing=smoothing).sum()
    found = torch.autograd.grad(apart, sides[2:])

    assert apart.item() == near(whole.item())
    for ours, theirs in zip(found, expected, strict=True):
        assert_near(ours, theirs, terms=9, dtype=torch.float64)


def test_opposites_have_the_rank_of_their_side() -> None:
    chosen, rejected = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0.0, 6.0, 4.0])

    of_chosen, of_rejected = preference.sorted_opposites(chosen, rejected, torch.ones(3))
    twice, _ = preference.sorted_opposites(chosen, rejected, torch.tensor([1.0, 2.0, 1.0]))

    # sorted: 1, 2, 3 against 0, 4, 6
    assert of_chosen.tolist() == [6.0, 0.0, 4.0]
    assert of_rejected.tolist() == [1.0, 3.0, 2.0]
    # drawn twice: 1, 1, 2, 3 against 0, 4, 6, 6; the pair has two ranks
    assert twice.tolist() == [6.0, 2.0, 6.0]


def test_bco_measures_against_the_mean_reward_of_both_sides() -> None:
    chosen, rejected = torch.tensor([1.0, 3.0]), torch.tensor([-1.0, 0.0])

    shift = preference.mean_reward(chosen, rejected, torch.tensor([1.0, 3.0]), beta=0.5)

    # .5 · (1 · (1 − 1) + 3 · (3 + 0)) over 8 sides
    assert shift.item() == near(0.5625)
    loss = preference.bco(chosen, rejected, beta=0.5, shift=shift.repeat(2))
    assert loss[0].item() == near(-math.log(sigma(0.5 - 0.5625)) - math.log(sigma(0.5625 + 0.5)))


def test_sppo_wants_half_of_one_by_beta_of_each_side() -> None:
    loss = preference.sppo(torch.tensor([A]), torch.tensor([B]), beta=0.1)

    assert loss.item() == near((A - 5) ** 2 + (B + 5) ** 2)


def test_simpo_wants_a_lead() -> None:
    loss = preference.simpo(torch.tensor([A]), torch.tensor([B]), beta=2.0, gamma=0.5)
    smooth = preference.simpo(
        torch.tensor([A]), torch.tensor([B]), beta=2.0, gamma=0.5, label_smoothing=0.1
    )

    # 2 · 1.2 − .5
    assert loss.item() == near(-math.log(sigma(1.9)))
    assert smooth.item() == near(-0.9 * math.log(sigma(1.9)) - 0.1 * math.log(sigma(-1.9)))


def test_orpo_is_imitation_and_the_ratio_of_odds() -> None:
    chosen, rejected = torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.2)])

    loss = preference.orpo(chosen, rejected, -chosen, beta=0.1)

    # odds 1 and 1/4: −log σ(log 4) = −log .8
    assert loss.item() == near(math.log(2) - 0.1 * math.log(0.8))


def test_odds_of_what_is_certain_are_finite() -> None:
    certain = torch.tensor([0.0, -1e-9, -40.0]).requires_grad_()

    odds = preference.log_odds(certain)
    odds.sum().backward()

    assert torch.isfinite(odds).all()
    assert certain.grad is not None
    assert torch.isfinite(certain.grad).all()
    assert odds[2].item() == near(-40.0)


def test_side_log_ratios_sum_or_average_over_the_mask() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -9.0]])
    reference = torch.tensor([[-1.5, -1.0, 0.0]])
    mask = torch.tensor([[True, True, False]])

    total = preference.side_log_ratios(log_probs, reference, mask)
    mean = preference.side_log_ratios(log_probs, reference, mask, mean=True)

    assert (total.item(), mean.item()) == (-0.5, -0.25)
