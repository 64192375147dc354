"""Policy losses against slow loops on random shapes, masks and limits."""

import math

import pytest
import torch
from tests.engine.numerics import assert_near, near

from coloop.algorithms import losses


def random_case(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (1 + seed % 5, 1 + seed % 7)
    old = -torch.rand(shape, generator=generator) * 3
    new = old + torch.randn(shape, generator=generator) * 0.4
    mask = torch.rand(shape, generator=generator) < 0.7
    return new, old, torch.randn(shape, generator=generator), mask


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("dual_clip", [None, 3.0])
@pytest.mark.parametrize(("low", "high"), [(0.2, 0.28), (None, None), (0.1, None)])
def test_clipped_equals_the_slow_loop(
    seed: int, dual_clip: float | None, low: float | None, high: float | None
) -> None:
    new, old, advantages, mask = random_case(seed)

    found = losses.clipped(
        new, old, advantages, mask, clip_low=low, clip_high=high, dual_clip=dual_clip
    )

    for i in range(mask.shape[0]):
        for t in range(mask.shape[1]):
            if not mask[i, t]:
                assert float(found[i, t]) == 0.0
                continue
            advantage = float(advantages[i, t])
            ratio = math.exp(float(new[i, t]) - float(old[i, t]))
            kept = max(ratio, 1 - low) if low is not None else ratio
            kept = min(kept, 1 + high) if high is not None else kept
            expected = max(-advantage * ratio, -advantage * kept)
            if dual_clip is not None and advantage < 0:
                expected = min(expected, -dual_clip * advantage)
            assert float(found[i, t]) == near(expected, terms=64)


@pytest.mark.parametrize("seed", range(15))
def test_sequence_losses_equal_the_slow_loop(seed: int) -> None:
    new, old, advantages, mask = random_case(seed)
    advantages = advantages[:, :1].expand_as(mask)

    gspo = losses.sequence_clipped(new, old, advantages, mask, clip_low=0.1, clip_high=0.1)
    gmpo = losses.gmpo(new, old, advantages, mask, clip_low=0.1, clip_high=0.1)

    for i in range(mask.shape[0]):
        own = [t for t in range(mask.shape[1]) if mask[i, t]]
        if not own:
            assert gspo[i].abs().sum() == 0
            continue
        advantage = float(advantages[i, 0])
        logs = [float(new[i, t]) - float(old[i, t]) for t in own]
        ratio = math.exp(sum(logs) / len(own))
        kept = min(max(ratio, 0.9), 1.1)
        expected = max(-advantage * ratio, -advantage * kept)
        # log ρ clipped where moving further would help the objective, by the sign of A
        moved = [min(x, 0.1) if advantage > 0 else max(x, -0.1) for x in logs]
        geometric = -advantage * math.exp(sum(moved) / len(own))
        for t in own:
            assert float(gspo[i, t]) == near(expected, terms=64)
            assert float(gmpo[i, t]) == near(geometric, terms=64)


@pytest.mark.parametrize("seed", range(15))
def test_the_ratio_of_a_whole_text_equals_the_slow_loop(seed: int) -> None:
    new, old, advantages, mask = random_case(seed)
    advantages = advantages[:, :1].expand_as(mask)
    bounds = {"clip_low": 0.2, "clip_high": 0.2, "reduce": "sum"}

    found = losses.sequence_clipped(new, old, advantages, mask, **bounds)
    clipped = losses.is_sequence_clipped(new, old, advantages, mask, **bounds)

    for i in range(mask.shape[0]):
        own = [t for t in range(mask.shape[1]) if mask[i, t]]
        advantage = float(advantages[i, 0])
        ratio = math.exp(sum(float(new[i, t]) - float(old[i, t]) for t in own))
        kept = -advantage * min(max(ratio, 0.8), 1.2)
        for t in own:
            assert float(found[i, t]) == near(max(-advantage * ratio, kept), terms=64, scale=8.0)
            assert bool(clipped[i, t]) is (kept > -advantage * ratio)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(("divergence", "low", "high"), [("tv", 0.05, 0.1), ("kl", 0.004, 0.02)])
def test_dppo_equals_the_slow_loop(seed: int, divergence: str, low: float, high: float) -> None:
    new, old, advantages, mask = random_case(seed)
    new, old = new.clamp(max=-0.01), old.clamp(max=-0.01)
    bounds = {"divergence": divergence, "divergence_low": low, "divergence_high": high}

    found = losses.dppo(new, old, advantages, mask, **bounds, ratio_max=1.3)
    outside = losses.is_outside(new, old, advantages, mask, **bounds)

    for i in range(mask.shape[0]):
        for t in range(mask.shape[1]):
            advantage = float(advantages[i, t])
            p, q = math.exp(float(new[i, t])), math.exp(float(old[i, t]))
            distance = abs(p - q)
            if divergence == "kl":
                distance = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
            pushed_up, pushed_down = advantage > 0 and p > q, advantage < 0 and p < q
            is_out = (pushed_up and distance > high) or (pushed_down and distance > low)
            expected = -advantage * min(p / q, 1.3) * float(new[i, t])
            assert bool(outside[i, t]) is (bool(mask[i, t]) and is_out)
            kept = bool(mask[i, t]) and not is_out
            assert float(found[i, t]) == (near(expected, terms=64) if kept else 0.0)


@pytest.mark.parametrize("seed", range(15))
def test_vespo_equals_the_slow_loop(seed: int) -> None:
    new, old, advantages, mask = random_case(seed)
    correction = torch.rand(mask.shape, generator=torch.Generator().manual_seed(seed)) + 0.5
    gamma = {"k_positive": 1.5, "lambda_positive": 2.5, "k_negative": 3.5, "lambda_negative": 0.5}

    found = losses.vespo(new, old, advantages, mask, **gamma, correction=correction)

    for i in range(mask.shape[0]):
        whole = 1.0
        for t in range(mask.shape[1]):
            ratio = math.exp(float(new[i, t]) - float(old[i, t])) * float(correction[i, t])
            whole *= ratio if mask[i, t] else 1.0
        for t in range(mask.shape[1]):
            if not mask[i, t]:
                assert float(found[i, t]) == 0.0
                continue
            k, decay = (1.5, 2.5) if float(advantages[i, t]) >= 0 else (3.5, 0.5)
            weight = whole**k * math.exp(decay * (1 - whole))
            expected = -weight * float(advantages[i, t]) * float(new[i, t])
            assert float(found[i, t]) == near(expected, terms=256, scale=16.0)


def test_a_text_that_a_correction_drops_has_no_weight() -> None:
    mask = torch.ones(1, 3, dtype=torch.bool)
    zeros, dropped = torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 1.0]])

    weights = losses.gamma_weights(zeros, zeros, zeros + 1, mask, correction=dropped)

    assert float(weights.max()) < 1e-12
    assert losses.gamma_weights(zeros, zeros, zeros + 1, mask).tolist() == [[1.0, 1.0, 1.0]]


