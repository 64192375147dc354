"""Adapters: what learns, what others get of it, and what a checkpoint keeps."""

import copy
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, near
from tests.engine.training.conftest import random_load, tiny_model, training_section
from tests.engine.training.processes import on_ranks
from torch import Tensor

from coloop.errors import CheckpointError, ModelUnavailable
from coloop.models import LoadedModel
from coloop.models.folder import is_own
from coloop.models.waiting import filled, outline_of
from coloop.spec.dtypes import trained_dtypes
from coloop.spec.model import Lora
from coloop.workers.training import ALONE, BACKENDS, Adapter, Learner, Ranks, Scorer, leave
from coloop.workers.training.adapters import Spread, add_adapter, beside
from coloop.workers.training.forward import TokenModel
from coloop.workers.training.states import ModelStates

pytestmark = pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")

TERMS = 10_000
"""More roundings than two updates of these models and rows have, there and back."""

LORA = Lora(rank=3, alpha=6.0)
TRAINING = training_section(
    lr=0.5, optimizer={"name": "sgd", "momentum": 0.5}, mini_batch=4, micro_batch=2
)


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    yield
    leave()


def build(name: str, ranks: Ranks = ALONE, *, lora: Lora = LORA, seed: int = 1) -> Learner:
    return BACKENDS[name](
        tiny_model(),
        TRAINING,
        dtypes=trained_dtypes(TRAINING),
        ranks=ranks,
        adapter=Adapter(lora=lora, seed=seed),
    )


def two_updates(ranks: Ranks, name: str) -> tuple[list[float], dict[str, Tensor], Any]:
    backend = build(name, ranks)
    return go_on(backend), dict(backend.weights()), backend.state_dict()


def go_on(backend: Learner, training: Any = TRAINING) -> list[float]:
    """The losses of two updates."""
    loads = [random_load("grpo", size=7, seed=seed) for seed in range(2)]
    reports = [backend.update([load], training, seed=0) for load in loads]
    return [report.metrics["actor"]["loss"] for report in reports]


def exactly() -> tuple[list[float], dict[str, Tensor]]:
    """The same in float64."""
    model = tiny_model()
    adapter = Adapter(lora=LORA, seed=1)
    add_adapter(model, adapter)
    model.double()
    states = ModelStates(model, TRAINING.optimizer)
    exact = Learner(TokenModel(model), states, adapter)
    return go_on(exact), dict(exact.weights())


@pytest.mark.slow
def test_losses_and_merged_weights_are_those_of_float64_on_every_backend(tmp_path: Path) -> None:
    expected, weights = exactly()
    start = dict(tiny_model().named_parameters())

    answers = [two_updates(ALONE, "single"), two_updates(ALONE, "fsdp2")]
    answers += on_ranks(2, two_updates, tmp_path, "fsdp2")

    assert list(weights) == list(start)
    for losses, merged, state in answers:
        assert list(merged) == list(start)
        assert losses == near(expected, terms=TERMS)
        for name, weight in merged.items():
            assert_near(weight, weights[name], terms=TERMS, scale=1.0)
            is_beside = ".layers." in name and "norm" not in name
            assert torch.equal(weight, start[name]) is not is_beside, name
        assert state["model"] == {}
        assert all("lora_" in name for name in state["adapter"])


SIZES = (7, 1)
"""Rows that two ranks divide unevenly, and fewer than there are ranks."""


def two_roles(ranks: Ranks, name: str, training: Any = TRAINING) -> tuple[Any, Any, bool, bool]:
    """Losses and merged weights of two roles on one base that learn in turns; whether they hold it
    once, and whether its bits are as they were. With `deepspeed` each holds one of its own."""
    base = LoadedModel(model=tiny_model(), tokenizer=None)  # type: ignore[arg-type]
    is_shared = name != "deepspeed"
    start = {name: one.clone() for name, one in base.model.named_parameters()}
    spread: Spread = {}
    roles = [
        BACKENDS[name](
            one.model,
            training,
            dtypes=trained_dtypes(training, is_adapter=True),
            ranks=ranks,
            adapter=Adapter(lora=LORA, seed=seed, is_shared=is_shared, spread=spread),
        )
        for seed, one in enumerate((base, beside(base) if is_shared else copy.deepcopy(base)))
    ]
    losses = []
    for size in SIZES:
        for seed, role in enumerate(roles):
            load = random_load("grpo", size=size, seed=seed)
            losses.append(role.update([load], training, seed=0).metrics["actor"]["loss"])
    held = [places(role) for role in roles]
    adapted = [role.adapted for role in roles]
    kept = all(
        torch.equal(weight, start[name].to(weight.dtype))
        for one in adapted
        if one is not None
        for name, weight in one.base()
    )
    return losses, [dict(role.weights()) for role in roles], held[0] == held[1], kept


def places(backend: Any) -> set[int]:
    """Where its frozen weights lie."""
    backend.adapted.adapter()  # what the last pass has gathered is let go
    named = backend.model.named_parameters()
    frozen = (one for name, one in named if not is_own(name))
    return {getattr(one, "_local_tensor", one.detach()).data_ptr() for one in frozen}


