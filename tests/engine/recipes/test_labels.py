"""Learning labels on literal numbers: of texts, of steps, of values; outcomes by log ratios."""

import math
import random
from typing import Any

import pytest
import torch
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal

from coloop.algorithms.batch import Batch, Sequence, collate
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import ModelOutputs
from coloop.spec.algorithm import ImplicitPrm, Outcome, Regression


def texts(*labels: float, **fields: Any) -> Batch:
    """Rows of one trained token."""
    return collate(
        [
            Sequence(
                id=str(k),
                token_ids=[0, 1],
                loss_mask=[False, True],
                numbers={"label": label},
                **fields,
            )
            for k, label in enumerate(labels)
        ]
    )


def mean_loss(recipe: Any, batch: Batch, outputs: ModelOutputs, settings: Any) -> float:
    return float(recipe.loss(batch, outputs, settings).total) / float(recipe.count(batch, settings))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@literal("regression")
def test_a_scorer_learns_numbers() -> None:
    settings = Regression(name="regression")
    outputs = ModelOutputs(scores=torch.tensor([[0.5], [0.0], [0.5]]))
    recipe = recipe_of(settings)

    assert mean_loss(recipe, texts(1.0, -1.0, 0.5), outputs, settings) == near((0.25 + 1.0) / 3)
    with pytest.raises(ValueError, match="2 classes"):
        recipe.loss(texts(1.0), ModelOutputs(scores=torch.zeros(1, 2)), settings)


@literal("outcome")
def test_an_outcome_is_learned_by_the_cross_entropy_of_right_and_wrong() -> None:
    # logits ln 3 and -ln 4: chances 3/4 and 1/5
    outputs = ModelOutputs(scores=torch.tensor([[math.log(3)], [-math.log(4)]]))
    settings = Outcome(name="outcome")

    loss = mean_loss(recipe_of(settings), texts(1.0, 0.0), outputs, settings)

    assert loss == near((-math.log(0.75) - math.log(0.8)) / 2)


def test_a_soft_label_is_a_chance_and_a_hard_one_is_rounded() -> None:
    outputs = ModelOutputs(scores=torch.tensor([[math.log(3)]]))
    soft, hard = Outcome(name="outcome", soft=True), Outcome(name="outcome")

    assert mean_loss(recipe_of(soft), texts(0.25), outputs, soft) == near(
        -0.25 * math.log(0.75) - 0.75 * math.log(0.25)
    )
    assert mean_loss(recipe_of(hard), texts(0.25), outputs, hard) == near(-math.log(0.25))
    assert mean_loss(recipe_of(hard), texts(0.5), outputs, hard) == near(-math.log(0.75))


def test_an_outcome_right_by_its_side_is_told_and_none_is_half() -> None:
    outputs = ModelOutputs(scores=torch.tensor([[2.0], [1.0], [0.0]]))
    settings = Outcome(name="outcome")

    total, count = (
        recipe_of(settings).loss(texts(1.0, 0.0, 1.0), outputs, settings).metrics["accuracy"]
    )

    assert (float(total), count) == (1.5, 3.0)


STEPS = collate(
    [
        Sequence(
            id="two steps",
            token_ids=[0] * 4,
            loss_mask=[False, True, False, True],
            numbers={"label": [0.0, 1.0, 0.0, 0.0]},
        ),
        Sequence(
            id="one step",
            token_ids=[0] * 3,
            loss_mask=[False, False, True],
            numbers={"label": [0.0, 0.0, 1.0]},
            weight=0.5,
            count=2.0,
        ),
    ]
)


def test_the_mean_of_steps_is_over_steps_and_not_over_texts() -> None:
    said = torch.tensor([[9.0, 1.0, 9.0, 0.5], [9.0, 9.0, 3.0, 0.0]])
    settings = Regression(name="regression")
    recipe = recipe_of(settings, "steps")

    loss = mean_loss(recipe, STEPS, ModelOutputs(steps=said), settings)

    # errors 0, .5 and 2; the last row weighs a half and counts twice, so three steps are four
    assert recipe.count(STEPS, settings) == 4.0
    assert loss == near((0.0 + 0.25 + 0.5 * 2 * 4.0) / 4)


