"""Weights and divisors: any split of a batch gives the same loss."""

import pytest
import torch
from tests.engine.algos.wholes import aggregate
from tests.engine.numerics import near

from coloop.algorithms.masks import divisor, masked_mean, masked_sum, token_weights

MODES = ["token_mean", "sequence_mean", "sequence_sum", "constant"]


def case(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    losses = torch.randn(6, 5, generator=generator)
    return losses, torch.rand(6, 5, generator=generator) < 0.6


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(5))
def test_any_split_gives_the_loss_of_the_whole(mode: str, seed: int) -> None:
    losses, mask = case(seed)
    whole = float(aggregate(losses, mask, mode, constant=7))

    for size in (1, 2, 4):
        parts = list(zip(losses.split(size), mask.split(size), strict=True))
        total = sum(float((token_weights(m, mode) * x).sum()) for x, m in parts)
        count = sum(divisor(m, mode, constant=7) for _, m in parts)
        assert total / count == near(whole)


@pytest.mark.parametrize("mode", MODES)
def test_a_row_drawn_twice_counts_as_two_rows(mode: str) -> None:
    losses, mask = case(1)
    counts = torch.tensor([1.0, 2, 0, 1, 3, 1])
    repeated = torch.repeat_interleave(torch.arange(6), counts.long())

    total = (token_weights(mask, mode, row_counts=counts) * losses).sum()
    found = float(total) / divisor(mask, mode, constant=7, row_counts=counts)

    expected = float(aggregate(losses[repeated], mask[repeated], mode, constant=7))
    assert found == near(expected)


def test_a_row_weight_scales_the_loss_and_not_the_divisor() -> None:
    _, mask = case(1)
    weights = token_weights(mask, "token_mean", row_weights=torch.full((6,), 0.5))

    assert weights.sum() == mask.sum() / 2


def test_the_formulas_on_literal_numbers() -> None:
    losses = torch.tensor([[1.0, 2.0, 3.0], [10.0, 99.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])

    # token mean 16/4; sequence mean (2 + 10)/2; sequence sum (6 + 10)/2; constant 16/(2·8)
    found = [float(aggregate(losses, mask, mode, constant=8)) for mode in MODES]
    assert found == near([4.0, 6.0, 8.0, 1.0])


def test_a_constant_is_needed_where_it_divides() -> None:
    with pytest.raises(ValueError, match="constant above 0"):
        divisor(torch.ones(1, 1, dtype=torch.bool), "constant")


def test_means_over_nothing_are_zero_and_rubbish_outside_the_mask_is_ignored() -> None:
    values = torch.tensor([[float("nan"), 2.0], [float("inf"), float("nan")]])
    mask = torch.tensor([[False, True], [False, False]])

    assert masked_mean(values, mask, dim=1).tolist() == [2.0, 0.0]
    assert float(masked_sum(values, mask)) == 2.0
    assert float(masked_mean(values, torch.zeros_like(mask))) == 0.0


@pytest.mark.parametrize("mode", ["sequence_mean", "sequence_sum"])
def test_a_row_without_a_trained_token_counts_nothing(mode: str) -> None:
    mask = torch.tensor([[True, True], [False, False]])

    assert divisor(mask, mode) == 1.0
