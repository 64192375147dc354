"""A decoder for models whose cache cannot take part in a batch: it reads every text again for each
token.

Right for any model in which a token sees those before it alone, and slow: a text of T tokens costs
as much as T texts. Chosen where `ForwardDecoder` does not say of padded rows what the model says of
each text by itself: recurrent models with states of their own kind, positions that count padding.

N running rows, L tokens of the longest, V vocabulary.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.errors import ModelUnavailable
from coloop.models import vocabulary_of
from coloop.workers.rollout.forward_decoder import READ_AT_ONCE, ForwardDecoder
from coloop.workers.rollout.padding import pad_right

PROBED = 16
"""Tokens that the texts of a probe have at most."""

_log = logging.getLogger(__name__)


class WholeDecoder(ForwardDecoder):
    """Implements `Decoder`."""

    def __init__(self, model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(model, device, dtype)
        self._tokens = torch.zeros(0, 0, dtype=torch.int64, device=device)

    def reserve(self, rows: int, length: int, running: int = 0) -> None:
        if not running:
            self._tokens = self._tokens[:0, :0]

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        assert slot == 0, "a batch ends before the next begins"
        tokens, lengths = pad_right(prompts, self._device)
        prompt_of = torch.arange(len(prompts)).repeat_interleave(torch.tensor(counts))
        prompt_of = prompt_of.to(self._device)
        self._tokens = tokens[prompt_of]
        return self._last_logits(tokens, lengths - 1)[prompt_of]

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        if self.max_length is not None:  # a row may run on behind the end of a full text
            positions = positions.clamp(max=self.max_length - 1)
            longest = min(longest, self.max_length - 1)
        missing = longest + 1 - self._tokens.shape[1]
        if missing > 0:
            self._tokens = torch.nn.functional.pad(self._tokens, (0, missing))
        self._tokens.scatter_(1, positions[:, None], tokens[:, None])
        return self._last_logits(self._tokens[:, : longest + 1], positions)

    def keep(self, rows: int, targets: Tensor, sources: Tensor) -> None:
        chosen = torch.arange(rows, device=self._device)
        chosen[targets] = sources
        self._tokens = self._tokens[chosen]

    def _last_logits(self, tokens: Tensor, last: Tensor) -> Tensor:
        """The logits behind position last[i] of row i, (N, V) float32."""
        rows = max(READ_AT_ONCE // tokens.shape[1], 1)
        found = []
        for part, ends in zip(torch.split(tokens, rows), torch.split(last, rows), strict=True):
            logits = self._model(input_ids=part, use_cache=False).logits
            found.append(logits[torch.arange(len(part), device=self._device), ends].float())
        return torch.cat(found)


def forward_decoder(
    model: PreTrainedModel, device: torch.device, dtype: torch.dtype
) -> ForwardDecoder:
    """The decoder that says what the model says: with its cache where that serves, else without.

    Raises `ModelUnavailable` where a token of the model sees those behind it.
    """
    with_cache = ForwardDecoder(model, device, dtype)
    try:
        if _is_right(with_cache, model):
            return with_cache
        reason = "says something else of padded rows"
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}"
    del with_cache
    without = WholeDecoder(model, device, dtype)
    if not _is_right(without, model):
        raise ModelUnavailable(
            f"{type(model).__name__} lets a token see those behind it, so it cannot write; take a "
            "causal language model"
        )
    _log.warning(
        "%s writes without a cache, which is slow: with it, it %s", type(model).__name__, reason
    )
    return without


def _is_right(decoder: ForwardDecoder, model: PreTrainedModel) -> bool:
    """Whether rows of different lengths, some of which go and come, are what each is by itself."""
    most = vocabulary_of(model)
    first, second, third = (
        [(7 * place + start) % most for place in range(size)]
        for start, size in ((11, 9), (23, 3), (37, 6))
    )
    if decoder.max_length is not None and decoder.max_length < PROBED:
        return True
    device = decoder.device
    decoder.reserve(4, PROBED)
    logits = decoder.admit(0, [first, third, second], [1, 1, 2])
    if not decoder.agrees(logits, [first, third, second, second]):
        return False
    decoder.keep(3, torch.tensor([0], device=device), torch.tensor([3], device=device))
    texts = [[*second, 5 % most], [*third, 17 % most], [*second, 29 % most]]
    for extra in (None, 41, 43, 47):
        if extra is not None:
            texts = [[*text, (extra + row) % most] for row, text in enumerate(texts)]
        last = torch.tensor([text[-1] for text in texts], device=device)
        ends = torch.tensor([len(text) - 1 for text in texts], device=device)
        logits = decoder.step(last, ends, int(ends.max()))
        if not decoder.agrees(logits, texts):
            return False
    decoder.reserve(0, 0)
    return True
