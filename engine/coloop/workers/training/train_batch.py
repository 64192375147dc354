"""What one teaching port of a role brings to an update: rows, and the same as tensors, with
settings that have the coefficients of the moment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coloop.algorithms.batch import (
    Batch,
    Pair,
    PairBatch,
    collate,
    collate_pairs,
    completion_sequence,
)
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.batch.sequences import TOKEN_FIELDS
from coloop.algorithms.recipes.kl_control import KlController
from coloop.algorithms.recipes.protocol import Needs, Recipe
from coloop.data.arrays import Numbers, numbers_of
from coloop.spec.algorithm import ResolvedRewards
from coloop.workers.messages import TaughtBy
from coloop.workers.training.forward import effective_temperature

Seen = Mapping[str, Mapping[str, Mapping[str, Numbers]]]
"""By batch, then by row id, then by name: one number a token of prompt and completion."""


@dataclass(slots=True, kw_only=True)
class TrainBatch:
    """What one teaching port of one role brings to an update, for one of its algorithms."""

    role: str
    """Node id."""
    port: str
    recipe: Recipe[Any]
    settings: Any
    """What `coloop.spec.algorithm` resolves the algorithm's section to."""
    rows: Sequence[TokenSequence] | Sequence[Pair]
    weight: float = 1.0
    """Of this batch's loss among the learner's."""
    temperature: float | Sequence[float] | Tensor = 1.0
    """That the rows were sampled at, one for all or one for each; logits are divided by it, as by
    the sampler. 0 counts as 1. Collated: one for all units, or (B,)."""
    number: int = 0
    """Of the algorithm among those of its port."""
    tensors: Batch | PairBatch | None = None
    """The rows that have a trained token; None: they are not collated."""
    places: list[int] = field(default_factory=list)
    """Indices of these among the rows."""
    lengths: list[int] = field(default_factory=list)
    """Tokens that each of them fills."""
    needs: Needs = field(default_factory=Needs)

    @property
    def name(self) -> str:
        """Role, port and algorithm; what lasts from update to update belongs to it."""
        own = f"{self.role}.{self.port}.{self.settings.name}"
        return f"{own}.{self.number}" if self.number else own

    @property
    def batch(self) -> Batch | PairBatch:
        assert self.tensors is not None, "it is collated"
        return self.tensors

    @property
    def size(self) -> int:
        """Units (rows or pairs)."""
        return len(self.lengths)

    @property
    def sides(self) -> int:
        """Sequences of a unit."""
        return 2 if isinstance(self.batch, PairBatch) else 1

    @property
    def extra(self) -> Batch | None:
        """Further texts that are measured before what is learned from."""
        return self.batch.extra if isinstance(self.batch, PairBatch) else None

    @property
    def is_prepared(self) -> bool:
        """Whether all is there that the recipe asks of the whole batch."""
        return all(self.batch.given(name) is not None for name in self.needs.prepares)

    def sequences_of(self, units: Sequence[int]) -> list[int]:
        """Places of these units' sequences among those that a model reads."""
        return [unit + side * self.size for side in range(self.sides) for unit in units]

    def temperature_of(self, rows: Sequence[int]) -> float | Tensor:
        """One temperature for these rows, or (b,) one for each."""
        if isinstance(self.temperature, Tensor):
            return self.temperature[list(rows)]
        assert isinstance(self.temperature, float | int)
        return self.temperature

    def give(self, numbers: Mapping[str, Tensor]) -> None:
        """Numbers of the whole batch, as `prepare` gives them."""
        missing = self.needs.prepares - set(numbers)
        if missing:
            raise ValueError(f"{self.name}: `prepare` did not return {', '.join(sorted(missing))}")
        self.tensors = self.batch.with_numbers(numbers)

    def rows_with_prepared(self) -> list[Any]:
        """All rows, with what was prepared for those that teach."""
        given = {name: self.batch.given(name) for name in self.needs.prepares}
        numbers = {name: own.numpy() for name, own in given.items() if own is not None}
        full: list[Any] = list(self.rows)
        for unit, index in enumerate(self.places):
            full[index] = _with_numbers(full[index], numbers, unit, self.size)
        return full


def _with_numbers(row: Any, numbers: Mapping[str, NDArray[Any]], unit: int, size: int) -> Any:
    """A row, or a pair of `size` pairs, with its part of numbers of the whole batch."""
    if not isinstance(row, Pair):
        return row.with_numbers({name: _part(every[unit], row) for name, every in numbers.items()})
    of_sides = {name: every for name, every in numbers.items() if every.ndim == 2}
    of_pair = {name: float(every[unit]) for name, every in numbers.items() if every.ndim == 1}
    return replace(
        row,
        chosen=_with_numbers(row.chosen, of_sides, unit, size),
        rejected=_with_numbers(row.rejected, of_sides, unit + size, size),
        numbers={**row.numbers, **of_pair},
    )


def _part(numbers: Any, row: TokenSequence) -> Any:
    """One row's number, or its numbers without padding."""
    return numbers[: len(row.token_ids)] if numbers.ndim else float(numbers)


