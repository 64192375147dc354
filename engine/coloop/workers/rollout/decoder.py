"""What the schedule asks of a model: prompts read into slots, one token more for all, log-probs.

Rows of a batch stand in slots 0 .. N-1 without a gap. The schedule fills slots at the end and
closes gaps by moving rows; a decoder only follows with what it caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from coloop.spec.table_sizes import loss_chunk


@dataclass(frozen=True, slots=True)
class Lines:
    """A cache's first T tokens of a text; only the decoder that took it reads it."""

    values: Tensor
    length: int
    """T"""
    token_ids: tuple[int, ...] = ()
    """Those tokens, where they are a whole prompt."""
    logits: Tensor | None = None
    """(V,) of the token that follows a prompt."""

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


class Decoder(Protocol):
    """One model with a cache of keys and values."""

    joins_running: bool
    """Whether rows can join a running batch; otherwise a batch ends before the next one starts."""
    bytes_per_token: int
    """Memory that the cache takes for one token of one row; 0 where the decoder cannot tell."""
    max_length: int | None
    """Most tokens of one text, prompt included; None where the model has no limit."""

    def reserve(self, rows: int, length: int, running: int = 0) -> None:
        """Make room for exactly so many rows of so many tokens; the first `running` slots stay."""

    def expect(self, tokens: int) -> None:
        """At most so many tokens are to be written to each row of the batch that begins."""

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        """Read prompts, the longest first, into slots from `slot` on: prompt i into counts[i] of
        them.

        The logits of the next token of each filled slot, (n, V).
        """

    def take(self, slot: int, length: int) -> Lines | None:
        """A copy of what a slot holds of its first tokens; None where it cannot be taken."""

    def extend(
        self,
        slot: int,
        lines: Sequence[Lines],
        texts: Sequence[Sequence[int]],
        counts: Sequence[int],
    ) -> None:
        """Like `admit` for texts i without their last token, which the next `step` appends; the
        tokens of lines i are not read again. Only for a decoder that gave lines."""

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        """Append token i at position i of slot i; the next logits, (N, V). tokens, positions (N,);
        no position is above `longest`."""

    def keep(self, rows: int, targets: Tensor, sources: Tensor) -> None:
        """Slot targets[i] takes what slot sources[i] had; only the first `rows` slots are left."""

    def score(self, sequences: Sequence[Sequence[int]], temperature: float) -> list[Tensor]:
        """Log-prob of every token given those before it, float32; the first of a sequence is 0."""

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Takes all weights by their Hugging Face names; a missing or unknown name is an error."""

    def named_weights(self) -> Iterator[tuple[str, Tensor]]: ...

    def held(self) -> Iterator[Tensor]:
        """Views of all memory of weights, to be moved away between calls."""


# B sequences, T longest length, W model width, V vocabulary.


def pad_right(
    sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Token ids with zeros behind each end (B, T), and lengths (B,)."""
    lengths = [len(sequence) for sequence in sequences]
    tokens = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : lengths[row]] = torch.as_tensor(sequence, dtype=torch.int64)
    return tokens.to(device), torch.tensor(lengths, device=device)


def pad_left(
    sequences: Sequence[Sequence[int]], device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Token ids with zeros before each start (B, T), and which of them are real (B, T) int64."""
    longest = max(map(len, sequences))
    tokens = torch.zeros(len(sequences), longest, dtype=torch.int64)
    is_real = torch.zeros(len(sequences), longest, dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, longest - len(sequence) :] = torch.as_tensor(sequence, dtype=torch.int64)
        is_real[row, longest - len(sequence) :] = 1
    return tokens.to(device), is_real.to(device)


READ_AT_ONCE = 8192
"""Most tokens, padding included, read in one pass over whole sequences."""


def score_padded(
    sequences: Sequence[Sequence[int]],
    device: torch.device,
    scored: Callable[[Tensor, Tensor], Tensor],
) -> list[Tensor]:
    """Numbers of each token, batch by batch of similar length. `scored`: from token ids (B, T),
    padded on the right, and lengths (B,) to numbers (B, T)."""
    scores: list[Tensor] = [torch.zeros(0)] * len(sequences)
    order = sorted(range(len(sequences)), key=lambda index: -len(sequences[index]))
    while order:
        size = max(READ_AT_ONCE // max(len(sequences[order[0]]), 1), 1)
        places, order = order[:size], order[size:]
        tokens, lengths = pad_right([sequences[index] for index in places], device)
        if not tokens.shape[1]:
            continue
        numbers = scored(tokens, lengths)
        for row, (index, length) in enumerate(zip(places, lengths.tolist(), strict=True)):
            scores[index] = numbers[row, :length]
    return scores


# Log-probs of given tokens from hidden states, without holding all logits at once.


def token_log_probs(
    hidden: Tensor, tokens: Tensor, logits_of: Callable[[Tensor], Tensor], temperature: float
) -> Tensor:
    """Log-prob of tokens[:, t] given those before it, at a temperature; column 0 is 0. (B, T)
    float32

    hidden (B, T, W), tokens (B, T); `logits_of` maps (M, W) to (M, V).
    """
    rows, longest = tokens.shape
    scores = torch.zeros(rows, longest, device=hidden.device)
    if longest < 2:
        return scores
    flat = hidden[:, :-1].reshape(rows * (longest - 1), -1)
    targets = tokens[:, 1:].reshape(-1)
    vocabulary = logits_of(flat[:1]).shape[-1]
    size = loss_chunk(vocabulary, on_cpu=hidden.device.type == "cpu")
    parts = [
        log_probs_of(logits_of(flat[at : at + size]), targets[at : at + size], temperature)
        for at in range(0, len(flat), size)
    ]
    scores[:, 1:] = torch.cat(parts).view(rows, longest - 1)
    return scores


def log_probs_of(logits: Tensor, tokens: Tensor, temperature: float) -> Tensor:
    """Log-prob of each token under its logits at a temperature. (M, V), (M,) -> (M,) float32"""
    return scaled_log_softmax(logits, temperature).gather(1, tokens[:, None]).squeeze(1)


def scaled_log_softmax(logits: Tensor, temperature: float) -> Tensor:
    """Log-probs of all tokens at a temperature. (M, V) -> (M, V) float32"""
    scaled = logits.float() / temperature if temperature != 1.0 else logits.float()
    return torch.log_softmax(scaled, dim=-1)
