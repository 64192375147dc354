"""DPPO (arXiv 2602.04879) and VESPO (arXiv 2602.10693) as recipes, ratios to the engine, and the
penalty on squared log ratios."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal
from tests.engine.recipes.test_recipes import golden_batch, policy, rewards

from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import ModelOutputs
from coloop.spec.algorithm import RewardsAlgorithm


def output_of(settings: Any, *, with_rollout: bool = True) -> Any:
    batch = golden_batch(with_rollout=with_rollout)
    return recipe_of(settings).loss(batch, policy(), settings)


@literal("dppo", golden="loss")
def test_dppo_gives_the_loss_of_verl() -> None:
    settings = rewards("verl-dppo_tv")

    assert float(output_of(settings).total) / 7 == near(0.190737, digits=6)


@literal("vespo", golden="loss")
def test_vespo_gives_the_loss_of_trl() -> None:
    """The bounded weights of tokens against the engine multiply the ratio of the text."""
    settings = rewards("trl-vespo")

    assert float(output_of(settings).total) / 7 == near(0.596863, digits=6)


def test_ratios_to_the_engine_have_the_gradient_of_prime_rl() -> None:
    log_probs = policy().log_probs.requires_grad_()
    settings = rewards("prime-grpo")
    recipe = recipe_of(settings)
    outputs = ModelOutputs(log_probs=log_probs, entropy=torch.ones(2, 5))

    found = recipe.loss(golden_batch(with_rollout=True), outputs, settings)
    (found.total / 7).backward()

    assert log_probs.grad is not None
    theirs = [0.000143, -0.047867, -0.142857, 0.237494, 0.078969, -0.001, 0.064603]
    assert [*log_probs.grad[0, 1:4].tolist(), *log_probs.grad[1, 1:].tolist()] == near(
        theirs, digits=6
    )
    # of seven, the first token has risen by .216 with A > 0, the sixth fallen by .357 with A < 0
    clipped, count = found.metrics["clip_fraction"]
    assert (int(clipped), int(count)) == (2, 7)


def test_a_ratio_to_the_engine_needs_no_pass_before_the_update() -> None:
    to_engine, to_trainer = rewards("dppo"), rewards("dppo", old_policy="trainer")

    assert recipe_of(to_engine).needs(to_engine).prepares == frozenset()
    assert recipe_of(to_trainer).needs(to_trainer).prepares == {"log_probs_old"}


def test_a_ratio_to_the_engine_is_not_corrected_for_it() -> None:
    assert rewards("grpo", old_policy="engine").correction.method == "none"
    assert rewards("grpo", old_policy="trainer").correction.method == "token_tis"
    with pytest.raises(ValueError, match="needs the engine's log-probs"):
        output_of(rewards("dppo"), with_rollout=False)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"name": "dppo", "correction": {"method": "token_tis"}},
            "a ratio to the engine's log-probs is its own correction",
        ),
        (
            {"name": "grpo", "old_policy": "engine", "correction": {"max": 3.0}},
            "a ratio to the engine's log-probs is its own correction",
        ),
        (
            {"name": "vespo", "correction": {"method": "sequence_mask"}},
            "`vespo` multiplies the weights of a text's tokens",
        ),
        ({"name": "trl-grpo", "loss": "vespo"}, "`vespo` multiplies the weights"),
    ],
)
def test_a_correction_that_does_not_fit_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        RewardsAlgorithm.model_validate(fields)


def test_a_penalty_on_log_ratios_is_added_to_each_token() -> None:
    plain, held = rewards("grpo"), rewards("grpo", ratio_penalty=0.5)

    difference = (
        output_of(held, with_rollout=False).total - output_of(plain, with_rollout=False).total
    )

    # (.4, -.5, 0) and (.5, .1, -1.5, -.1), squared: .41 and 2.52
    assert float(difference) == near(0.5 * 2.93, digits=5)


def test_the_weight_of_texts_is_shown() -> None:
    settings = rewards("vespo")

    total, count = output_of(settings, with_rollout=False).metrics["weight/mean"]

    # φ of e^-0.1 with k 2, λ 3, and of e^-1 with k 3, λ 2
    assert float(total) == near(3 * 1.0892483 + 4 * 0.1762664, digits=6)
    assert int(count) == 7
