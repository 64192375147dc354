"""What does not get past the proof of a push, be the probe large or, beside the bits, small."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from coloop.errors import WeightsNotUpdated
from coloop.models import LoadedModel, build_model
from coloop.spec.model import ScratchModel
from coloop.workers.rollout import TorchEngine
from coloop.workers.sync import (
    ChecksumVerifier,
    checksum_of_engine,
    checksum_of_model,
)
from coloop.workers.sync.checksums import Part, probe_of
from coloop.workers.sync.protocol import Proof
from coloop.workers.worker_api import MERGES

GATE, UP = "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"
TYPES = [torch.float32, torch.bfloat16]
PARTS: tuple[Part, ...] = ("bits", "scores")
"""That two ranks say."""


@pytest.fixture
def loaded() -> LoadedModel:
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    return build_model(section, seed=0, root=Path())


def learn(loaded: LoadedModel, rate: float) -> None:
    """One step of a trainer: every weight moves a little."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.add_(rate * torch.randn(weight.shape, generator=generator))


class OneBit(TorchEngine):
    """Takes the weights, but for the last bit of one number."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        super().load_weights(weights, version)
        with torch.inference_mode():
            held = dict(self.held_weights())[GATE].view(-1)
            word = held.view(torch.int32 if held.element_size() == 4 else torch.int16)
            word[len(word) // 2] ^= 1


class Swapped(TorchEngine):
    """Takes two weights of one shape for one another."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        other = {GATE: UP, UP: GATE}

        def exchanged() -> Iterator[tuple[str, Tensor]]:
            for name, weight in weights:
                yield other.get(name, name), weight

        super().load_weights(exchanged(), version)


class Old(TorchEngine):
    """Says that it took the weights, and keeps those that it had."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        list(weights)
        self._version = version


class Stale(TorchEngine):
    """Takes the weights, and computes with something that was made of those before."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._before = TorchEngine(*arguments, **options)

    def score(self, sequences: Any, temperature: float = 1.0) -> list[list[float]]:
        return self._before.score(sequences, temperature)


def push(
    loaded: LoadedModel,
    engine: TorchEngine,
    verifier: ChecksumVerifier,
    version: int,
    *,
    has_bits: bool,
) -> Proof:
    sent = checksum_of_model(loaded.model, version, dtype=engine.dtype, has_bits=has_bits)
    engine.load_weights(loaded.model.named_parameters(), version)
    return verifier.check(sent, checksum_of_engine(engine, sent.probe))


def test_a_probe_beside_the_bits_is_a_part_of_the_whole_one(loaded: LoadedModel) -> None:
    whole, part = probe_of(loaded.model), probe_of(loaded.model, has_bits=True)

    assert part == whole[:1]


@pytest.mark.parametrize("has_bits", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_pushes_that_arrive_are_proved(
    dtype: torch.dtype, has_bits: bool, loaded: LoadedModel
) -> None:
    engine, verifier = TorchEngine(loaded.model, loaded.tokenizer, dtype=dtype), ChecksumVerifier()

    for version, rate in enumerate((0.1, 1e-4, 1e-7, 0.0), 1):
        learn(loaded, rate)
        proof = push(loaded, engine, verifier, version, has_bits=has_bits)

        assert proof.version == version == engine.version
        assert proof.fingerprint == engine.fingerprint()


@pytest.mark.parametrize("has_bits", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("kind", "rate"), [(OneBit, 1e-3), (Swapped, 1e-3), (Old, 1e-3), (Old, 0.1), (Stale, 0.1)]
)
def test_what_did_not_arrive_whole_is_refused(
    kind: type[TorchEngine], rate: float, dtype: torch.dtype, has_bits: bool, loaded: LoadedModel
) -> None:
    engine = kind(loaded.model, loaded.tokenizer, dtype=dtype)
    verifier = ChecksumVerifier()
    if kind in (Old, Stale):
        push(loaded, engine, verifier, 1, has_bits=has_bits)
    learn(loaded, rate)

    with pytest.raises(WeightsNotUpdated):
        push(loaded, engine, verifier, 2, has_bits=has_bits)


def test_an_engine_that_computes_with_old_numbers_is_found_by_the_smallest_move(
    loaded: LoadedModel,
) -> None:
    engine, verifier = Stale(loaded.model, loaded.tokenizer), ChecksumVerifier()
    push(loaded, engine, verifier, 1, has_bits=True)
    learn(loaded, 1e-5)

    with pytest.raises(WeightsNotUpdated, match=r"moved by .* since version 1, .* by 0"):
        push(loaded, engine, verifier, 2, has_bits=True)


def push_together(
    loaded: LoadedModel, engines: list[TorchEngine], verifier: ChecksumVerifier, version: int
) -> Proof:
    """A push within two ranks that hold the same weights and each say a part."""
    answers = []
    for rank, (engine, part) in enumerate(zip(engines, PARTS, strict=True)):
        sent = checksum_of_model(
            loaded.model, version, dtype=engine.dtype, has_bits=True, part=part
        )
        engine.load_weights(loaded.model.named_parameters(), version)
        received = checksum_of_engine(engine, sent.probe, part="bits" if rank else "all")
        answers.append((sent, received))
    return verifier.check(*MERGES["sync"](answers))


def test_what_ranks_say_together_is_what_one_says(loaded: LoadedModel) -> None:
    engines = [TorchEngine(loaded.model, loaded.tokenizer, dtype=torch.bfloat16) for _ in PARTS]
    alone, together = ChecksumVerifier(), ChecksumVerifier()

    for version, rate in enumerate((0.1, 1e-4, 1e-7, 0.0), 1):
        learn(loaded, rate)
        proof = push_together(loaded, engines, together, version)

        assert proof == push(loaded, engines[0], alone, version, has_bits=True)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("kind", "rate"), [(OneBit, 1e-3), (Swapped, 1e-3), (Old, 1e-3), (Old, 0.1)]
)
def test_a_rank_that_did_not_get_all_is_refused(
    kind: type[TorchEngine], rate: float, rank: int, loaded: LoadedModel
) -> None:
    kinds = [kind if number == rank else TorchEngine for number in range(2)]
    engines = [one(loaded.model, loaded.tokenizer) for one in kinds]
    verifier = ChecksumVerifier()
    if kind is Old:
        push_together(loaded, engines, verifier, 1)
    learn(loaded, rate)

    with pytest.raises(WeightsNotUpdated):
        push_together(loaded, engines, verifier, 2)


def test_an_engine_that_computes_with_old_numbers_is_found_by_another_ranks_move(
    loaded: LoadedModel,
) -> None:
    engines = [
        Stale(loaded.model, loaded.tokenizer),
        TorchEngine(loaded.model, loaded.tokenizer),
    ]
    verifier = ChecksumVerifier()
    push_together(loaded, engines, verifier, 1)
    learn(loaded, 1e-5)

    with pytest.raises(WeightsNotUpdated, match=r"moved by .* since version 1, .* by 0"):
        push_together(loaded, engines, verifier, 2)
