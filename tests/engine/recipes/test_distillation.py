"""Distillation on literal numbers: sampled tokens, several teachers, words."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal

from coloop.algorithms.batch import Batch, Sequence, collate
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import LossOutput, ModelOutputs
from coloop.data.distributions import Teacher
from coloop.spec.algorithm import (
    DISTILLATION_NAMES,
    DistillationAlgorithm,
    resolve_distillation,
)
from coloop.spec.algorithm_reads import unread_fields

LN2 = math.log(2)
OWN = [[0.0, -2 * LN2, -LN2], [0.0, -LN2, -3 * LN2]]
"""Log-probs of two rows of two trained tokens behind a prompt of one."""


def settings(**fields: Any) -> Any:
    return resolve_distillation(DistillationAlgorithm.model_validate({"name": "opd", **fields}))


def row(name: str, *teachers: Teacher, **fields: Any) -> Sequence:
    mask = [False, True, True]
    return Sequence(id=name, token_ids=[0, 1, 2], loss_mask=mask, teachers=teachers, **fields)


def teacher(node: str, weight: float, *log_probs: float) -> Teacher:
    return Teacher(node=node, weight=weight, log_probs=torch.tensor(log_probs).numpy())


def batch(**fields: Any) -> Batch:
    """One row with a teacher, one with two; a teacher's tokens have log-probs in steps of ln 2."""
    rows = [
        row("a", teacher("one", 1.0, -LN2, -3 * LN2), **fields),
        row("b", teacher("one", 0.25, -LN2, -LN2), teacher("other", 0.75, -LN2, -LN2), **fields),
    ]
    reads = {"teachers", "log_probs_old", "log_probs_rollout"}
    return collate(rows, reads=reads)


def learn(
    given: Batch, full: Any, log_probs: Any = None, **outputs: Any
) -> tuple[float, torch.Tensor, LossOutput]:
    """Mean loss, gradient towards the log-probs (or the divergence), and all that is told."""
    own = torch.tensor(OWN if log_probs is None else log_probs).requires_grad_()
    recipe: Any = recipe_of(full)
    found = recipe.loss(given, ModelOutputs(log_probs=own, **outputs), full)
    count = recipe.count(given, full)
    leaf = outputs.get("divergence", own)
    (slope,) = torch.autograd.grad(found.total / count, leaf)
    return float(found.total) / count, slope, found


@literal("opd")
def test_sampled_tokens_move_by_how_far_they_are_from_the_teacher() -> None:
    # log p - log q in units of ln 2: (-1, 2) and (0, -2), of four tokens
    mean, slope, found = learn(batch(), settings())

    assert mean == near(-LN2 / 4)
    assert slope.tolist() == [near([0, -LN2 / 4, LN2 / 2]), near([0, 0, -LN2 / 2])]
    assert found.metrics["distillation/kl"] == (near(-LN2), 4)
    # of the first teacher all four tokens, of the other those of the second row
    assert found.metrics["teacher/one"] == (near(-LN2), 4)
    assert found.metrics["teacher/other"] == (near(-2 * LN2), 2)


@literal("opd")
def test_a_token_counts_at_most_so_much() -> None:
    mean, slope, _ = learn(batch(), settings(clip=1.5 * LN2))

    # (-1, 1.5), (0, -1.5)
    assert mean == near(-LN2 / 4)
    assert slope.tolist() == [near([0, -LN2 / 4, 1.5 * LN2 / 4]), near([0, 0, -1.5 * LN2 / 4])]


@literal("opd")
def test_later_updates_weigh_by_the_ratio_and_by_the_mismatch_of_the_engine() -> None:
    """Old log-probs are ln 2 above the policy's, so the ratio is 1/2; the engine's are 2 ln 2 below
    the old ones: weight 4, capped at 2."""
    old = [[0.0, -LN2, 0.0], [0.0, 0.0, -2 * LN2]]
    rows = [
        replace(
            one,
            log_probs_old=torch.tensor(old[k]).numpy(),
            log_probs_rollout=torch.tensor(old[k]).numpy() - 2 * LN2,
        )
        for k, one in enumerate(
            [
                row("a", teacher("one", 1.0, -LN2, -3 * LN2)),
                row("b", teacher("one", 1.0, -LN2, -LN2)),
            ]
        )
    ]
    given = collate(rows, reads={"teachers", "log_probs_old", "log_probs_rollout"})

    mean, _, _ = learn(given, settings())
    uncorrected, _, _ = learn(given, settings(correction={"method": "none"}))

    assert mean == near(-LN2 / 4)
    assert uncorrected == near(-LN2 / 8)


@pytest.mark.parametrize("support", ["full", "top_k"])
def test_a_divergence_over_words_is_the_loss(support: str) -> None:
    apart = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.5, 4.5]]).requires_grad_()
    ones = torch.ones(2, 3)

    mean, slope, found = learn(
        batch(), settings(support=support), divergence=apart, mass=ones, own_mass=ones
    )

    assert mean == near(2.0)
    assert slope.tolist() == [[0, 0.25, 0.25], [0, 0.25, 0.25]]
    assert found.metrics["distillation/divergence"] == (near(8.0), 4)
    assert ("distillation/mass" in found.metrics) is (support == "top_k")


@pytest.mark.parametrize("divergence", ["forward", "jsd"])
def test_sampled_tokens_measure_only_the_reverse_divergence(divergence: str) -> None:
    with pytest.raises(ValidationError, match="set `support` to `top_k` or `full`"):
        DistillationAlgorithm.model_validate({"name": "opd", "divergence": divergence})


@pytest.mark.parametrize("name", DISTILLATION_NAMES)
def test_a_preset_resolves_and_is_fine_alone(name: str) -> None:
    entry = DistillationAlgorithm.model_validate({"name": name})

    assert recipe_of(resolve_distillation(entry)).port == "reference"
    assert unread_fields(entry) == []


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ({"k": 3}, "k"),
        ({"tail": "drop"}, "tail"),
        ({"temperature": 2.0}, "temperature"),
        ({"support": "full", "k": 3}, "k"),
        ({"support": "top_k", "dtype": "float16"}, "dtype"),
        ({"support": "full", "beta": 0.1}, "beta"),
        ({"support": "full", "correction": {"max": 3.0}}, "correction"),
    ],
)
def test_a_field_that_nothing_reads_is_named(written: dict[str, Any], field: str) -> None:
    entry = DistillationAlgorithm.model_validate({"name": "opd", **written})

    assert [one.field for one in unread_fields(entry)] == [field]
