"""Numbers that the frameworks' own functions print, a second oracle beside the formulas."""

from collections.abc import Callable

import pytest
import torch
from tests.engine.algos.wholes import aggregate, group_mean_std
from tests.engine.numerics import near

from coloop.algorithms import advantages, kl, losses

SCORES = torch.tensor([1.0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5])
GROUPS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
LENGTHS = torch.tensor([3, 1, 2, 4, 2, 2, 1, 3])
TOKENS = torch.arange(4)[None, :] < LENGTHS[:, None]

OLD = torch.tensor([[-1, -2, -0.5, 0], [-0.7, -1.5, -3, -0.2]])
NEW = torch.tensor([[-0.6, -2.5, -0.5, 0], [-0.2, -1.4, -4.5, -0.3]])
ROLLOUT = torch.tensor([[-1.1, -1.4, -0.5, 0], [-1.4, -1.5, -1, -0.2]])
MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]).bool()
ADVANTAGES = torch.tensor([[1.0], [-0.5]]).expand(2, 4)


def broadcast(rows: torch.Tensor) -> torch.Tensor:
    return rows[:, None] * TOKENS


def last_token_rewards() -> torch.Tensor:
    rewards = torch.zeros(8, 4)
    rewards[torch.arange(8), LENGTHS - 1] = SCORES
    return rewards


def scaled(
    baseline: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    deviation: advantages.Deviation,
    epsilon: float,
) -> torch.Tensor:
    centred = baseline(SCORES, GROUPS)
    return advantages.scale_by_deviation(
        centred, SCORES, GROUPS, deviation=deviation, epsilon=epsilon
    )


ROW_ESTIMATORS = {
    "verl grpo": (
        lambda: group_mean_std(SCORES, GROUPS, epsilon=1e-6),
        (1.499997, -0.499999),
    ),
    "verl grpo without std": (lambda: advantages.group_mean(SCORES, GROUPS), (0.75, -0.25)),
    "TRL grpo": (
        lambda: group_mean_std(SCORES, GROUPS, epsilon=1e-4),
        (1.499700, -0.499900),
    ),
    "TRL grpo, std of the batch": (
        lambda: scaled(advantages.group_mean, "batch", 1e-4),
        (2.120721, -0.706907),
    ),
    "NeMo grpo, leave one out": (
        lambda: scaled(advantages.leave_one_out, "leave_one_out", 1e-6),
        (1.0, -0.577349),
    ),
    "NeMo grpo without leaving out": (
        lambda: scaled(advantages.group_mean, "unbiased", 1e-6),
        (1.499997, -0.499999),
    ),
    "rloo": (lambda: advantages.leave_one_out(SCORES, GROUPS), (1.0, -0.333333)),
    "verl opo": (lambda: advantages.length_weighted(SCORES, GROUPS, LENGTHS), (0.7, -0.3)),
    "verl pass@k": (
        lambda: scaled(advantages.best_minus_second, "unbiased", 1e-6),
        (1.999996, 0.0),
    ),
    "SkyRL maxrl": (lambda: advantages.mean_normalised(SCORES, GROUPS), (2.999988, -0.999996)),
}


@pytest.mark.parametrize("name", ROW_ESTIMATORS)
def test_row_estimators_give_the_frameworks_numbers(name: str) -> None:
    estimate, (first, others) = ROW_ESTIMATORS[name]

    found = estimate()

    assert found.tolist() == near([first, others, others, others, 0, 0, 0, 0], digits=6)


@pytest.mark.parametrize(
    ("unbiased", "first", "others", "equal_group"),
    [(True, 2.049461, -0.788254, -0.078825), (False, 2.108878, -0.811107, -0.081111)],
    ids=["verl", "OpenRLHF"],
)
def test_reinforce_pp_baseline(
    unbiased: bool, first: float, others: float, equal_group: float
) -> None:
    centred = broadcast(advantages.group_mean(SCORES, GROUPS))

    found = advantages.whiten(centred, TOKENS, unbiased=unbiased)[:, 0]

    assert found.tolist() == near([first, *[others] * 3, *[equal_group] * 4], digits=6)


