"""Optimizers against their formulas, and what they refuse."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near
from torch import nn
from transformers import PreTrainedModel

from coloop.errors import BackendMissing
from coloop.spec.dtypes import trained_dtypes
from coloop.spec.training import Optimizer, Training
from coloop.workers.training.optimizers import GroupOptimizer
from coloop.workers.training.states import autocast_of, check_trainable, place_weights

Build = Callable[..., PreTrainedModel]

TERMS = 32
"""Roundings of two steps on one weight."""


def section(**fields: Any) -> Optimizer:
    return Optimizer.model_validate({"lr": 0.1, **fields})


class Two(nn.Module):
    """A matrix and a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.tensor([[1.0, -2.0], [3.0, -4.0]]))
        self.vector = nn.Parameter(torch.tensor([1.0, -1.0]))


def steps(optimizer: Optimizer, count: int = 2) -> Two:
    model = Two()
    group = GroupOptimizer(model, optimizer)
    for step in range(count):
        group.set_rate(optimizer, optimizer.lr)
        model.matrix.grad = torch.tensor([[0.5, -1.0], [2.0, 0.0]]) * (step + 1)
        model.vector.grad = torch.tensor([1.0, -3.0])
        for one in group.ready():
            one.step()
        group.zero_grad()
    return model


def test_adamw_is_torchs_with_decay_on_matrices_only() -> None:
    model = steps(section(name="adamw", weight_decay=0.1))

    plain = Two()
    expected = torch.optim.AdamW(
        [
            {"params": [plain.matrix], "weight_decay": 0.1},
            {"params": [plain.vector], "weight_decay": 0.0},
        ],
        lr=0.1,
    )
    for step in range(2):
        plain.matrix.grad = torch.tensor([[0.5, -1.0], [2.0, 0.0]]) * (step + 1)
        plain.vector.grad = torch.tensor([1.0, -3.0])
        expected.step()
    assert_near(model.matrix, plain.matrix, terms=TERMS)
    assert_near(model.vector, plain.vector, terms=TERMS)


def test_lion_follows_its_formula() -> None:
    model = steps(section(name="lion", betas=(0.9, 0.99), weight_decay=0.5), count=1)

    # m = 0, so u = sign(g): matrix ← p (1 - 0.05) - 0.1 sign(g); no decay on the vector
    expected = torch.tensor([[0.95 - 0.1, -1.9 + 0.1], [2.85 - 0.1, -3.8]])
    assert_near(model.matrix, expected, terms=TERMS)
    assert_near(model.vector, [0.9, -0.9], terms=TERMS)


def test_lion_remembers_with_its_second_beta() -> None:
    model = Two()
    group = GroupOptimizer(model, section(name="lion", betas=(0.9, 0.5)))
    for gradient in (1.0, -0.02):
        model.matrix.grad = torch.full((2, 2), gradient)
        model.vector.grad = torch.zeros(2)
        for one in group.ready():
            one.step()

    # after the first step m = 0.5; then 0.9·0.5 + 0.1·(-0.02) > 0: the sign stays
    expected = torch.tensor([[1.0, -2.0], [3.0, -4.0]]) - 0.2
    assert_near(model.matrix, expected, terms=TERMS)


@pytest.mark.parametrize("name", ["sgd", "rmsprop"])
def test_decay_is_decoupled_where_torchs_own_is_not(name: str) -> None:
    model = Two()
    group = GroupOptimizer(model, section(name=name, weight_decay=0.5))
    group.set_rate(section(name=name, weight_decay=0.5), 0.1)
    model.matrix.grad = torch.zeros(2, 2)
    model.vector.grad = torch.zeros(2)

    for one in group.ready():
        one.step()

    assert_near(model.matrix, Two().matrix * 0.95, terms=TERMS)
    assert torch.equal(model.vector, Two().vector)


def test_rmsprop_is_torchs() -> None:
    model = steps(section(name="rmsprop"))

    plain = Two()
    expected = torch.optim.RMSprop(plain.parameters(), lr=0.1)
    for step in range(2):
        plain.matrix.grad = torch.tensor([[0.5, -1.0], [2.0, 0.0]]) * (step + 1)
        plain.vector.grad = torch.tensor([1.0, -3.0])
        expected.step()
    assert_near(model.matrix, plain.matrix, terms=TERMS)


def test_muon_takes_hidden_matrices_and_adamw_the_rest(build_model: Build) -> None:
    model = build_model(tie_word_embeddings=False)
    optimizer = GroupOptimizer(model, section(name="muon", adamw={"lr": 0.01}))

    optimizer.set_rate(section(name="muon", adamw={"lr": 0.01}), 0.05)

    parts = optimizer.state_dict()["parts"]
    counts = {
        name: sum(len(group["params"]) for group in part["param_groups"])
        for name, part in parts.items()
    }
    hidden = [
        name
        for name, p in model.named_parameters()
        if p.ndim == 2 and "embed" not in name and "lm_head" not in name
    ]
    assert counts["main"] == len(hidden)
    assert counts["others"] == len(list(model.parameters())) - len(hidden)
    assert {group["lr"] for group in parts["main"]["param_groups"]} == {0.05}
    # AdamW keeps its own rate, scaled by the same warm-up and decay
    assert {group["lr"] for group in parts["others"]["param_groups"]} == {0.005}


def test_frozen_weights_stay_out_of_the_optimizer() -> None:
    model = Two()
    model.vector.requires_grad_(False)

    parts = GroupOptimizer(model, section()).state_dict()["parts"]

    assert sum(len(g["params"]) for g in parts["main"]["param_groups"]) == 1
    model.matrix.requires_grad_(False)
    with pytest.raises(ValueError, match="no weight"):
        GroupOptimizer(model, section())


def test_an_optimizer_that_is_not_here_is_refused_with_advice() -> None:
    with pytest.raises(BackendMissing, match=r"adamw8bit.*use 'adamw'"):
        GroupOptimizer(Two(), section(name="adamw8bit"))


@pytest.mark.parametrize(
    ("fields", "held", "computed"),
    [
        ({}, torch.float32, None),
        ({"dtype": "float32"}, torch.float32, None),
        ({"dtype": "bfloat16"}, torch.float32, torch.bfloat16),
        ({"dtype": "bfloat16", "master_weights": False}, torch.bfloat16, None),
    ],
)
def test_weights_are_held_and_computed_in_the_types_asked_for(
    fields: dict[str, Any], held: torch.dtype, computed: torch.dtype | None
) -> None:
    dtypes = trained_dtypes(Training.model_validate(fields))
    model = place_weights(Two(), dtypes)

    assert next(model.parameters()).dtype == held
    assert autocast_of(dtypes) == computed


def test_training_in_float16_is_refused() -> None:
    with pytest.raises(BackendMissing, match="bfloat16"):
        check_trainable(
            trained_dtypes(Training.model_validate({"dtype": "float16"})),
            backend="single",
        )
