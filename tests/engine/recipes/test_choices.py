"""Choosing among labels on literal numbers: two by a chance, more by a place."""

import math
from typing import Any

import pytest
import torch
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal

from coloop.algorithms.batch import Batch, Sequence, collate
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import ModelOutputs
from coloop.spec.algorithm import LabelCrossEntropy


def labelled(*labels: float) -> Batch:
    return collate(
        [
            Sequence(id=str(k), token_ids=[0, 1], loss_mask=[False, True], numbers={"label": label})
            for k, label in enumerate(labels)
        ]
    )


def loss_of(batch: Batch, outputs: ModelOutputs, reading: Any, **fields: Any) -> float:
    settings = LabelCrossEntropy(name="label_ce", **fields)
    recipe = recipe_of(settings, reading)
    total = recipe.loss(batch, outputs, settings).total
    return float(total) / float(recipe.count(batch, settings))


@literal("label_ce")
def test_only_the_labels_are_compared_whatever_else_could_be_said() -> None:
    # p(yes) = .3 and p(no) = .1 of all words: .75 and .25 between the two
    said = ModelOutputs(choices=torch.tensor([[0.3, 0.1], [0.3, 0.1]]).log())

    loss = loss_of(labelled(1.0, 0.0), said, "choices")

    assert loss == near((-math.log(0.75) - math.log(0.25)) / 2)


def test_a_share_of_labels_may_be_wrong_and_a_soft_one_is_a_chance() -> None:
    said = ModelOutputs(choices=torch.tensor([[0.75, 0.25]]).log())

    smoothed = loss_of(labelled(1.0), said, "choices", label_smoothing=0.1)
    soft = loss_of(labelled(0.6), said, "choices", soft=True)

    assert smoothed == near(-0.9 * math.log(0.75) - 0.1 * math.log(0.25))
    assert soft == near(-0.6 * math.log(0.75) - 0.4 * math.log(0.25))


def test_of_more_classes_a_label_is_the_place_of_the_right_one() -> None:
    said = ModelOutputs(scores=torch.tensor([[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]]).log())

    # shares of an eighth, a quarter, five eighths
    assert loss_of(labelled(2.0, 0.0), said, "scores") == near(
        (-math.log(0.625) - math.log(0.125)) / 2
    )
    assert loss_of(
        labelled(2.0),
        ModelOutputs(scores=torch.tensor([[1.0, 2.0, 5.0]]).log()),
        "scores",
        label_smoothing=0.2,
    ) == near(-0.8 * math.log(0.625) - 0.1 * math.log(0.25) - 0.1 * math.log(0.125))


def test_who_chooses_right_is_told() -> None:
    settings = LabelCrossEntropy(name="label_ce")
    said = ModelOutputs(scores=torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))

    output = recipe_of(settings).loss(labelled(1.0, 0.0, 0.0), said, settings)

    total, count = output.metrics["accuracy"]
    assert (float(total), count) == (2.0, 3.0)


def test_a_label_without_what_a_model_says_is_refused() -> None:
    settings = LabelCrossEntropy(name="label_ce")

    with pytest.raises(ValueError, match="what a model says"):
        recipe_of(settings, "choices").loss(labelled(1.0), ModelOutputs(), settings)