@pytest.mark.parametrize(
    ("unbiased", "first", "others", "equal_group"),
    [(True, 1.669510, -1.062415, 0.303547), (False, 1.717911, -1.093216, 0.312348)],
    ids=["verl", "OpenRLHF"],
)
def test_reinforce_pp(unbiased: bool, first: float, others: float, equal_group: float) -> None:
    returns = advantages.discounted_returns(last_token_rewards(), TOKENS, gamma=1.0)

    found = advantages.whiten(returns, TOKENS, unbiased=unbiased)[:, 0]

    assert found.tolist() == near([first, *[others] * 3, *[equal_group] * 4], digits=6)


@pytest.mark.parametrize(
    ("gae_lambda", "expected"), [(1.0, [0.9, 0.8, 0, 0, 0.6]), (0.95, [0.8315, 0.77, 0, 0, 0.6])]
)
def test_gae_carries_values_over_a_tool_gap(gae_lambda: float, expected: list[float]) -> None:
    rewards = torch.tensor([[0.0, 0, 0, 0, 1]])
    values = torch.tensor([[0.1, 0.2, 9, 9, 0.4]])
    mask = torch.tensor([[1, 1, 0, 0, 1]]).bool()

    found, returns = advantages.generalized_advantages(
        rewards, values, mask, gamma=1.0, gae_lambda=gae_lambda
    )

    assert found[0].tolist() == near(expected, digits=6)
    assert returns[0, [2, 3]].tolist() == [0.0, 0.0]


def test_returns_are_carried_over_a_tool_gap() -> None:
    rewards = torch.tensor([[0.0, 0, 0, 0, 1]])
    mask = torch.tensor([[1, 1, 0, 0, 1]]).bool()

    assert advantages.discounted_returns(rewards, mask).tolist() == [[1, 1, 0, 0, 1]]


@pytest.mark.parametrize(
    ("heard", "theirs"),
    [(0.0, [0.741654, 0.675425, 0.6]), (9.0, [1.575278, 1.552925, 0.6])],
    ids=["OpenRLHF", "SkyRL"],
)
def test_others_go_through_a_tools_tokens_as_if_the_policy_had_drawn_them(
    heard: float, theirs: list[float]
) -> None:
    """With values of 0, or as they are: their numbers are ours of a text without a gap."""
    rewards = torch.tensor([[0.0, 0, 0, 0, 1]])
    values, mask = torch.tensor([[0.1, 0.2, heard, heard, 0.4]]), torch.ones(1, 5).bool()

    found, _ = advantages.generalized_advantages(rewards, values, mask, gae_lambda=0.95)
    alike, _ = advantages.generalized_advantages(rewards, values, mask, gae_lambda=1.0)

    assert found[0, [0, 1, 4]].tolist() == near(theirs, digits=6)
    assert alike[0, [0, 1, 4]].tolist() == near([0.9, 0.8, 0.6])


def total(token_losses: torch.Tensor, mode: str, constant: float | None = None) -> float:
    return float(aggregate(token_losses, MASK, mode, constant=constant))


@pytest.mark.parametrize(
    ("mode", "constant", "expected"),
    [
        ("token_mean", None, -0.082452),
        ("sequence_mean", None, -0.189085),
        ("sequence_sum", None, -0.288583),
        ("constant", 4, -0.072146),
        ("constant", 6, -0.048097),
    ],
)
def test_ppo_under_each_aggregation(mode: str, constant: float | None, expected: float) -> None:
    loss = losses.clipped(NEW, OLD, ADVANTAGES, MASK)

    assert total(loss, mode, constant) == near(expected, digits=6)
    assert float(loss.sum()) == near(-0.577166, digits=6)


