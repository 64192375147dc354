"""KL estimators, the adaptive coefficient, corrections and the value loss at their edges."""

import math

import pytest
import torch
from tests.engine.numerics import near

from coloop.algorithms.kl import adapted_coefficient, kl_divergence
from coloop.algorithms.losses import (
    correction_weights,
    off_policy_weights,
    value_loss,
)

MASK = torch.tensor([[True, True, False], [True, True, True]])


def test_k3_stays_finite_for_a_policy_that_gave_a_token_up() -> None:
    found = kl_divergence(torch.tensor([-300.0]), torch.tensor([0.0]), estimator="k3")

    assert math.isfinite(found.item())


def test_k1_and_k3_agree_in_expectation() -> None:
    """Exact expectations under π = (0.6, 0.3, 0.1) against q = (0.2, 0.5, 0.3)."""
    policy, reference = torch.tensor([0.6, 0.3, 0.1]), torch.tensor([0.2, 0.5, 0.3])
    true_kl = float((policy * (policy / reference).log()).sum())

    for estimator in ("k1", "k3"):
        tokens = kl_divergence(policy.log(), reference.log(), estimator=estimator)
        assert float((policy * tokens).sum()) == near(true_kl)


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="k9"):
        kl_divergence(torch.zeros(1), torch.zeros(1), estimator="k9")


def test_the_coefficient_follows_its_target_in_bounded_steps() -> None:
    # KL 0.105 of 0.1: error 0.05; 100 of 1000 samples
    raised = adapted_coefficient(0.2, 0.105, target=0.1, horizon=1000, samples=100)
    # far above the target the error is kept at 0.2
    capped = adapted_coefficient(0.2, 9.0, target=0.1, horizon=1000, samples=100)
    lowered = adapted_coefficient(0.2, 0.0, target=0.1, horizon=1000, samples=100)

    assert raised == near(0.2 * 1.005)
    assert capped == near(0.2 * 1.02)
    assert lowered == near(0.2 * 0.98)
    with pytest.raises(ValueError, match="above 0"):
        adapted_coefficient(0.2, 0.1, target=0.0, horizon=1000, samples=1)


def test_corrections_on_literal_ratios() -> None:
    ratios = torch.tensor([[4.0, 0.25, 9.0], [1.0, 1.5, 2.0]])
    old, rollout = ratios.log(), torch.zeros(2, 3)

    truncated = correction_weights(old, rollout, MASK, highest=2.0)
    icepop = correction_weights(old, rollout, MASK, method="icepop", lowest=0.5, highest=3.0)
    # products over the mask: 4·0.25 = 1 and 1·1.5·2 = 3
    masked = correction_weights(old, rollout, MASK, method="sequence_mask", highest=2.5)
    none = correction_weights(old, rollout, MASK, method="none")

    assert truncated.flatten().tolist() == near([2, 0.25, 1, 1, 1.5, 2])
    assert icepop.flatten().tolist() == near([0, 0, 1, 1, 1.5, 2])
    assert masked.flatten().tolist() == near([1, 1, 1, 0, 0, 0])
    assert (none == 1).all()


@pytest.mark.parametrize("method", ["token_tis", "icepop", "sequence_mask"])
def test_a_weight_on_its_bound_is_within(method: str) -> None:
    same = torch.full((2, 3), -1.0)

    weights = correction_weights(same, same, MASK, method=method, lowest=1.0, highest=1.0)

    assert weights.tolist() == [[1.0] * 3] * 2


def test_equal_log_probs_are_not_corrected_at_all() -> None:
    log_probs = torch.randn(2, 3)

    for method in ("token_tis", "icepop", "sequence_mask"):
        weights = correction_weights(log_probs, log_probs, MASK, method=method, highest=2.0)
        assert (weights == 1).all()


def test_correction_weights_carry_no_gradient() -> None:
    old = torch.zeros(2, 3, requires_grad=True)

    assert not correction_weights(old, torch.ones(2, 3), MASK).requires_grad


def test_off_policy_weights_shape_the_probability() -> None:
    weights = off_policy_weights(torch.tensor([[0.4, 0.1]]).log(), shaping=0.1)

    assert weights[0].tolist() == near([0.8, 0.5])


def test_an_unclipped_value_loss_is_half_the_square() -> None:
    mask = torch.tensor([[True, False]])

    loss = value_loss(
        torch.tensor([[3.0, 9.0]]), torch.zeros(1, 2), torch.ones(1, 2), mask, clip=None
    )

    assert loss.tolist() == [[2.0, 0.0]]
