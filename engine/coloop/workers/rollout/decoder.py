"""What the schedule asks of a model: rows in slots, prompts read, one token more for all, log-
probs.

Rows of a batch stand in slots 0 .. N-1 without a gap. The schedule fills slots at the end and
closes gaps by moving rows; a decoder only follows with what it caches. Knows nothing of requests,
sampling or the end of a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Lines:
    """What a cache held of the first T tokens of a text; only the decoder that took it reads
    it."""

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
        """Makes room for so many rows of so many tokens, and for no more. What the first `running`
        slots hold stays; all else is forgotten."""
        ...

    def expect(self, tokens: int) -> None:
        """At most so many tokens are to be written to each row of the batch that begins."""
        ...

    def admit(self, slot: int, prompts: Sequence[Sequence[int]], counts: Sequence[int]) -> Tensor:
        """Reads prompts and fills slots from `slot` on: `counts[i]` slots begin with prompt i.

        Prompts come longest first. Gives the logits of the next token of each filled slot, (n,
        V).
        """
        ...

    def take(self, slot: int, length: int) -> Lines | None:
        """A copy of what a slot holds of its first tokens; None where it cannot be taken."""
        ...

    def extend(
        self,
        slot: int,
        lines: Sequence[Lines],
        texts: Sequence[Sequence[int]],
        counts: Sequence[int],
    ) -> None:
        """Fills slots from `slot` on: `counts[i]` slots hold text i but for its last token, which
        the next `step` appends. The first tokens of text i are those of lines i and are not read
        again. Asked only of a decoder that gave lines."""
        ...

    def step(self, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        """Appends token i at position i of slot i and gives the next logits, (N, V).

        tokens, positions (N,); no position is above `longest`.
        """
        ...

    def keep(self, rows: int, targets: Tensor, sources: Tensor) -> None:
        """Slot targets[i] becomes what slot sources[i] was; then only the first `rows` slots are
        left."""
        ...

    def score(self, sequences: Sequence[Sequence[int]], temperature: float) -> list[Tensor]:
        """Log-prob of every token given those before it, float32; the first of a sequence is 0."""
        ...

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Takes all weights by their Hugging Face names; a missing or unknown name is an error."""
        ...

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The weights held, by their Hugging Face names."""
        ...

    def held(self) -> Iterator[Tensor]:
        """Views of all memory that weights take, for who moves it away between two calls. Nothing
        that was made of their addresses outlives a `reserve` of no rows."""
        ...


# Ragged sequences as rectangles: padding, and batches of similar length.
#
# B sequences, T longest length.


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


def similar_lengths(
    sequences: Sequence[Sequence[int]], tokens: int
) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
    """Batches of at most so many tokens, padding included, longest first: places and sequences."""
    order = sorted(range(len(sequences)), key=lambda place: -len(sequences[place]))
    while order:
        longest = max(len(sequences[order[0]]), 1)
        places, order = order[: max(tokens // longest, 1)], order[max(tokens // longest, 1) :]
        yield places, [sequences[place] for place in places]