POLICY_LOSSES = {
    "clip higher": (
        lambda: total(losses.clipped(NEW, OLD, ADVANTAGES, MASK, clip_high=0.28), "token_mean"),
        -0.093881,
    ),
    "GSPO": (
        lambda: total(
            losses.sequence_clipped(NEW, OLD, ADVANTAGES, MASK, clip_low=0.2, clip_high=0.2),
            "sequence_mean",
        ),
        -0.283608,
    ),
    "CISPO of verl": (
        lambda: total(
            losses.cispo(NEW, OLD, ADVANTAGES, MASK, ratio_min=0.8, ratio_max=1.2), "token_mean"
        ),
        0.055808,
    ),
    "CISPO of TRL, cap 5": (
        lambda: total(
            losses.cispo(NEW, OLD, ADVANTAGES, MASK, ratio_min=None, ratio_max=5.0), "token_mean"
        ),
        0.190737,
    ),
    "SAPO": (lambda: total(losses.sapo(NEW, OLD, ADVANTAGES, MASK), "sequence_mean"), -0.545781),
    "GMPO": (
        lambda: total(
            losses.gmpo(NEW, OLD, ADVANTAGES, MASK, clip_low=0.2, clip_high=0.2), "sequence_mean"
        ),
        -0.182948,
    ),
    "DPPO-TV of verl": (
        lambda: total(
            losses.dppo(
                NEW, OLD, ADVANTAGES, MASK, divergence_low=0.2, divergence_high=0.2, ratio_max=3.0
            ),
            "token_mean",
        ),
        0.190737,
    ),
    "DPPO-TV of verl, 0.15": (
        lambda: total(losses.dppo(NEW, OLD, ADVANTAGES, MASK), "token_mean"),
        0.062867,
    ),
    "DPPO-TV of verl, 0.05": (
        lambda: total(
            losses.dppo(NEW, OLD, ADVANTAGES, MASK, divergence_low=0.05, divergence_high=0.05),
            "token_mean",
        ),
        0.082256,
    ),
    "DPPO-KL of verl, 0.05": (
        lambda: total(
            losses.dppo(
                NEW,
                OLD,
                ADVANTAGES,
                MASK,
                divergence="kl",
                divergence_low=0.05,
                divergence_high=0.05,
            ),
            "token_mean",
        ),
        0.062867,
    ),
    "VESPO of TRL": (
        lambda: total(losses.vespo(NEW, OLD, ADVANTAGES, MASK), "token_mean"),
        0.479606,
    ),
    "VESPO of TRL, truncated weights": (
        lambda: total(
            losses.vespo(
                NEW,
                OLD,
                ADVANTAGES,
                MASK,
                correction=losses.correction_weights(OLD, ROLLOUT, MASK, highest=3.0),
            ),
            "token_mean",
        ),
        0.596863,
    ),
    "LUSPO of TRL": (
        lambda: total(
            losses.sequence_clipped(NEW, OLD, ADVANTAGES, MASK, clip_low=2e-3, clip_high=2.5e-3),
            "sequence_sum",
        ),
        -0.452824,
    ),
    "GSPO of verl, over tokens": (
        lambda: total(
            losses.sequence_clipped(NEW, OLD, ADVANTAGES, MASK, clip_low=0.2, clip_high=0.2),
            "token_mean",
        ),
        -0.185950,
    ),
}


@pytest.mark.parametrize("name", POLICY_LOSSES)
def test_policy_losses_give_the_frameworks_numbers(name: str) -> None:
    compute, expected = POLICY_LOSSES[name]

    assert compute() == near(expected, digits=6)


def test_corrections_of_openrlhf() -> None:
    loss = losses.clipped(NEW, OLD, ADVANTAGES, MASK)
    truncated = losses.correction_weights(OLD, ROLLOUT, MASK, lowest=0.5, highest=5.0)
    icepop = losses.correction_weights(OLD, ROLLOUT, MASK, method="icepop", lowest=0.5, highest=5.0)

    assert total(loss * truncated, "token_mean") == near(0.029427, digits=6)
    assert total(loss * icepop, "token_mean") == near(0.000855, digits=6)


def test_gradients_of_ppo_with_token_mean() -> None:
    log_probs = NEW.clone().requires_grad_()

    aggregate(losses.clipped(log_probs, OLD, ADVANTAGES, MASK), MASK, "token_mean").backward()

    assert log_probs.grad is not None
    assert log_probs.grad[0, :3].tolist() == near([0, -0.086647, -0.142857], digits=6)
    assert log_probs.grad[1].tolist() == near([0.117766, 0.078941, 0, 0.064631], digits=6)