@pytest.mark.slow
def test_two_roles_on_one_base_learn_over_ranks_what_they_learn_in_one_process(
    tmp_path: Path,
) -> None:
    losses, weights, *_ = expected = two_roles(ALONE, "single")

    for answer in (expected, *on_ranks(2, two_roles, tmp_path, "fsdp2")):
        assert answer[0] == near(losses, terms=TERMS)
        for ours, theirs in zip(answer[1], weights, strict=True):
            for name, weight in ours.items():
                assert_near(weight, theirs[name], terms=TERMS, scale=1.0)
        assert answer[2:] == (True, True)
    assert any(not torch.equal(one, weights[1][name]) for name, one in weights[0].items())


@pytest.mark.deepspeed
@pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs DeepSpeed")
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_zero_learns_an_adapter_as_one_process_does(stage: int, tmp_path: Path) -> None:
    optimizer = {"name": "adamw", "epsilon": 1.0, "weight_decay": 0.1}
    training = TRAINING.model_copy(
        update={"optimizer": training_section(lr=0.5, optimizer=optimizer).optimizer}
    )
    zero = training.model_copy(update={"backend": "deepspeed", "zero_stage": stage})
    losses, weights, *_ = two_roles(ALONE, "single", training)

    for answer in on_ranks(2, two_roles, tmp_path, "deepspeed", zero):
        assert answer[0] == near(losses, terms=TERMS)
        for ours, theirs in zip(answer[1], weights, strict=True):
            for name, weight in ours.items():
                assert_near(weight, theirs[name], terms=TERMS, scale=1.0)


@pytest.mark.parametrize("name", ["single", "fsdp2"])
def test_in_half_precision_matrices_are_halves_and_the_adapter_is_not(name: str) -> None:
    training = TRAINING.model_copy(update={"dtype": "bfloat16"})
    dtypes = trained_dtypes(training, is_adapter=True, is_alone=name == "single")
    backend: Any = BACKENDS[name](
        tiny_model(), training, dtypes=dtypes, adapter=Adapter(lora=LORA, seed=1)
    )
    rows = random_load("grpo").rows
    before = backend.score(rows)

    losses = go_on(backend, training)

    backend.adapted.adapter()
    held = {n: (is_own(n), one.dtype) for n, one in backend.model.named_parameters()}
    assert {dtype for own, dtype in held.values() if own} == {torch.float32}
    inner = {dtype for n, (own, dtype) in held.items() if ".base_layer." in n}
    assert inner == {torch.bfloat16}
    assert losses != [0.0, 0.0]
    assert any(
        list(ours) != list(theirs) for ours, theirs in zip(backend.score(rows), before, strict=True)
    )
    beside_them = torch.float32 if name == "single" else torch.bfloat16
    assert {one.dtype for _, one in backend.weights()} == {torch.bfloat16, beside_them}


def test_who_gets_the_merged_weights_says_what_the_learner_says() -> None:
    outline = outline_of(tiny_model())
    backend = build("single")
    backend.update([random_load("grpo")], TRAINING, seed=0)
    rows = random_load("grpo", seed=5).rows

    plain = Scorer(filled(outline, backend.weights()))

    for ours, theirs in zip(plain.score(rows), backend.score(rows), strict=True):
        assert_near(ours, theirs, terms=TERMS)


@pytest.mark.parametrize("name", ["single", "fsdp2"])
def test_a_checkpoint_of_the_adapter_goes_on_bit_for_bit(name: str) -> None:
    _, weights, state = two_updates(ALONE, name)
    resumed = build(name, seed=77)

    resumed.load_state_dict(copy.deepcopy(state))

    assert all(torch.equal(weight, weights[name]) for name, weight in resumed.weights())
    whole = build(name)
    whole.load_state_dict(copy.deepcopy(state))
    again = [
        one.update([random_load("sft")], TRAINING, seed=3).metrics["actor"]["loss"]
        for one in (whole, resumed)
    ]
    assert again[0] == again[1]
    for ours, theirs in zip(whole.weights(), resumed.weights(), strict=True):
        assert torch.equal(ours[1], theirs[1])


def test_it_begins_as_the_model_was_and_dropout_is_for_learning_alone() -> None:
    rows = random_load("grpo").rows
    plain = Scorer(tiny_model()).score(rows)

    backend = build("single", lora=Lora(rank=2, dropout=0.5))

    for own, expected in zip(backend.score(rows), plain, strict=True):
        assert_near(own, expected, terms=TERMS)


def test_only_the_layers_that_are_named_get_one() -> None:
    backend = build("single", lora=Lora(rank=2, targets=("q_proj",)))

    assert {name.split(".")[-4] for name in backend.state_dict()["adapter"]} == {"q_proj"}


def test_a_layer_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelUnavailable, match="no linear layer query; it has down_proj"):
        build("single", lora=Lora(targets=("q_proj", "query")))


def test_an_adapter_of_another_rank_does_not_fit() -> None:
    _, _, state = two_updates(ALONE, "single")

    for other in (Lora(rank=2), Lora(rank=3, targets=("q_proj",))):
        with pytest.raises(CheckpointError):
            build("single", lora=other).load_state_dict(state)
