"""The rollout engine of our own: plain torch, on a CPU or a GPU.

Holds its own copy of the weights, so that a version stays what it was until the next is loaded
whole. Knows nothing of rows, rewards or phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.errors import WeightsNotUpdated
from coloop.models.fingerprint import fingerprint
from coloop.rollout.checks import check_requests
from coloop.rollout.decoder import Decoder
from coloop.rollout.forward_decoder import ForwardDecoder
from coloop.rollout.lean_decoder import LeanDecoder
from coloop.rollout.lean_weights import LeanWeights, shape_of
from coloop.rollout.protocol import Generation, GenerationRequest, Progress, ShouldStop
from coloop.rollout.rotary import Rotary
from coloop.rollout.schedule import SLACK, Schedule
from coloop.rollout.slots import Ended, Slots
from coloop.rollout.stops import StopTexts

ROWS_AT_ONCE = 256
"""Rows written at once where nothing else is said."""
CACHE_BYTES = 2 * 2**30
"""Most memory of the cache on a CPU; fixed, because what is free would differ from run to run."""
GPU_CACHE_SHARE = 0.3
"""Most memory of the cache on a GPU, as a share of all that it has."""
STEPS_BETWEEN_LOOKS = {"cpu": 1, "cuda": 8}
"""Steps after which ended rows are looked for; on a GPU each look waits for the device."""


class TorchEngine:
    """Implements `RolloutEngine`."""

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
    ) -> None:
        """Copies the model's weights; the model itself is not kept.

        `max_num_seqs`: rows written at once. `max_length`: most tokens of a text where the model
        could read more. `dtype`: null, as the model. `cache_bytes`: most memory of the cache; fewer
        rows are written at once where it is short.
        """
        self._device = torch.device(device)
        self._dtype = dtype or model.dtype
        self._tokenizer = tokenizer
        with torch.inference_mode():
            self._decoder = build_decoder(model, self._device, self._dtype)
        limits = [limit for limit in (self._decoder.max_length, max_length) if limit]
        self._max_length = min(limits, default=None)
        self._rows_at_once = max_num_seqs or ROWS_AT_ONCE
        self._cache_bytes = cache_bytes or _cache_bytes(self._device)
        self._vocabulary = model.config.vocab_size
        self._is_end = self._end_tokens(model)
        self._version: int | None = version
        self._stops: dict[tuple[tuple[str, ...], ...], StopTexts] = {}

    @property
    def version(self) -> int:
        """Version of the weights held."""
        return self._loaded_version()

    @property
    def max_length(self) -> int | None:
        """Most tokens of a prompt and what may be written to it; None: no limit."""
        return self._max_length

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights held."""
        return self._dtype

    @property
    def is_lean(self) -> bool:
        """Whether the fast decoder holds this architecture."""
        return isinstance(self._decoder, LeanDecoder)

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> list[Generation]:
        """One generation for each request, in the order of the requests."""
        version = self._loaded_version()
        check_requests(requests, self._max_length, self._vocabulary)
        if not requests:
            return []
        looks = STEPS_BETWEEN_LOOKS.get(self._device.type, 1)
        with torch.inference_mode():
            longest = max(len(r.prompt_ids) + r.max_new_tokens for r in requests) + SLACK
            capacity = self._capacity(len(requests), longest)
            self._decoder.reserve(capacity, longest)
            slots = Slots(requests, capacity, self._is_end, self._stops_of(requests), SLACK)
            schedule = Schedule(self._decoder, requests, slots, capacity, looks)
            ended = schedule.run(progress, should_stop)
        return _in_order(requests, ended, version)

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        """Log-prob of every token given those before it; the first of a sequence is 0."""
        self._loaded_version()
        with torch.inference_mode():
            return [scores.tolist() for scores in self._decoder.score(sequences, temperature)]

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Takes all weights; where that fails half-way, the engine refuses to work until a load
        succeeds."""
        self._version = None
        with torch.inference_mode():
            self._decoder.load(weights)
        self._version = version

    def fingerprint(self) -> int:
        """A number of all weights held."""
        with torch.inference_mode():
            return fingerprint(self._decoder.named_weights())

    def _capacity(self, rows: int, longest: int) -> int:
        """Rows that are written at once: as many as are wanted, allowed, and fit into the cache."""
        rows = min(rows, self._rows_at_once)
        row_bytes = self._decoder.bytes_per_token * longest
        return max(min(rows, self._cache_bytes // row_bytes), 1) if row_bytes else rows

    def _loaded_version(self) -> int:
        if self._version is None:
            raise WeightsNotUpdated(
                "the last update of the rollout engine's weights failed half-way; load them again"
            )
        return self._version

    def _end_tokens(self, model: PreTrainedModel) -> Tensor:
        """Which tokens end a text, (V,): those of the tokenizer and of the model's generation
        config."""
        configured = model.generation_config.eos_token_id if model.generation_config else None
        found = [configured] if isinstance(configured, int) else list(configured or ())
        if self._tokenizer.eos_token_id is not None:
            found.append(self._tokenizer.eos_token_id)
        is_end = torch.zeros(self._vocabulary, dtype=torch.bool)
        is_end[[token for token in found if token < self._vocabulary]] = True
        return is_end.to(self._device)

    def _stops_of(self, requests: Sequence[GenerationRequest]) -> StopTexts | None:
        """The stop texts of these requests; a table of them is made once."""
        sets = tuple(dict.fromkeys(request.stop for request in requests))
        if not any(sets):
            return None
        if sets not in self._stops:
            self._stops[sets] = StopTexts(self._tokenizer, sets, self._vocabulary, self._device)
        return self._stops[sets]


def _cache_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return CACHE_BYTES
    return int(GPU_CACHE_SHARE * torch.cuda.get_device_properties(device).total_memory)


def build_decoder(model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> Decoder:
    """The fast decoder where it holds the model exactly, else the model's own forward."""
    shape = shape_of(model.config)
    if shape is None:
        return ForwardDecoder(model, device, dtype)
    weights = LeanWeights(shape, device, dtype)
    weights.load(model.named_parameters())
    return LeanDecoder(weights, Rotary.of(model.base_model.rotary_emb, device))


def _in_order(
    requests: Sequence[GenerationRequest], ended: Sequence[Ended], version: int
) -> list[Generation]:
    by_request = {row.request: row for row in ended}
    found = []
    for number, request in enumerate(requests):
        row = by_request[number]
        found.append(
            Generation(
                id=request.id,
                token_ids=row.token_ids,
                log_probs=row.log_probs,
                reason=row.reason,
                version=version,
                sampled_log_probs=row.sampled_log_probs if _is_cut(request) else None,
            )
        )
    return found


def _is_cut(request: GenerationRequest) -> bool:
    is_greedy = request.greedy or request.temperature == 0
    return not is_greedy and (request.top_p < 1 or request.top_k is not None)