def test_gradients_of_gspo() -> None:
    log_probs = NEW.clone().requires_grad_()

    loss = losses.sequence_clipped(log_probs, OLD, ADVANTAGES, MASK, clip_low=0.2, clip_high=0.2)
    aggregate(loss, MASK, "sequence_mean").backward()

    assert log_probs.grad is not None
    assert log_probs.grad[0, :3].tolist() == near([-0.161203] * 3, digits=6)
    assert log_probs.grad[1].tolist() == [0, 0, 0, 0]


def test_gradients_of_dppo_are_those_of_prime_rl_and_of_verl() -> None:
    """prime-rl's default loss: ratios to the engine, without a cap, and 1e-3 times the squared log
    ratio. verl: ratios to the trainer."""
    theirs = [[0.000143, -0.047867, -0.142857], [0.237494, 0.078969, -0.001, 0.064603]]
    of_verl = [[0, -0.086647, -0.142857], [0.117766, 0.078941, 0.015938, 0.064631]]
    bounds = {"divergence_low": 0.2, "divergence_high": 0.2, "ratio_max": None}
    prime, verl = NEW.clone().requires_grad_(), NEW.clone().requires_grad_()

    penalty = 1e-3 * losses.squared_log_ratios(prime, ROLLOUT, MASK)
    loss = losses.dppo(prime, ROLLOUT, ADVANTAGES, MASK, **bounds) + penalty
    aggregate(loss, MASK, "token_mean").backward()
    aggregate(losses.dppo(verl, OLD, ADVANTAGES, MASK), MASK, "token_mean").backward()

    assert prime.grad is not None
    assert verl.grad is not None
    assert prime.grad[0, :3].tolist() == near(theirs[0], digits=6)
    assert prime.grad[1].tolist() == near(theirs[1], digits=6)
    assert verl.grad[0, :3].tolist() == near(of_verl[0], digits=6)
    assert verl.grad[1].tolist() == near(of_verl[1], digits=6)


def test_gradients_of_vespo_are_those_of_trl() -> None:
    log_probs = NEW.clone().requires_grad_()

    aggregate(losses.vespo(log_probs, OLD, ADVANTAGES, MASK), MASK, "token_mean").backward()

    assert log_probs.grad is not None
    assert log_probs.grad[0, :3].tolist() == near([-0.155607] * 3, digits=6)
    assert log_probs.grad[1].tolist() == near([0.01259] * 4, digits=5)


@pytest.mark.parametrize(
    ("estimator", "values", "gradients"),
    [
        ("k1", [0.5, -1.0], [1.0, 1.0]),
        ("k2", [0.125, 0.5], [0.5, -1.0]),
        ("k3", [0.106531, 0.718282], [0.393469, -1.718282]),
        ("k3+", [0.106531, 0.718282], [0.5, -1.0]),
    ],
)
def test_kl_values_and_gradients(
    estimator: kl.KlEstimator, values: list[float], gradients: list[float]
) -> None:
    log_probs = torch.tensor([0.5, -1.0], requires_grad=True)

    found = kl.kl_divergence(log_probs, torch.zeros(2), estimator=estimator)
    found.sum().backward()

    assert log_probs.grad is not None
    assert found.tolist() == near(values, digits=6)
    assert log_probs.grad.tolist() == near(gradients, digits=6)


@pytest.mark.parametrize(("clip", "expected"), [(0.5, 0.085), (0.2, 0.1525)])
def test_value_loss_of_verl(clip: float, expected: float) -> None:
    values = torch.tensor([[0.9, 0.1]])
    old = torch.tensor([[0.2, 0.2]])
    returns = torch.tensor([[1.0, -0.4]])

    loss = losses.value_loss(values, old, returns, torch.ones(1, 2, dtype=torch.bool), clip=clip)

    assert float(loss.mean()) == near(expected, digits=6)