def test_vespo_of_a_text_far_away_is_finite() -> None:
    mask = torch.ones(2, 50, dtype=torch.bool)
    new, old = torch.zeros(2, 50, requires_grad=True), torch.full((2, 50), -9.0)
    new_lower, advantages = new - 9.0, torch.tensor([[1.0], [-1.0]]).expand(2, 50)

    loss = losses.vespo(new, old, advantages, mask) + losses.vespo(
        new_lower, torch.zeros(2, 50), advantages, mask
    )
    loss.sum().backward()

    assert new.grad is not None
    assert torch.isfinite(new.grad).all()


def test_a_probability_that_rounding_lifts_above_one_has_a_finite_divergence() -> None:
    certain, likely = torch.tensor([[1e-6]]), torch.tensor([[-0.1]])

    for new, old in ((certain, likely), (likely, certain)):
        assert torch.isfinite(losses.token_divergence(new, old, kind="kl")).all()


def test_an_unknown_divergence_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown divergence 'js'"):
        losses.token_divergence(torch.zeros(1, 1), torch.zeros(1, 1), kind="js")


def test_a_text_far_away_has_a_finite_ratio() -> None:
    mask = torch.ones(1, 50, dtype=torch.bool)

    ratio = losses.sequence_ratio(torch.zeros(1, 50), torch.full((1, 50), -9.0), mask, reduce="sum")

    assert torch.isfinite(ratio).all()
    with pytest.raises(ValueError, match="unknown reduction 'product'"):
        losses.sequence_ratio(torch.zeros(1, 50), torch.zeros(1, 50), mask, reduce="product")


