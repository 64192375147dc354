"""A decoder for any causal language model of transformers, through its own forward and cache.

For architectures that `LeanDecoder` does not hold. Slower: prompts are padded on the left, and a
batch must end before the next one starts.

N running rows, T prompt tokens, V vocabulary.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.errors import ModelUnavailable
from coloop.models.build import positions_of, vocabulary_of
from coloop.workers.cpu.lean_weights import checked
from coloop.workers.rollout.decoder import (
    READ_AT_ONCE,
    Lines,
    pad_left,
    pad_right,
    score_padded,
    token_log_probs,
)

HALVES = (torch.bfloat16, torch.float16)
NEAR, HALF_NEAR = 1e-3, 2.0**-4
"""Logits that are apart by no more than this share of their size are the same but for rounding."""
_STATES = ("conv_states", "recurrent_states")  # what layers keep that are no attention


class ForwardDecoder:
    joins_running = False
    bytes_per_token = 0

    def __init__(self, model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> None:
        own = copy.deepcopy(model).train(False).requires_grad_(False)
        torch.nn.Module.to(own, device=device, dtype=dtype)
        self._model: Any = own
        self.max_length: int | None = positions_of(model)
        self.device = self._device = device
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self._cache: Any = None
        self._is_real = torch.empty(0)

    def reserve(self, rows: int, length: int, running: int = 0) -> None:
        del rows, length
        if not running:
            self._cache = None

    def expect(self, tokens: int) -> None:
        del tokens

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        assert slot == 0, "a batch must end before the next one starts"
        tokens, is_real = pad_left(prompts, self._device)
        places = (is_real.cumsum(-1) - 1).clamp_(min=0)
        prompt_of = torch.arange(len(prompts)).repeat_interleave(torch.tensor(counts))
        prompt_of = prompt_of.to(self._device)
        logits = self._forward(tokens, is_real, places, None)
        _select(self._cache, prompt_of)
        self._is_real = is_real[prompt_of]
        return logits[prompt_of]

    def take(self, slot: int, length: int) -> Lines | None:
        """None: what one row has cannot be put into another batch."""
        del slot, length
        return None

    def extend(
        self,
        slot: int,
        lines: Sequence[Lines],
        texts: Sequence[Sequence[int]],
        counts: Sequence[int],
    ) -> None:
        raise AssertionError("there are no sequences to extend")

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        del longest
        if self.max_length is not None:  # a row may run on behind the end of a full text
            positions = positions.clamp(max=self.max_length - 1)
        self._is_real = torch.cat([self._is_real, torch.ones_like(self._is_real[:, :1])], dim=1)
        return self._forward(tokens[:, None], self._is_real, positions[:, None], self._cache)

    def _forward(self, tokens: Tensor, is_real: Tensor, places: Tensor, cache: Any) -> Tensor:
        given = {"position_ids": places} if self._takes_positions else {}
        output = self._model(
            input_ids=tokens, attention_mask=is_real, past_key_values=cache, use_cache=True, **given
        )
        self._cache = output.past_key_values
        logits: Tensor = output.logits[:, -1].float()
        return logits.clone()

    def keep(self, rows: int, targets: Tensor, sources: Tensor) -> None:
        if not rows:
            self._cache = None
            return
        chosen = torch.arange(rows, device=self._device)
        chosen[targets] = sources
        _select(self._cache, chosen)
        self._is_real = self._is_real[chosen]

    def score(self, sequences: Sequence[Sequence[int]], temperature: float) -> list[Tensor]:
        def scored(tokens: Tensor, lengths: Tensor) -> Tensor:
            is_real = torch.arange(tokens.shape[1], device=self._device) < lengths[:, None]
            output = self._model(input_ids=tokens, attention_mask=is_real.long(), use_cache=False)
            return token_log_probs(output.logits, tokens, lambda logits: logits, temperature)

        return score_padded(sequences, self._device, scored)

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        own = dict(self._model.named_parameters())
        tied = set(self._model.state_dict()) - set(own)  # other names of weights that are in `own`
        shapes = {name: tuple(parameter.shape) for name, parameter in own.items()}
        for name, weight in checked(weights, shapes, tied):
            own[name].copy_(weight)

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self._model.named_parameters()

    def held(self) -> Iterator[Tensor]:
        yield from self._model.parameters()

    def agrees(self, logits: Tensor, texts: Sequence[Sequence[int]]) -> bool:
        """Whether logits (N, V) are those of each whole text by itself."""
        alone = torch.stack([self._alone(text) for text in texts])
        share = HALF_NEAR if self._model.dtype in HALVES else NEAR
        return bool((logits - alone).norm() <= share * alone.norm())

    def _alone(self, text: Sequence[int]) -> Tensor:
        tokens = torch.tensor([text], device=self._device)
        logits: Tensor = self._model(input_ids=tokens, use_cache=False).logits[0, -1].float()
        return logits


def _select(cache: Any, rows: Tensor) -> None:
    """Row i of a cache becomes what row rows[i] was."""
    for layer in cache.layers:
        for states in filter(None, (getattr(layer, name, None) for name in _STATES)):
            for index, state in states.items():
                if state is not None:
                    states[index] = state.index_select(0, rows)
        if getattr(layer, "keys", None) is not None:
            layer.batch_select_indices(rows)


# A decoder that reads every text again for each token, for models whose cache cannot take part in a
# batch (recurrent states of their own kind, positions that count padding). Right where a token sees
# those before it alone. N running rows, L tokens of the longest, V vocabulary.

PROBED = 16  # tokens that the texts of a probe have at most

_log = logging.getLogger(__name__)


class WholeDecoder(ForwardDecoder):
    def __init__(self, model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(model, device, dtype)
        self._tokens = torch.zeros(0, 0, dtype=torch.int64, device=device)

    def reserve(self, rows: int, length: int, running: int = 0) -> None:
        if not running:
            self._tokens = self._tokens[:0, :0]

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        assert slot == 0, "a batch must end before the next one starts"
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
        rows = max(READ_AT_ONCE // tokens.shape[1], 1)
        parts = []
        for part, ends in zip(torch.split(tokens, rows), torch.split(last, rows), strict=True):
            logits = self._model(input_ids=part, use_cache=False).logits
            parts.append(logits[torch.arange(len(part), device=self._device), ends].float())
        return torch.cat(parts)


def forward_decoder(
    model: PreTrainedModel, device: torch.device, dtype: torch.dtype
) -> ForwardDecoder:
    """The decoder that says what the model says: with its cache where that serves, else without.
    Raises `ModelUnavailable` where a token of the model sees those behind it."""
    with_cache = ForwardDecoder(model, device, dtype)
    try:
        if _is_right(with_cache, model):
            return with_cache
        reason = "gives different results for padded rows"
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}"
    del with_cache
    without = WholeDecoder(model, device, dtype)
    if not _is_right(without, model):
        raise ModelUnavailable(
            f"{type(model).__name__} lets a token attend to later ones, so it cannot generate; use "
            "a causal language model"
        )
    _log.warning(
        "%s generates without a cache, which is slow: with one, it %s", type(model).__name__, reason
    )
    return without


def _is_right(decoder: ForwardDecoder, model: PreTrainedModel) -> bool:
    """Whether rows of different lengths, some of which go and come, are what each is by itself."""
    most = vocabulary_of(model)
    first, second, third = (
        [(7 * index + start) % most for index in range(size)]
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
