"""Token sequences as padded or packed tensors: collate, select, split, concat, pack.

Legend: ``B`` sequences, ``T`` token positions of prompt plus completion, ``P`` pairs,
``R`` packed rows of ``S`` positions.
Knows nothing of algorithms, models or tables. Invariants:
- Per-token tensors are aligned to token positions: entry t is of token t, and `log_probs[:, t]`
  is log p(token t | tokens before t). Position 0 has no log-prob and is never trained.
- Padding stands on the right, so a causal model needs no attention mask for a padded batch.
- Outside `loss_mask` every per-token number is 0; padding is outside it.
"""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from coloop.arrays import Ids, Mask, Numbers, are_equal, ids_of, joined, mask_of, numbers_of, owned

TOKEN_FIELDS = (
    "log_probs_rollout",
    "log_probs_old",
    "log_probs_reference",
    "advantages",
    "returns",
    "values",
)
"""Per-token numbers of a sequence and of a batch that have a field of their own; whatever else a
recipe reads stands in `numbers`, by its name."""


Prompt = str | list[dict[str, Any]]
"""Text, or a chat: a list of messages."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A prompt and the text that shall follow it, which is to be encoded as it stands."""

    prompt: Prompt
    target: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequence:
    """One text that is scored or learned, from the row to the batch; every array has one entry a
    token.

    Where the row has no token ids yet there is `text` in their place, and numbers by the token are
    those of its target alone; `with_ids` makes it whole. Lists are taken as well; what is held are
    read-only arrays.
    """

    id: str
    token_ids: Ids = field(default_factory=lambda: ids_of([]))
    """Prompt and completion."""
    loss_mask: Mask = field(default_factory=lambda: mask_of([]))
    """True on the tokens that are trained."""
    text: Text | None = None
    """What is still to be encoded."""
    prompt_length: int = 0
    """Tokens before the completion."""
    log_probs_rollout: Numbers | None = None
    """By the engine, at the sampling temperature; read where `loss_mask` is true, as all below."""
    log_probs_old: Numbers | None = None
    log_probs_reference: Numbers | None = None
    advantages: Numbers | float | None = None
    """One number stands for all trained tokens."""
    returns: Numbers | None = None
    values: Numbers | None = None
    numbers: Mapping[str, Numbers | float] = field(default_factory=dict)
    """Whatever else a recipe reads, by its name: one number for the row, or one for each token."""
    weight: float = 1.0
    """Scales the row's loss, not the divisor."""
    count: float = 1.0
    """How often the row stands in the batch; scales loss and divisor."""
    group: str = ""
    """Name of the row's group, for messages."""
    temperature: float = 1.0
    """At which its log-probs are compared; that it was drawn at where it learns from rewards."""
    writer: str = ""
    """The node that drew its tokens."""
    version: int = 0
    """Version of the weights that drew them."""
    tokenizer: str = ""
    """Mark of the tokenizer whose ids they are; empty: not known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_ids", ids_of(self.token_ids))
        object.__setattr__(self, "loss_mask", mask_of(self.loss_mask))
        for name in TOKEN_FIELDS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, float | int):
                object.__setattr__(self, name, numbers_of(value))
        if self.numbers:
            kept = {
                name: float(value) if isinstance(value, float | int) else numbers_of(value)
                for name, value in self.numbers.items()
            }
            object.__setattr__(self, "numbers", kept)

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other)

    def owned(self) -> "Sequence":
        """The same in memory of its own, for one that outlives its step."""
        given = {name: getattr(self, name) for name in ("token_ids", "loss_mask", *TOKEN_FIELDS)}
        arrays: dict[str, Any] = {
            name: owned(value) for name, value in given.items() if isinstance(value, np.ndarray)
        }
        numbers = {
            name: owned(value) if isinstance(value, np.ndarray) else value
            for name, value in self.numbers.items()
        }
        return replace(self, **arrays, numbers=numbers)

    def with_numbers(self, found: Mapping[str, Numbers | float]) -> "Sequence":
        """The same with these numbers, each in its field or by its name."""
        own: dict[str, Any] = {name: found[name] for name in found if name in TOKEN_FIELDS}
        named = {name: found[name] for name in found if name not in TOKEN_FIELDS}
        return replace(self, **own, numbers={**self.numbers, **named})

    def with_ids(
        self, prompt_ids: ArrayLike, completion_ids: ArrayLike, loss_mask: ArrayLike | None = None
    ) -> "Sequence":
        """The sequence with these token ids; its numbers, which are of the completion, shifted
        along.

        Args:
            loss_mask: which tokens of the completion are trained; None: all. Those of the prompt
            never are.
        """
        given = {name: getattr(self, name) for name in (*TOKEN_FIELDS, "numbers")}
        return replace(self, text=None, **_whole(given, prompt_ids, completion_ids, loss_mask))


def completion_sequence(
    *,
    prompt_ids: ArrayLike,
    completion_ids: ArrayLike,
    loss_mask: ArrayLike,
    **fields: Any,
) -> Sequence:
    """A sequence from arrays that cover the completion only; the prompt is never trained.

    Args:
        fields: those of `Sequence`; numbers by the token are of the completion.
    """
    return Sequence(**fields | _whole(fields, prompt_ids, completion_ids, loss_mask))


def _whole(
    fields: Mapping[str, Any],
    prompt_ids: ArrayLike,
    completion_ids: ArrayLike,
    loss_mask: ArrayLike | None,
) -> dict[str, Any]:
    """Fields of prompt and completion together; those numbers by the token that are among the
    given fields are of the completion, and shifted along."""
    before, after = ids_of(prompt_ids), ids_of(completion_ids)
    trained = np.ones(len(after), dtype=np.bool_) if loss_mask is None else mask_of(loss_mask)
    nothing = np.zeros(len(before), dtype=np.float32)

    def shifted(numbers: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: own if isinstance(own, float | int) else joined([nothing, numbers_of(own)])
            for name, own in numbers.items()
        }

    given = {name: fields[name] for name in TOKEN_FIELDS if fields.get(name) is not None}
    return {
        "token_ids": joined([before, after]),
        "loss_mask": joined([np.zeros(len(before), dtype=np.bool_), trained]),
        "prompt_length": len(before),
        "numbers": shifted(fields.get("numbers", {})),
        **shifted(given),
    }


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two texts, the first preferred."""

    id: str
    chosen: Sequence
    rejected: Sequence
    probability: float = 1.0
    """That chosen is the better one."""
    margin: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Whatever else a recipe reads of the pair, by its name."""
    weight: float = 1.0
    count: float = 1.0

    def owned(self) -> "Pair":
        """The same in memory of its own."""
        return replace(self, chosen=self.chosen.owned(), rejected=self.rejected.owned())


Unit = Sequence | Pair
"""What is learned from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sequences as tensors, padded on the right."""

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    token_ids: Tensor
    """(B, T) long."""
    attention_mask: Tensor
    """(B, T) bool, true on real tokens."""
    loss_mask: Tensor
    """(B, T) bool, true on trained tokens; never at position 0."""
    row_weights: Tensor
    """(B,) float32."""
    row_counts: Tensor
    """(B,) float32."""
    log_probs_rollout: Tensor | None = None
    """(B, T) float32, as the five below."""
    log_probs_old: Tensor | None = None
    log_probs_reference: Tensor | None = None
    advantages: Tensor | None = None
    returns: Tensor | None = None
    values: Tensor | None = None
    numbers: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, (B,) or (B, T) float32."""

    @property
    def size(self) -> int:
        """Number of units that are learned from: here sequences."""
        return int(self.token_ids.shape[0])

    @property
    def sequences(self) -> "Batch":
        """What a model reads."""
        return self

    def lengths(self) -> list[int]:
        """Real tokens of each sequence."""
        lengths: list[int] = self.attention_mask.sum(1).tolist()
        return lengths

    def select(self, rows: Many[int]) -> "Batch":
        """These rows in this order, with padding that none of them needs cut off."""
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.token_ids.device)
        kept = self.attention_mask.index_select(0, index)
        longest = int(kept.sum(1).max()) if len(rows) else 0
        chosen = self._map(lambda tensor: _take(tensor, index, longest))
        return replace(
            chosen,
            ids=tuple(self.ids[row] for row in rows),
            groups=tuple(self.groups[row] for row in rows),
        )

    def padded_to(self, tokens: int) -> "Batch":
        """The same rows with T = `tokens`, which must not be less than now."""
        missing = tokens - self.token_ids.shape[1]
        if missing < 0:
            raise ValueError(f"cannot pad T = {self.token_ids.shape[1]} to {tokens}")
        return self._map(lambda tensor: _widen(tensor, missing))

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return self._map(lambda tensor: tensor.to(device))

    def given(self, name: str) -> Tensor | None:
        """Numbers of the rows by their name, wherever they stand."""
        found: Tensor | None = (
            getattr(self, name) if name in TOKEN_FIELDS else self.numbers.get(name)
        )
        return found

    def with_numbers(self, found: Mapping[str, Tensor]) -> "Batch":
        """The same with these numbers, each in its field or by its name."""
        own: dict[str, Any] = {name: found[name] for name in found if name in TOKEN_FIELDS}
        named = {name: found[name] for name in found if name not in TOKEN_FIELDS}
        return replace(self, **own, numbers={**self.numbers, **named})

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        tensors = {one.name: getattr(self, one.name) for one in fields(self)}
        changed: dict[str, Any] = {
            name: change(t) for name, t in tensors.items() if isinstance(t, Tensor)
        }
        named = {name: change(tensor) for name, tensor in self.numbers.items()}
        return replace(self, **changed, numbers=named)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBatch:
    """Pairs as tensors; both sides are rows of one batch, chosen ones first, at one T."""

    sides: Batch
    """2P rows: chosen 0..P-1, then rejected 0..P-1."""
    probability: Tensor
    """(P,) float32."""
    margin: Tensor
    """(P,) float32."""
    row_weights: Tensor
    """(P,) float32."""
    row_counts: Tensor
    """(P,) float32."""
    numbers: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, (P,) float32."""

    @property
    def size(self) -> int:
        """Number of units that are learned from: here pairs."""
        return int(self.probability.shape[0])

    @property
    def sequences(self) -> Batch:
        """What a model reads: both sides."""
        return self.sides

    @property
    def chosen(self) -> Batch:
        return self.sides.select(range(self.size))

    @property
    def rejected(self) -> Batch:
        return self.sides.select(range(self.size, 2 * self.size))

    def lengths(self) -> list[int]:
        """Real tokens of the longer side of each pair, twice: what a pair fills in a batch."""
        lengths = self.sides.lengths()
        return [
            2 * max(pair) for pair in zip(lengths[: self.size], lengths[self.size :], strict=True)
        ]

    def select(self, rows: Many[int]) -> "PairBatch":
        """These pairs in this order."""
        index = torch.as_tensor(list(rows), dtype=torch.long, device=self.probability.device)
        return PairBatch(
            sides=self.sides.select([*rows, *(row + self.size for row in rows)]),
            probability=self.probability[index],
            margin=self.margin[index],
            row_weights=self.row_weights[index],
            row_counts=self.row_counts[index],
            numbers={name: tensor[index] for name, tensor in self.numbers.items()},
        )

    def given(self, name: str) -> Tensor | None:
        """Numbers of the pairs by their name, or of their sides (2P, T)."""
        return self.numbers[name] if name in self.numbers else self.sides.given(name)

    def with_numbers(self, found: Mapping[str, Tensor]) -> "PairBatch":
        """The same with these numbers: (P,) of pairs, (2P, T) of their sides."""
        of_sides = {name: tensor for name, tensor in found.items() if tensor.dim() == 2}
        of_pairs = {name: tensor for name, tensor in found.items() if tensor.dim() == 1}
        sides = self.sides.with_numbers(of_sides)
        return replace(self, sides=sides, numbers={**self.numbers, **of_pairs})

    def to(self, device: torch.device | str) -> "PairBatch":
        """The same batch on another device."""
        return PairBatch(
            sides=self.sides.to(device),
            probability=self.probability.to(device),
            margin=self.margin.to(device),
            row_weights=self.row_weights.to(device),
            row_counts=self.row_counts.to(device),
            numbers={name: tensor.to(device) for name, tensor in self.numbers.items()},
        )


def collate(sequences: Many[Sequence], *, pad_id: int = 0, pad_to_multiple: int = 1) -> Batch:
    """Sequences as one batch, padded on the right to the longest, rounded up to a multiple."""
    for sequence in sequences:
        _check_sequence(sequence)
    longest = max((len(sequence.token_ids) for sequence in sequences), default=0)
    width = -(-longest // pad_to_multiple) * pad_to_multiple
    sizes = [len(sequence.token_ids) for sequence in sequences]
    lengths = torch.tensor(sizes, dtype=torch.long)
    masks = [sequence.loss_mask for sequence in sequences]
    loss_mask = _pad(masks, sizes, width, False, torch.bool)
    own = {name: [getattr(one, name) for one in sequences] for name in TOKEN_FIELDS}
    by_token = {
        name: _token_numbers(values, sizes, width, loss_mask)
        for name, values in own.items()
        if _is_given(sequences, name, values)
    }
    named = {name: [one.numbers.get(name) for one in sequences] for name in _names(sequences)}
    return Batch(
        ids=tuple(sequence.id for sequence in sequences),
        groups=tuple(sequence.group for sequence in sequences),
        token_ids=_pad([one.token_ids for one in sequences], sizes, width, pad_id, torch.long),
        attention_mask=torch.arange(width)[None, :] < lengths[:, None],
        loss_mask=loss_mask,
        row_weights=torch.tensor([sequence.weight for sequence in sequences]),
        row_counts=torch.tensor([sequence.count for sequence in sequences]),
        numbers={
            name: _row_or_token_numbers(values, sizes, width, loss_mask)
            for name, values in named.items()
            if _is_given(sequences, name, values)
        },
        **by_token,
    )


def collate_pairs(pairs: Many[Pair], *, pad_id: int = 0, pad_to_multiple: int = 1) -> PairBatch:
    """Pairs as one batch; both sides are padded to the longest side of all."""
    sides = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    named = {name: [pair.numbers.get(name) for pair in pairs] for name in _names(pairs)}
    return PairBatch(
        sides=collate(sides, pad_id=pad_id, pad_to_multiple=pad_to_multiple),
        probability=torch.tensor([pair.probability for pair in pairs]),
        margin=torch.tensor([pair.margin for pair in pairs]),
        row_weights=torch.tensor([pair.weight for pair in pairs]),
        row_counts=torch.tensor([pair.count for pair in pairs]),
        numbers={
            name: torch.tensor(values)
            for name, values in named.items()
            if _is_given(pairs, name, values)
        },
    )


def concat(batches: Many[Batch]) -> Batch:
    """The rows of several batches one after another, padded to one T."""
    if not batches:
        raise ValueError("nothing to concatenate")
    width = max(batch.token_ids.shape[1] for batch in batches)
    wide = [batch.padded_to(width) for batch in batches]
    names = dict.fromkeys([*TOKEN_FIELDS, *(name for batch in wide for name in batch.numbers)])
    given = {name: [batch.given(name) for batch in wide] for name in names}
    for name, tensors in given.items():
        if any(tensor is None for tensor in tensors) and any(t is not None for t in tensors):
            raise ValueError(f"some of the batches have {name} and some have not")
    there = {name: [t for t in ts if t is not None] for name, ts in given.items()}
    whole = Batch(
        ids=tuple(name for batch in wide for name in batch.ids),
        groups=tuple(name for batch in wide for name in batch.groups),
        token_ids=torch.cat([batch.token_ids for batch in wide]),
        attention_mask=torch.cat([batch.attention_mask for batch in wide]),
        loss_mask=torch.cat([batch.loss_mask for batch in wide]),
        row_weights=torch.cat([batch.row_weights for batch in wide]),
        row_counts=torch.cat([batch.row_counts for batch in wide]),
    )
    return whole.with_numbers({name: torch.cat(ts) for name, ts in there.items() if ts})


def split_units(
    lengths: Many[int],
    *,
    rows: int | None = None,
    tokens: int | None = None,
    is_padded: bool = True,
) -> list[list[int]]:
    """Unit numbers in micro-batches of at most `rows` units and `tokens` tokens.

    Units of like length stand together, so little is padded; a unit longer than `tokens` is alone.

    Args:
        is_padded: padding counts as tokens; else units are packed.
    """
    order = sorted(range(len(lengths)), key=lambda unit: lengths[unit])
    parts: list[list[int]] = []
    filled = 0
    for unit in order:
        size = lengths[unit]
        wanted = (len(parts[-1]) + 1) * size if parts and is_padded else filled + size
        is_full = not parts or (rows is not None and len(parts[-1]) >= rows)
        if is_full or (tokens is not None and wanted > tokens):
            parts.append([])
            filled = 0
        parts[-1].append(unit)
        filled += size
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Several sequences in each row; positions that begin anew tell a model to keep them apart."""

    token_ids: Tensor
    """(R, S) long."""
    position_ids: Tensor
    """(R, S) long; starts at 0 in every sequence and at every place of the padding."""
    places: Tensor
    """(B, T) long; flat position of each token in R x S, 0 where the batch is padded."""