def collated(load: TrainBatch, controllers: dict[str, KlController]) -> TrainBatch:
    """The batch as tensors of the rows that have a trained token; with none of them it has no
    `lengths` either.

    A controller is made for an algorithm that adapts its KL in the loss.
    """
    places = [index for index, row in enumerate(load.rows) if _has_trained_token(row)]
    if not places:
        return load
    settings = _with_coefficient(load.name, load.settings, controllers)
    needs = load.recipe.needs(settings)
    batch = _collate([load.rows[index] for index in places], needs.reads | needs.prepares, needs)
    return replace(
        load,
        settings=settings,
        temperature=_temperature(load.temperature, places),
        tensors=batch,
        places=places,
        lengths=batch.lengths(),
        needs=needs,
    )


def _temperature(given: float | Sequence[float] | Tensor, places: Sequence[int]) -> float | Tensor:
    """One number where all these rows were sampled at the same temperature."""
    if isinstance(given, float | int):
        return effective_temperature(given)
    heats = [effective_temperature(float(given[index])) for index in places]
    return heats[0] if len(set(heats)) == 1 else torch.tensor(heats)


def _collate(rows: Sequence[Any], reads: frozenset[str], needs: Needs) -> Batch | PairBatch:
    kinds = {isinstance(row, Pair) for row in rows}
    if len(kinds) > 1:
        raise ValueError("a load has either sequences or pairs, not both")
    if kinds == {True}:
        return collate_pairs([_only(row, reads, needs) for row in rows])
    return collate(rows, reads=reads)


def _only(row: Any, reads: frozenset[str], needs: Needs) -> Any:
    read = {name: value for name, value in row.numbers.items() if name in reads}
    if isinstance(row, Pair):
        bare = row if needs.extra else replace(row, extra=())
        return replace(bare.mapped(lambda text: _only(text, reads, needs)), numbers=read)
    unread = {name: None for name in TOKEN_FIELDS if name not in reads}
    return replace(row, numbers=read, **unread)


def _has_trained_token(row: Any) -> bool:
    if isinstance(row, Pair):
        return bool(row.chosen.loss_mask.any() or row.rejected.loss_mask.any())
    return row.choices is not None or bool(row.loss_mask.any())


def _with_coefficient(name: str, settings: Any, controllers: dict[str, KlController]) -> Any:
    if not isinstance(settings, ResolvedRewards) or settings.kl is None:
        return settings
    if settings.kl.target is None or settings.kl.into != "loss":
        return settings
    if name not in controllers:
        controllers[name] = KlController.of(settings.kl)
    return controllers[name].applied(settings)


# What losses saw of each token, for the first rows of each load, by the last pass over them; on the
# device until the update is over.

MOST_ROWS = 16  # of a load
MOST_TOKENS = 16_384  # of a load's shown rows together, prompts included


class SeenTokens:
    def __init__(self) -> None:
        self._shown: dict[str, range] = {}  # by load, the units of it that are kept
        self._numbers: dict[str, dict[str, dict[str, Tensor]]] = {}

    def note(
        self,
        load: TrainBatch,
        units: Sequence[int],
        batch: Batch,
        tokens: Mapping[str, Tensor],
    ) -> None:
        """One pass over some units of a load, with the numbers of their tokens, (b, T) each."""
        if not tokens or load.sides != 1:
            return
        shown = self._shown.setdefault(load.name, _first(load.lengths))
        kept = self._numbers.setdefault(load.name, {})
        for row, unit in enumerate(units):
            if unit in shown:
                own = (row, slice(load.lengths[unit]))
                kept[batch.ids[row]] = {name: seen[own].clone() for name, seen in tokens.items()}

    def told(self) -> Seen:
        """What was seen here, in numbers that can be sent."""
        return {
            name: {
                row: {name: numbers_of(own.float().cpu().numpy()) for name, own in numbers.items()}
                for row, numbers in rows.items()
            }
            for name, rows in self._numbers.items()
        }


def together(parts: Iterable[Seen]) -> Seen:
    """What several saw, each of rows of its own."""
    whole: dict[str, dict[str, Mapping[str, Numbers]]] = {}
    for part in parts:
        for name, rows in part.items():
            whole.setdefault(name, {}).update(rows)
    return whole


def _first(lengths: Sequence[int]) -> range:
    ends = np.cumsum(lengths[:MOST_ROWS])
    return range(int((ends <= MOST_TOKENS).sum()))


def taught_rows(
    loads: Iterable[TrainBatch], seen: Seen
) -> dict[TaughtBy, tuple[TokenSequence, ...]]:
    """The completions of the rows that were kept, each as the first algorithm of a port saw it."""
    taught: dict[TaughtBy, tuple[TokenSequence, ...]] = {}
    known: set[tuple[str, str, str]] = set()
    for load in loads:
        by, numbers = (load.role, load.port, load.settings.name), seen.get(load.name, {})
        for row in load.rows:
            key = load.role, load.port, row.id
            if isinstance(row, TokenSequence) and row.id in numbers and key not in known:
                known.add(key)
                taught[by] = (*taught.get(by, ()), _completion(row, numbers[row.id]))
    return taught


def _completion(row: TokenSequence, numbers: Mapping[str, Numbers]) -> TokenSequence:
    start = row.prompt_length
    return completion_sequence(
        id=row.id,
        prompt_ids=(),
        completion_ids=row.token_ids[start:],
        loss_mask=row.loss_mask[start:],
        numbers={name: own[start:] for name, own in numbers.items()},
    )
