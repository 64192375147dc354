"""One load of an update, made ready: rows as tensors, settings with the moment's coefficients."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from coloop.batch import TOKEN_FIELDS, Batch, Pair, PairBatch, collate, collate_pairs
from coloop.recipes.kl_control import KlController
from coloop.recipes.protocol import Needs, Recipe
from coloop.spec.algorithm import ResolvedRewards
from coloop.training.forward import EntropyMode, effective_temperature
from coloop.training.protocol import TeachingLoad


@dataclass(slots=True, kw_only=True)
class PreparedLoad:
    """A load as one batch, with what its recipe reads."""

    name: str
    """Role, port and algorithm: what a KL controller belongs to."""
    role: str
    port: str
    recipe: Recipe
    settings: Any
    batch: Batch | PairBatch
    lengths: list[int]
    """Tokens that each unit fills."""
    needs: Needs
    weight: float
    temperature: float | Tensor
    """One for all rows, or (B,) where they differ."""

    @property
    def size(self) -> int:
        """Units (rows or pairs)."""
        return len(self.lengths)

    @property
    def entropy(self) -> EntropyMode:
        if self.needs.entropy_gradient:
            return "learned"
        return "measured" if self.needs.entropy else "none"

    def temperature_of(self, rows: Sequence[int]) -> float | Tensor:
        """One temperature for these rows, or (b,) one for each."""
        if isinstance(self.temperature, Tensor):
            return self.temperature[list(rows)]
        return self.temperature

    def set_log_probs_old(self, log_probs: Tensor) -> None:
        assert isinstance(self.batch, Batch)
        self.batch = replace(self.batch, log_probs_old=log_probs)


def prepare_load(
    load: TeachingLoad, controllers: dict[str, KlController]
) -> tuple[PreparedLoad | None, int]:
    """The load without rows that have no trained token, and how many those were.

    None where no row is left. A controller is made for an algorithm that adapts its KL in the loss.
    """
    places = [place for place, row in enumerate(load.rows) if _has_trained_token(row)]
    teaching = [load.rows[place] for place in places]
    left_out = len(load.rows) - len(teaching)
    if not teaching:
        return None, left_out
    name = f"{load.role}.{load.port}.{load.settings.name}"
    settings = _with_coefficient(name, load.settings, controllers)
    needs = load.recipe.needs(settings)
    batch = _collate([_only(row, needs.reads) for row in teaching])
    ready = PreparedLoad(
        name=name,
        role=load.role,
        port=load.port,
        recipe=load.recipe,
        settings=settings,
        batch=batch,
        lengths=batch.lengths(),
        needs=needs,
        weight=load.weight,
        temperature=_temperature(load.temperature, places),
    )
    return ready, left_out


def _temperature(given: float | Sequence[float], places: Sequence[int]) -> float | Tensor:
    """One number where all these rows were sampled at the same temperature."""
    if isinstance(given, float | int):
        return effective_temperature(given)
    heats = [effective_temperature(given[place]) for place in places]
    return heats[0] if len(set(heats)) == 1 else torch.tensor(heats)


def _collate(rows: list[Any]) -> Batch | PairBatch:
    kinds = {isinstance(row, Pair) for row in rows}
    if len(kinds) > 1:
        raise ValueError("a load has either sequences or pairs, not both")
    return collate_pairs(rows) if kinds == {True} else collate(rows)


def _only(row: Any, reads: frozenset[str]) -> Any:
    """The row with the per-token numbers that its recipe reads."""
    if isinstance(row, Pair):
        return replace(row, chosen=_only(row.chosen, reads), rejected=_only(row.rejected, reads))
    unread = {name: None for name in TOKEN_FIELDS if name not in reads}
    return replace(row, **unread)


def _has_trained_token(row: Any) -> bool:
    if isinstance(row, Pair):
        return bool(row.chosen.loss_mask.any() or row.rejected.loss_mask.any())
    return bool(row.loss_mask.any())


def _with_coefficient(name: str, settings: Any, controllers: dict[str, KlController]) -> Any:
    if not isinstance(settings, ResolvedRewards) or settings.kl is None:
        return settings
    if settings.kl.target is None or settings.kl.into != "loss":
        return settings
    if name not in controllers:
        controllers[name] = KlController.of(settings.kl)
    return controllers[name].applied(settings)
