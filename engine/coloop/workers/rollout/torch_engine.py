"""The rollout engine of our own: plain torch, with its own copy of the weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, UntypedStorage
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.models.build import vocabulary_of
from coloop.workers.cpu.lean_decoder import LeanDecoder, Rotary
from coloop.workers.cpu.lean_weights import LeanWeights, shape_of
from coloop.workers.fingerprint import fingerprint
from coloop.workers.rollout.decoder import Decoder
from coloop.workers.rollout.engine import RolloutEngine
from coloop.workers.rollout.forward_decoder import forward_decoder
from coloop.workers.rollout.graphs import StepGraphs, recorder_of
from coloop.workers.rollout.schedule import Schedule
from coloop.workers.rollout.stops import StopTexts, end_tokens
from coloop.workers.rollout.texts import KeptTexts

MAX_CONCURRENCY = 256
"""Rows written at once where nothing else is said."""
CACHE_BYTES = 2 * 2**30
"""Most memory of the cache on a CPU; fixed, because what is free would differ from run to run."""
GPU_CACHE_SHARE = 0.3
"""Most memory of the cache on a GPU, as a share of all that it has."""
KEPT_SHARE = 0.5
"""Most memory of what kept texts hold, as a share of that of the cache, beside it."""
STEPS_BETWEEN_LOOKS = {"cpu": 1, "cuda": 8}
"""Steps after which ended rows are looked for; on a GPU each look waits for the device."""


class TorchEngine(RolloutEngine):
    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        version: int = 0,
        max_num_seqs: int | None = None,
        max_length: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        cache_bytes: int | None = None,
        enforce_eager: bool = False,
    ) -> None:
        """Copies the model's weights.

        `max_num_seqs`: rows at once. `max_length`: most tokens of a text, below the model's limit.
        `dtype`: None: the model's. `cache_bytes`: most memory of the cache. `enforce_eager`: no
        CUDA graphs.
        """
        device, vocabulary = torch.device(device), vocabulary_of(model)
        self._device, dtype = device, dtype or model.dtype
        self._aside = Aside()
        with torch.inference_mode():
            self._decoder = build_decoder(model, device, dtype)
        cache_bytes = cache_bytes or _cache_bytes(device)
        kept = KeptTexts(int(KEPT_SHARE * cache_bytes))
        recorder = recorder_of(device) if self.is_lean and not enforce_eager else None
        self._schedule = Schedule(
            self._decoder,
            kept,
            end_tokens(model, tokenizer).to(device),
            StopTexts(tokenizer, vocabulary, device),
            max_concurrency=max_num_seqs or MAX_CONCURRENCY,
            cache_bytes=cache_bytes,
            steps_between_looks=STEPS_BETWEEN_LOOKS.get(device.type, 1),
            graphs=None if recorder is None else StepGraphs(recorder),
        )
        limits = [limit for limit in (self._decoder.max_length, max_length) if limit]
        super().__init__(
            self._schedule,
            kept,
            version=version,
            dtype=dtype,
            max_length=min(limits, default=None),
            vocabulary=vocabulary,
        )

    @property
    def is_lean(self) -> bool:
        return isinstance(self._decoder, LeanDecoder)

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        self._check_whole()
        with torch.inference_mode():
            return [scores.tolist() for scores in self._decoder.score(sequences, temperature)]

    def held_weights(self) -> Iterable[tuple[str, Tensor]]:
        return self._decoder.named_weights()

    def fingerprint(self) -> int:
        with torch.inference_mode():
            return fingerprint(self._decoder.named_weights())

    def sleep(self, *, with_weights: bool = True) -> None:
        """Frees the cache, and weights that are not in the host's memory already."""
        assert not self.unfinished, "the engine is generating"
        self._give_back_cache()
        if with_weights and self._device.type != "cpu":
            self._aside.put(self._decoder.held())

    def wake(self) -> None:
        """Restores the weights; the cache comes with the first text."""
        self._aside.bring_back()

    def max_concurrency(self) -> int | None:
        return self._schedule.max_concurrency()

    def limit_concurrency(self, rows: int) -> None:
        assert not self.unfinished, "the engine is generating"
        self._kept.forget_lines()
        self._schedule.limit_concurrency(rows)

    def close(self) -> None:
        """Frees the cache; the weights go with the object."""
        self._forget_all()
        self._give_back_cache()

    def _give_back_cache(self) -> None:
        self._kept.forget_lines()
        self._schedule.give_back_room()

    def _take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._aside.make_room()
        with torch.inference_mode():
            self._decoder.load(weights)


def _cache_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return CACHE_BYTES
    return int(GPU_CACHE_SHARE * torch.cuda.get_device_properties(device).total_memory)


def build_decoder(model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> Decoder:
    """The fast decoder where it holds the model exactly, else the model's own forward."""
    shape = shape_of(model.config)
    if shape is None:
        return forward_decoder(model, device, dtype)
    weights = LeanWeights(shape, device, dtype)
    weights.load(model.named_parameters())
    return LeanDecoder(weights, Rotary.of(model.base_model.rotary_emb, device))


# Weights of a sleeping engine, in host memory. Tensors and their views stay the same objects.
#     put ──► the host's memory ──bring_back──► where they were, bit for bit
#                      └───────make_room──────► room for those that come instead


class Aside:
    def __init__(self) -> None:
        self._put: dict[int, tuple[UntypedStorage, Tensor]] = {}
        """Memory that is gone, and what was in it, by its number."""

    def put(self, tensors: Iterable[Tensor]) -> None:
        """Move these tensors to host memory; what breaks off half-way can be brought back."""
        storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage() for tensor in tensors}
        for number, storage in storages.items():
            if number in self._put or not storage.nbytes():
                continue
            is_pinned = storage.device.type == "cuda"
            kept = torch.empty(storage.nbytes(), dtype=torch.uint8, pin_memory=is_pinned)
            kept.copy_(_bytes_of(storage))
            self._put[number] = (storage, kept)
            storage.resize_(0)

    def bring_back(self) -> None:
        """All is where it was; where memory is short, the rest can be brought back later."""
        for number, (storage, kept) in list(self._put.items()):
            storage.resize_(kept.numel())
            _bytes_of(storage).copy_(kept)
            del self._put[number]

    def make_room(self) -> None:
        """The memory of what was put aside, without what was in it: somebody writes all of it."""
        for number, (storage, kept) in list(self._put.items()):
            storage.resize_(kept.numel())
            del self._put[number]


def _bytes_of(storage: UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
