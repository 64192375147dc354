"""A decoder for any causal language model of transformers, through its own forward and its own
cache.

For architectures that `LeanDecoder` does not hold. Right, but slower: prompts are padded on the
left, and a batch ends before the next begins, because a foreign cache cannot take a row in.

N running rows, T prompt tokens, V vocabulary.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.errors import WeightsNotUpdated
from coloop.models import positions_of
from coloop.workers.cpu.lean_weights import names_differ
from coloop.workers.rollout.decoder import Lines
from coloop.workers.rollout.padding import pad_left, pad_right, similar_lengths
from coloop.workers.rollout.scoring import token_log_probs

HALVES = (torch.bfloat16, torch.float16)
NEAR, HALF_NEAR = 1e-3, 2.0**-4
"""Logits that are apart by no more than this share of their size are the same but for rounding."""
_STATES = ("conv_states", "recurrent_states")
"""What layers keep that are no attention."""
READ_AT_ONCE = 8192
"""Most tokens, padding included, scored in one pass."""


class ForwardDecoder:
    """Implements `Decoder`."""

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
        assert slot == 0, "a batch ends before the next begins"
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
        raise AssertionError("no lines were given, so none can be extended")

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        del longest
        if self.max_length is not None:  # a row may run on behind the end of a full text
            positions = positions.clamp(max=self.max_length - 1)
        self._is_real = torch.cat([self._is_real, torch.ones_like(self._is_real[:, :1])], dim=1)
        return self._forward(tokens[:, None], self._is_real, positions[:, None], self._cache)

    def _forward(self, tokens: Tensor, is_real: Tensor, places: Tensor, cache: Any) -> Tensor:
        """The logits behind the last token of each row, (N, V) float32."""
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
        scores: list[Tensor] = [torch.zeros(0)] * len(sequences)
        for places, chunk in similar_lengths(sequences, READ_AT_ONCE):
            tokens, lengths = pad_right(chunk, self._device)
            if not tokens.shape[1]:
                continue
            is_real = torch.arange(tokens.shape[1], device=self._device) < lengths[:, None]
            output = self._model(input_ids=tokens, attention_mask=is_real.long(), use_cache=False)
            found = token_log_probs(output.logits, tokens, lambda logits: logits, temperature)
            for row, (place, length) in enumerate(zip(places, lengths.tolist(), strict=True)):
                scores[place] = found[row, :length]
        return scores

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        own = dict(self._model.named_parameters())
        tied = set(self._model.state_dict()) - set(own)  # other names of weights that are in `own`
        missing, unknown = set(own), []
        for name, given in weights:
            if name not in own:
                if name not in tied:
                    unknown.append(name)
                continue
            if given.shape != own[name].shape:
                raise WeightsNotUpdated(
                    f"{name} has shape {tuple(given.shape)}, the engine's model has"
                    f" {tuple(own[name].shape)}"
                )
            own[name].copy_(given.detach())
            missing.discard(name)
        if missing or unknown:
            raise WeightsNotUpdated(names_differ(missing, unknown))

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self._model.named_parameters()

    def held(self) -> Iterator[Tensor]:
        yield from self._model.parameters()

    def agrees(self, logits: Tensor, texts: Sequence[Sequence[int]]) -> bool:
        """Whether logits (N, V) are those that the model says behind whole texts, each by
        itself."""
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