def pack(batch: Batch, *, row_tokens: int, pad_id: int = 0) -> Packed:
    """Put sequences into rows of `row_tokens` positions, longest first into the first that fits."""
    lengths = batch.lengths()
    free: list[int] = []
    place: dict[int, tuple[int, int]] = {}
    for unit in sorted(range(len(lengths)), key=lambda unit: -lengths[unit]):
        if lengths[unit] > row_tokens:
            raise ValueError(
                f"sequence {batch.ids[unit]!r} has {lengths[unit]} tokens, "
                f"a packed row holds {row_tokens}"
            )
        row = next((r for r, room in enumerate(free) if room >= lengths[unit]), len(free))
        if row == len(free):
            free.append(row_tokens)
        place[unit] = (row, row_tokens - free[row])
        free[row] -= lengths[unit]
    shape = (len(free), row_tokens)
    token_ids = torch.full(shape, pad_id, dtype=torch.long)
    position_ids = torch.zeros(shape, dtype=torch.long)
    places = torch.zeros_like(batch.token_ids)
    for unit, (row, start) in place.items():
        end = start + lengths[unit]
        token_ids[row, start:end] = batch.token_ids[unit, : lengths[unit]]
        position_ids[row, start:end] = torch.arange(lengths[unit])
        places[unit, : lengths[unit]] = torch.arange(start, end) + row * row_tokens
    return Packed(token_ids=token_ids, position_ids=position_ids, places=places)