TOKEN_LOSSES = {
    "clipped": lambda new, old, a, m: losses.clipped(new, old, a, m),
    "policy gradient": lambda new, old, a, m: losses.policy_gradient(new, a, m),
    "sequence clipped": lambda new, old, a, m: losses.sequence_clipped(new, old, a, m),
    "cispo": lambda new, old, a, m: losses.cispo(new, old, a, m),
    "sapo": lambda new, old, a, m: losses.sapo(new, old, a, m),
    "gmpo": lambda new, old, a, m: losses.gmpo(new, old, a, m),
    "kl cov": lambda new, old, a, m: losses.kl_cov(new, old, a, m, selected=m),
    "dppo": lambda new, old, a, m: losses.dppo(new, old, a, m),
    "dppo by kl": lambda new, old, a, m: losses.dppo(new, old, a, m, divergence="kl"),
    "vespo": lambda new, old, a, m: losses.vespo(new, old, a, m),
    "log ratio": lambda new, old, a, m: losses.squared_log_ratios(new, old, m),
}


@pytest.mark.parametrize("name", TOKEN_LOSSES)
@pytest.mark.parametrize("rubbish", [0.0, float("nan"), float("inf"), -1e30])
def test_tokens_outside_the_mask_have_exactly_no_gradient(name: str, rubbish: float) -> None:
    new, old, advantages, mask = random_case(4)
    log_probs = torch.where(mask, new, rubbish).requires_grad_()

    loss = TOKEN_LOSSES[name](log_probs, torch.where(mask, old, rubbish), advantages, mask)
    loss.sum().backward()

    assert log_probs.grad is not None
    assert (log_probs.grad[~mask] == 0).all()
    assert torch.isfinite(log_probs.grad).all()
    assert (loss[~mask] == 0).all()


@pytest.mark.parametrize("name", ["clipped", "policy gradient", "cispo", "sapo", "dppo", "vespo"])
def test_on_policy_gradient_is_that_of_reinforce(name: str) -> None:
    """At ρ = 1 every one of them has the gradient −A; SAPO: −A σ'(0)·4 = −A."""
    new, _, advantages, mask = random_case(6)
    log_probs = new.clone().requires_grad_()

    TOKEN_LOSSES[name](log_probs, new, advantages, mask).sum().backward()

    assert log_probs.grad is not None
    assert_near(log_probs.grad, torch.where(mask, -advantages, 0.0), terms=16)


def test_huge_log_ratios_stay_finite() -> None:
    new, old = torch.tensor([[0.0, -500.0]]), torch.tensor([[-500.0, 0.0]])
    mask = torch.ones(1, 2, dtype=torch.bool)

    loss = losses.clipped(new, old, torch.tensor([[-1.0, 1.0]]), mask)

    assert torch.isfinite(loss).all()


def test_clipping_is_reported_where_no_gradient_flows() -> None:
    new, old, advantages, mask = random_case(9)
    log_probs = new.clone().requires_grad_()

    losses.clipped(log_probs, old, advantages, mask).sum().backward()
    clipped = losses.is_clipped(new, old, advantages, mask)

    assert log_probs.grad is not None
    assert clipped.any()
    assert torch.equal(log_probs.grad == 0, clipped | ~mask)


def test_a_clipped_sequence_is_reported_with_all_its_tokens() -> None:
    new, old, advantages, mask = random_case(9)
    log_probs = new.clone().requires_grad_()
    bounds = {"clip_low": 0.05, "clip_high": 0.05}

    losses.sequence_clipped(log_probs, old, advantages, mask, **bounds).sum().backward()
    clipped = losses.is_sequence_clipped(new, old, advantages, mask, **bounds)

    assert log_probs.grad is not None
    assert clipped.any()
    assert not (clipped & ~mask).any()
    assert torch.equal(log_probs.grad == 0, clipped | ~mask)


def test_cispo_bounds_are_absolute_and_clipped_tokens_still_teach() -> None:
    log_probs = torch.tensor([[2.0]], requires_grad=True)
    mask = torch.ones(1, 1, dtype=torch.bool)

    losses.cispo(log_probs, torch.zeros(1, 1), torch.ones(1, 1), mask, ratio_max=5.0).backward()

    assert log_probs.grad is not None
    assert log_probs.grad.item() == near(-5.0)


def test_cispo_without_bounds_weighs_by_the_ratio_itself() -> None:
    mask = torch.ones(1, 1, dtype=torch.bool)
    new, old = torch.tensor([[-1.0]]), torch.tensor([[-3.0]])

    loss = losses.cispo(new, old, torch.ones(1, 1), mask, ratio_min=None, ratio_max=None)

    assert loss.item() == near(math.exp(2.0))  # -e^2 * 1 * -1


