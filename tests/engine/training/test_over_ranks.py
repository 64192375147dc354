"""Optimizers and adapters over ranks: what one process learns in several steps, and from a
checkpoint on as many ranks as there are then.

An adapter's dropout is the exception: each rank draws masks of its own, from the update's seed and
its number. So weights differ from those of one process, and from those of other ranks' number; what
holds is that ranks hold the same weights, that a resumed run draws what the whole one would have
drawn, and that on average over seeds they learn what one process learns.
"""

import copy
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near
from tests.engine.training.conftest import random_load, tiny_model, training_section
from tests.engine.training.processes import on_ranks
from tests.matrix import also
from torch import Tensor

from coloop.spec.dtypes import trained_dtypes
from coloop.spec.model import Lora
from coloop.workers.fingerprint import fingerprint
from coloop.workers.training import ALONE, BACKENDS, Adapter, Learner, Ranks, leave
from coloop.workers.training.learner import SEED_STRIDE

pytestmark = pytest.mark.slow

TERMS = 10_000
"""More roundings than three updates of these models and rows have, there and back."""
REPLICAS = "replicas"
"""`fsdp2` with model states that are whole on each rank."""
SPREAD_OR_NOT = ["fsdp2", REPLICAS]
MOMENTUM = {"name": "sgd", "momentum": 0.5}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "muon": {"name": "muon", "lr": 0.02, "epsilon": 1.0, "adamw": {"lr": 0.1, "weight_decay": 0.1}},
    "sgd with momentum": {**MOMENTUM, "lr": 0.2, "weight_decay": 0.1},
    "adapter": {**MOMENTUM, "lr": 0.5},
}
needs_peft = pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """A backend that shards meets nobody here; its group goes with the module."""
    yield
    leave()


def section(name: str, optimizer: dict[str, Any], **fields: Any) -> Any:
    backend = name.replace(REPLICAS, "fsdp2")
    given = {"mini_batch": 5, "micro_batch": 2, **fields}
    return training_section(optimizer=optimizer, backend=backend, **given)


def build(name: str, ranks: Ranks, training: Any, lora: Lora | None = None) -> Learner:
    adapter = None if lora is None else Adapter(lora=lora, seed=1)
    return BACKENDS[training.backend](
        tiny_model(),
        training,
        dtypes=trained_dtypes(training, is_adapter=lora is not None),
        ranks=ranks,
        **({"adapter": adapter} if adapter else {}),
        **({"is_spread": False} if name == REPLICAS else {}),
    )


def of(kind: str, name: str, ranks: Ranks) -> tuple[Learner, Any]:
    """A backend with one of `OPTIMIZERS`, and its section."""
    training = section(name, OPTIMIZERS[kind])
    lora = Lora(rank=3, alpha=6.0) if kind == "adapter" else None
    return build(name, ranks, training, lora), training


def go_on(backend: Learner, training: Any, first: int, last: int) -> None:
    """Some updates; Muon, which orthogonalises in bfloat16 and so enlarges rounding a hundredfold,
    does it in float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "bfloat16", Tensor.float)
        for one in range(first, last):
            backend.update([random_load("grpo", size=7, seed=one)], training, seed=one)


def snapshot(backend: Learner) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in backend.weights()}


def shared(backend: Learner, ranks: Ranks) -> dict[str, Any]:
    """The first rank's state, as a file brings it to all."""
    return copy.deepcopy(dict(ranks.gathered(backend.state_dict())[0]))


def three_updates(ranks: Ranks, name: str, kinds: list[str]) -> dict[str, Any]:
    """By kind of optimizer: weights after three updates, and what was kept after the second."""
    found = {}
    for kind in kinds:
        backend, training = of(kind, name, ranks)
        go_on(backend, training, 0, 2)
        state = shared(backend, ranks)
        go_on(backend, training, 2, 3)
        found[kind] = (snapshot(backend), state)
    return found


def the_third(ranks: Ranks, name: str, states: dict[str, Any]) -> dict[str, dict[str, Tensor]]:
    """Weights after the third update, from what was kept after the second."""
    found = {}
    for kind, state in states.items():
        backend, training = of(kind, name, ranks)
        backend.load_state_dict(copy.deepcopy(state))
        go_on(backend, training, 2, 3)
        found[kind] = snapshot(backend)
    return found


@cache
def expected() -> dict[str, Any]:
    return three_updates(ALONE, "single", list(OPTIMIZERS))


def assert_alike(kind: str, ours: dict[str, Tensor]) -> None:
    theirs, _ = expected()[kind]
    assert list(ours) == list(theirs)
    for name, weight in ours.items():
        assert_near(weight, theirs[name], terms=TERMS, scale=1.0)