def _check_sequence(sequence: Sequence) -> None:
    size = len(sequence.token_ids)
    if size == 0:
        raise ValueError(f"sequence {sequence.id!r} has no tokens")
    own = {name: getattr(sequence, name) for name in ("loss_mask", *TOKEN_FIELDS)}
    for name, value in (*own.items(), *sequence.numbers.items()):
        if isinstance(value, np.ndarray) and len(value) != size:
            raise ValueError(
                f"sequence {sequence.id!r} has {size} tokens but {len(value)} entries in {name}"
            )
    if sequence.loss_mask[0]:
        raise ValueError(
            f"sequence {sequence.id!r} trains its first token, which nothing predicts; "
            "a prompt needs at least one token"
        )


def _names(units: Many[Unit]) -> list[str]:
    """Names of the further numbers of any of them."""
    return list(dict.fromkeys(name for unit in units for name in unit.numbers))


def _is_given(units: Many[Unit], name: str, values: Many[Any]) -> bool:
    given = [value is not None for value in values]
    if any(given) and not all(given):
        unit = units[given.index(False)]
        kind = "pair" if isinstance(unit, Pair) else "sequence"
        raise ValueError(f"{kind} {unit.id!r} has no {name}, others of its batch have")
    return bool(given) and all(given)


def _row_or_token_numbers(
    values: Many[Any], lengths: Many[int], width: int, loss_mask: Tensor
) -> Tensor:
    """(B,) where each row has one number, else (B, width)."""
    if any(isinstance(value, np.ndarray) for value in values):
        return _token_numbers(values, lengths, width, loss_mask)
    return torch.tensor(values, dtype=torch.float32)


def _token_numbers(values: Many[Any], lengths: Many[int], width: int, loss_mask: Tensor) -> Tensor:
    padded = _pad(values, lengths, width, 0.0, torch.float32)
    return torch.where(loss_mask, padded, 0.0)


def _pad(
    rows: Many[NDArray[Any] | float],
    lengths: Many[int],
    width: int,
    filler: float,
    dtype: torch.dtype,
) -> Tensor:
    """Each row in its first places, one number in all of them. (B, width)."""
    full = torch.full((len(rows), width), filler, dtype=dtype)
    view = full.numpy()
    for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        view[place, :length] = row
    return full


def _take(tensor: Tensor, index: Tensor, longest: int) -> Tensor:
    taken = tensor.index_select(0, index)
    return taken[:, :longest] if taken.dim() == 2 else taken


def _widen(tensor: Tensor, missing: int) -> Tensor:
    if tensor.dim() != 2 or missing == 0:
        return tensor
    return torch.nn.functional.pad(tensor, (0, missing))