def test_a_label_of_a_text_is_that_of_each_value_of_a_critic() -> None:
    row = Sequence(id="0", token_ids=[0] * 3, loss_mask=[False, True, True], numbers={"label": 1.0})
    settings = Regression(name="regression")
    outputs = ModelOutputs(values=torch.tensor([[0.0, 0.5, 2.0]]))

    loss = mean_loss(recipe_of(settings, "values"), collate([row]), outputs, settings)

    assert loss == near((0.25 + 1.0) / 2)


def rated(labels: tuple[float, ...], prior: list[list[float]]) -> Batch:
    """Texts of two trained tokens with a token of somebody else between them."""
    return collate(
        [
            Sequence(
                id=str(k),
                token_ids=[0] * 4,
                loss_mask=[False, True, False, True],
                log_probs_reference=[0.0, *own],
                numbers={"label": label},
            )
            for k, (label, own) in enumerate(zip(labels, prior, strict=True))
        ]
    )


@literal("implicit_prm")
def test_an_outcome_by_log_ratios_is_that_of_their_sum() -> None:
    """beta .5; ratios .5 + 1 and -1 + 0, what others wrote counts nothing."""
    batch = rated((1.0, 0.0), [[-1.0, -9.0, -2.0], [-1.0, -9.0, -2.0]])
    outputs = ModelOutputs(log_probs=torch.tensor([[0, -0.5, -5, -1], [0, -2.0, -5, -2]]))
    settings = ImplicitPrm(name="implicit_prm", beta=0.5)

    loss = mean_loss(recipe_of(settings), batch, outputs, settings)

    assert loss == near((-math.log(sigmoid(0.75)) - math.log(1 - sigmoid(-0.5))) / 2)


def test_a_reader_of_log_ratios_shows_how_far_it_is_from_its_prior() -> None:
    batch = rated((1.0,), [[-1.0, -9.0, -2.0]])
    outputs = ModelOutputs(
        log_probs=torch.tensor([[0, -0.5, -5, -1.0]]), entropy=torch.tensor([[9, 0.5, 9, 1.5]])
    )
    settings = ImplicitPrm(name="implicit_prm")

    shown = recipe_of(settings).loss(batch, outputs, settings).metrics

    # k3 of .5 and 1, and 2 tokens
    expected = (math.exp(-0.5) + 0.5 - 1) + (math.exp(-1) + 1 - 1)
    assert tuple(map(float, shown["kl"])) == near((expected, 2.0), terms=16)
    assert tuple(map(float, shown["entropy"])) == near((2.0, 2.0))


@pytest.mark.parametrize("soft", [False, True])
def test_outcomes_by_log_ratios_equal_a_loop_over_rows(soft: bool) -> None:
    draw = random.Random(3)
    labels = tuple(draw.random() for _ in range(5))
    prior = [[-draw.uniform(0, 4) for _ in range(3)] for _ in labels]
    said = [[0.0, *(-draw.uniform(0, 4) for _ in range(3))] for _ in labels]
    settings = ImplicitPrm(name="implicit_prm", soft=soft)

    expected = 0.0
    for label, own, new in zip(labels, prior, said, strict=True):
        chance = sigmoid(0.05 * (new[1] - own[0] + new[3] - own[2]))
        wanted = label if soft else float(label >= 0.5)
        expected -= wanted * math.log(chance) + (1 - wanted) * math.log(1 - chance)

    outputs = ModelOutputs(log_probs=torch.tensor(said))
    assert mean_loss(recipe_of(settings), rated(labels, prior), outputs, settings) == near(
        expected / 5, terms=64
    )