@needs_peft
@pytest.mark.parametrize("name", ["fsdp2", also(REPLICAS)])
def test_ranks_learn_what_one_process_does_and_others_go_on_from_it(
    name: str, tmp_path: Path
) -> None:
    answers = on_ranks(2, three_updates, tmp_path, name, list(OPTIMIZERS))

    start = dict(tiny_model().named_parameters())
    for answer in answers:
        for kind, (weights, _) in answer.items():
            assert_alike(kind, weights)
            assert any(not torch.equal(one, start[n]) for n, one in weights.items()), kind
    states = {kind: state for kind, (_, state) in answers[0].items()}
    other = SPREAD_OR_NOT[name == "fsdp2"]
    for found in [
        the_third(ALONE, "single", states),
        *on_ranks(3, the_third, tmp_path, other, states),
    ]:
        for kind, weights in found.items():
            assert_alike(kind, weights)


# --- an adapter's dropout

HALF = Lora(rank=3, alpha=6.0, dropout=0.5)
SEEDS = 40
TOO_FAR = 5.0
"""Standard errors between two means of the same thing: of a thousand weights, none."""


def with_dropout(name: str, ranks: Ranks, **fields: Any) -> tuple[Learner, Any]:
    wanted = {"mini_batch": None, "dropout": True, **fields}
    training = section(name, {**MOMENTUM, "lr": 0.5}, **wanted)
    return build(name, ranks, training, HALF), training


def two_of_three(ranks: Ranks, name: str) -> dict[str, Any]:
    """Weights after three updates, in one go and with a checkpoint on the way."""
    backend, training = with_dropout(name, ranks)
    go_on(backend, training, 0, 2)
    state = shared(backend, ranks)
    go_on(backend, training, 2, 3)
    resumed, _ = with_dropout(name, ranks)
    resumed.load_state_dict(state)
    go_on(resumed, training, 2, 3)
    return {"whole": snapshot(backend), "resumed": snapshot(resumed), "state": state}


@needs_peft
@pytest.mark.parametrize("name", ["fsdp2", also(REPLICAS)])
def test_with_dropout_ranks_agree_and_a_resumed_run_draws_what_the_whole_would(
    name: str, tmp_path: Path
) -> None:
    answers = on_ranks(2, two_of_three, tmp_path, name)

    marks = {fingerprint(one[moment].items()) for one in answers for moment in ("whole", "resumed")}
    assert len(marks) == 1
    alone = two_of_three(ALONE, "single")
    assert fingerprint(alone["whole"].items()) not in marks, "other masks"
    assert fingerprint(alone["whole"].items()) == fingerprint(alone["resumed"].items())
    further, training = with_dropout("single", ALONE)
    further.load_state_dict(answers[0]["state"])
    go_on(further, training, 2, 3)
    assert all(torch.isfinite(weight).all() for weight in snapshot(further).values())


def moves(ranks: Ranks, name: str) -> Tensor:
    """(seed, weight) how far one update moves the adapter's second matrices."""
    backend, training = with_dropout(name, ranks)
    start, found = shared(backend, ranks), []
    for seed in range(SEEDS):
        backend.load_state_dict(copy.deepcopy(start))
        backend.update([random_load("grpo", size=7)], training, seed=seed)
        learned = backend.adapted.adapter()  # type: ignore[union-attr]
        found.append(torch.cat([one.flatten() for n, one in learned.items() if "lora_B" in n]))
    return torch.stack(found).double()


@needs_peft
@pytest.mark.parametrize("name", [also("fsdp2"), REPLICAS])
def test_with_dropout_ranks_learn_on_average_what_one_process_does(
    name: str, tmp_path: Path
) -> None:
    (ours, _), theirs = on_ranks(2, moves, tmp_path, name), moves(ALONE, "single")

    error = ((ours.var(0) + theirs.var(0)) / SEEDS).sqrt()
    assert float(error.min()) > 0.0
    assert float(((ours.mean(0) - theirs.mean(0)).abs() / error).max()) < TOO_FAR


def mask(ranks: Ranks, name: str) -> Tensor:
    """What a rank draws first in an update."""
    backend: Any
    backend, _ = with_dropout(name, ranks)
    with backend._learning(5):
        return torch.rand(8)


@needs_peft
def test_each_rank_draws_from_the_seed_of_the_update_and_its_number(tmp_path: Path) -> None:
    for rank, drawn in enumerate(on_ranks(2, mask, tmp_path, REPLICAS)):
        own = torch.Generator().manual_seed(5 + rank * SEED_STRIDE)
        assert torch.equal(drawn, torch.rand(8, generator=own))


@needs_peft
def test_what_is_computed_again_has_the_masks_of_the_first_time() -> None:
    kept = []
    for is_again in (False, True):
        backend, training = with_dropout("single", ALONE, gradient_checkpointing=is_again)
        go_on(backend, training, 0, 2)
        kept.append(snapshot(backend))

    for name, weight in kept[0].items():
        assert_near(weight, kept[1][name], terms=TERMS, scale=1.0)