def test_covariances_are_of_both_means_over_the_mask() -> None:
    log_probs = torch.tensor([[-1.0, -3.0, -9.0], [-2.0, -6.0, -9.0]], requires_grad=True)
    advantages = torch.tensor([[1.0, 1.0, 50.0], [-2.0, 4.0, 50.0]])
    mask = torch.tensor([[True, True, False], [True, True, False]])

    covariances = losses.token_covariances(log_probs, advantages, mask)

    assert not covariances.requires_grad
    # means over the mask: A 1, log π -3
    assert covariances.tolist() == [[0.0, 0.0, 0.0], [-3.0, -9.0, 0.0]]


def test_kl_cov_adds_the_log_ratio_on_selected_tokens() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -1.5, -3.0]])
    old = torch.tensor([[-1.5, -1.5, -1.0, -1.0]])
    advantages = torch.tensor([[2.0, -1.0, 3.0, 1.0]])
    mask = torch.tensor([[True, True, True, False]])
    selected = torch.tensor([[True, True, False, True]])

    loss = losses.kl_cov(log_probs, old, advantages, mask, selected=selected, coefficient=0.4)

    up, down = math.exp(0.5), math.exp(-0.5)
    assert loss[0].tolist() == near([-2 * up + 0.2, down + 0.2, -3 * down, 0.0], digits=6)


def test_log_ratios_are_kept_between_their_limits() -> None:
    log_probs = torch.tensor([[-50.0, -1.0, -1.5, -7.0]])
    old = torch.tensor([[-1.0, -50.0, -1.0, -1.0]])
    mask = torch.tensor([[True, True, True, False]])

    assert losses.log_ratios(log_probs, old, mask).tolist() == [[-20.0, 20.0, -0.5, 0.0]]


@pytest.mark.parametrize(
    "bounds", [{"clip_low": None, "clip_high": 0.4}, {"clip_low": 0.4, "clip_high": None}]
)
def test_gmpo_may_be_open_on_one_side(bounds: dict[str, float | None]) -> None:
    """log ρ of 1 with A > 0 is cut by the upper bound, of -1 with A < 0 by the lower one."""
    log_probs = torch.tensor([[1.0], [-1.0]]) - 2.0
    advantages = torch.tensor([[1.0], [-1.0]])

    loss = losses.gmpo(
        log_probs,
        torch.full((2, 1), -2.0),
        advantages,
        torch.ones(2, 1, dtype=torch.bool),
        **bounds,
    )

    high, low = bounds["clip_high"], bounds["clip_low"]
    assert loss[0].item() == near(-math.exp(1.0 if high is None else high), digits=6)
    assert loss[1].item() == near(math.exp(-1.0 if low is None else -low), digits=6)


def test_covariance_selections_take_their_share_from_the_mask() -> None:
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.randn(8, 10, generator=generator)
    advantages = torch.randn(8, 10, generator=generator) * 3
    mask = torch.rand(8, 10, generator=generator) < 0.8
    covariances = losses.token_covariances(log_probs, advantages, mask)

    kept = losses.clip_cov_keep(covariances, mask, share=0.05, generator=generator)
    selected = losses.kl_cov_select(covariances, mask, share=0.1)

    wanted = int(mask.sum())
    assert int((mask & ~kept).sum()) == int(0.05 * wanted)
    assert ((covariances[mask & ~kept] > 1) & (covariances[mask & ~kept] < 5)).all()
    assert int(selected.sum()) == int(0.1 * wanted)
    assert covariances[selected].min() >= covariances[mask & ~selected].max()


def test_covariance_selections_take_one_token_at_least_and_stay_in_their_band() -> None:
    covariances = torch.tensor([[9.0, 2.0, 4.0], [3.0, 0.5, 0.0]])
    mask = torch.tensor([[False, True, True], [True, True, False]])

    selected = losses.kl_cov_select(covariances, mask, share=0.002)
    kept = losses.clip_cov_keep(covariances, mask, share=0.002, lowest=3.5)

    only = [[False, False, True], [False, False, False]]
    assert selected.tolist() == only
    assert (mask & ~kept).tolist() == only
    assert int((mask & ~losses.clip_cov_keep(covariances, mask, share=0.002)).sum()) == 1
    band = losses.clip_cov_keep(covariances, mask, share=1.0, lowest=1.0, highest=3.5)
    assert covariances[mask & ~band].tolist() == [2.0, 3.0]
    assert not losses.kl_cov_select(covariances, torch.zeros_like(mask), share=0.002).any()


def test_losses_refuse_shapes_that_would_broadcast() -> None:
    mask = torch.ones(2, 3, dtype=torch.bool)

    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        losses.clipped(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 1), mask)
