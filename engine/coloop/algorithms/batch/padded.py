"""Batches of sequences and of pairs as tensors, padded on the right.

Legend: ``B`` sequences, ``T`` token positions, ``P`` pairs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor

from coloop.algorithms.batch.sequences import TOKEN_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherRows:
    """What one teacher says of the trained tokens of a batch; N of them in all, those of a row one
    after another."""

    node: str
    weights: Tensor  # (B,) float32; 0 for rows of which it says nothing
    log_probs: tuple[Tensor | None, ...]  # B, (M,) float32 each
    words: tuple[Tensor | None, ...] = ()  # B, (M, K): log-probs; empty: not asked for
    word_ids: tuple[Tensor | None, ...] = ()  # B, (M, K) long; empty: the whole vocabulary

    def select(self, rows: Sequence[int]) -> "TeacherRows":
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.weights.device)
        return replace(
            self,
            weights=self.weights[index],
            log_probs=tuple(self.log_probs[row] for row in rows),
            words=tuple(self.words[row] for row in rows) if self.words else (),
            word_ids=tuple(self.word_ids[row] for row in rows) if self.word_ids else (),
        )

    def map(self, change: Callable[[Tensor], Tensor]) -> "TeacherRows":
        def changed(parts: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
            return tuple(None if part is None else change(part) for part in parts)

        return replace(
            self,
            weights=change(self.weights),
            log_probs=changed(self.log_probs),
            words=changed(self.words),
            word_ids=changed(self.word_ids),
        )

    def tokens(self, loss_mask: Tensor) -> Tensor:
        """(N_j,) indices, among the N trained tokens of the batch, of those it says something
        of."""
        sizes = loss_mask.sum(1)
        is_known = torch.tensor([part is not None for part in self.log_probs], device=sizes.device)
        return is_known.repeat_interleave(sizes).nonzero().flatten()

    def together(self, name: str) -> Tensor:
        """(N_j,) or (N_j, K): its numbers of that name, of all its rows."""
        parts = [part for part in getattr(self, name) if part is not None]
        return torch.cat(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    ids: tuple[str, ...]
    groups: tuple[str, ...]
    token_ids: Tensor  # (B, T) long
    attention_mask: Tensor  # (B, T) bool, true on real tokens
    loss_mask: Tensor  # (B, T) bool, true on trained tokens; never at position 0
    row_weights: Tensor  # (B,) float32
    row_counts: Tensor  # (B,) float32
    prompts: Tensor
    """(B,) long: number of the row's prompt, the tokens before its first trained one; equal prompts
    have equal numbers."""
    prompt_lengths: Tensor  # (B,) long: tokens of that beginning; all of a row that trains none
    log_probs_rollout: Tensor | None = None  # (B, T) float32, as the five below
    log_probs_old: Tensor | None = None
    log_probs_reference: Tensor | None = None
    advantages: Tensor | None = None
    returns: Tensor | None = None
    values: Tensor | None = None
    numbers: Mapping[str, Tensor] = field(default_factory=dict)  # by name, (B,) or (B, T) float32
    choices: Tensor | None = None
    """(B, C) long: tokens whose log-probs as the next token are requested."""
    teachers: tuple[TeacherRows, ...] = ()

    @property
    def size(self) -> int:
        """Number of units: sequences."""
        return int(self.token_ids.shape[0])

    @property
    def sequences(self) -> "Batch":
        """The sequences for a model's forward pass: the batch itself."""
        return self

    def lengths(self) -> list[int]:
        """Tokens of each sequence, without padding."""
        lengths: list[int] = self.attention_mask.sum(1).tolist()
        return lengths

    def begin_alike(self, rows: Sequence[int]) -> bool:
        return len(set(self.prompts[list(rows)].tolist())) < len(rows)

    def select(self, rows: Sequence[int]) -> "Batch":
        """These rows in this order, padded to the longest of them."""
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.token_ids.device)
        kept = self.attention_mask.index_select(0, index)
        longest = int(kept.sum(1).max()) if len(rows) else 0
        chosen = self._map(lambda tensor: _take(tensor, index, longest))
        return replace(
            chosen,
            choices=None if self.choices is None else self.choices[index],
            ids=tuple(self.ids[row] for row in rows),
            groups=tuple(self.groups[row] for row in rows),
            teachers=tuple(teacher.select(rows) for teacher in self.teachers),
        )

    def to(self, device: torch.device | str) -> "Batch":
        moved = self._map(lambda tensor: tensor.to(device))
        teachers = (teacher.map(lambda tensor: tensor.to(device)) for teacher in self.teachers)
        return replace(moved, teachers=tuple(teachers))

    def given(self, name: str) -> Tensor | None:
        """Numbers by name, from a field or `numbers`; None if there are none."""
        numbers: Tensor | None = (
            getattr(self, name) if name in TOKEN_FIELDS else self.numbers.get(name)
        )
        return numbers

    def with_numbers(self, numbers: Mapping[str, Tensor]) -> "Batch":
        """A copy with these numbers, in the fields of these names, others in `numbers`."""
        own: dict[str, Any] = {name: numbers[name] for name in numbers if name in TOKEN_FIELDS}
        named = {name: numbers[name] for name in numbers if name not in TOKEN_FIELDS}
        return replace(self, **own, numbers={**self.numbers, **named})

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        changed: dict[str, Any] = {
            name: change(value) for name, value in values.items() if isinstance(value, Tensor)
        }
        named = {name: change(tensor) for name, tensor in self.numbers.items()}
        return replace(self, **changed, numbers=named)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBatch:
    """Pairs as tensors; both sides are rows of one batch, chosen ones first."""

    sides: Batch  # 2P rows: chosen 0..P-1, then rejected 0..P-1
    probability: Tensor  # (P,) float32
    margin: Tensor  # (P,) float32
    row_weights: Tensor  # (P,) float32
    row_counts: Tensor  # (P,) float32
    numbers: Mapping[str, Tensor] = field(default_factory=dict)  # by name, (P,) float32
    extra: Batch | None = None
    """The further texts of all pairs, for `Recipe.prepare`; None after `select`."""

    @property
    def size(self) -> int:
        """Number of units: pairs."""
        return int(self.probability.shape[0])

    @property
    def sequences(self) -> Batch:
        """The sequences for a model's forward pass: both sides."""
        return self.sides

    def lengths(self) -> list[int]:
        """Per pair, twice the tokens of its longer side: its size in a padded batch."""
        lengths = self.sides.lengths()
        return [
            2 * max(pair) for pair in zip(lengths[: self.size], lengths[self.size :], strict=True)
        ]

    def select(self, rows: Sequence[int]) -> "PairBatch":
        """These pairs in this order."""
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.probability.device)
        sides = self.sides.select([*rows, *(row + self.size for row in rows)])
        return self._map(lambda tensor: tensor[index], sides=sides, extra=None)

    def given(self, name: str) -> Tensor | None:
        """Numbers by name: of pairs (P,), else of their sides, as `Batch.given`."""
        return self.numbers[name] if name in self.numbers else self.sides.given(name)

    def with_numbers(self, numbers: Mapping[str, Tensor]) -> "PairBatch":
        """A copy with these numbers: (P,) of pairs, (2P, T) of their sides."""
        of_sides = {name: tensor for name, tensor in numbers.items() if tensor.dim() == 2}
        of_pairs = {name: tensor for name, tensor in numbers.items() if tensor.dim() == 1}
        sides = self.sides.with_numbers(of_sides)
        return replace(self, sides=sides, numbers={**self.numbers, **of_pairs})

    def to(self, device: torch.device | str) -> "PairBatch":
        extra = None if self.extra is None else self.extra.to(device)
        return self._map(lambda tensor: tensor.to(device), sides=self.sides.to(device), extra=extra)

    def _map(self, change: Callable[[Tensor], Tensor], **batches: Batch | None) -> "PairBatch":
        """A copy with `change` applied to the tensors of pairs, and these batches."""
        parts: dict[str, Any] = dict(batches)
        for name in ("probability", "margin", "row_weights", "row_counts"):
            parts[name] = change(getattr(self, name))
        numbers = {name: change(tensor) for name, tensor in self.numbers.items()}
        return replace(self, **parts, numbers=numbers)


def _take(tensor: Tensor, index: Tensor, longest: int) -> Tensor:
    taken = tensor.index_select(0, index)
    return taken[:, :longest] if taken.dim() == 2 else taken
