"""Weights that a model is still to be given. It is built without memory for them, and whoever holds
it takes them one by one, each rank its part, so nobody needs room for a whole model.

    built    every weight on `meta`; there are only score heads, and tables that no file has
    placed   types, heads and adapters, as with any model
    given    `weights()`, once: each weight whole, by the name that it had when the model was built

Weights are known by what they are, not by their names: modules are built around them meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a model a weight comes to lie."""

    name: str
    """The first that the model has for it now."""
    types: tuple[torch.dtype, ...]
    """That it is cast to, one after the other."""


class WeightsToCome:
    """See the module."""

    def __init__(self, model: nn.Module, read: Callable[[], Iterable[tuple[str, Tensor]]]) -> None:
        """
        Args:
            model: has the names by which weights are read, and the types that they are read in.
            read: each weight whole; those that the model has in memory are not asked for.
        """
        named = model.named_parameters(remove_duplicate=False)
        self._weights = {name: weight for name, weight in named if weight.is_meta}
        self._types = {id(weight): [weight.dtype] for weight in self._weights.values()}
        self._read = read

    def note_types(self) -> None:
        """Weights were placed in other types: what is given later is cast to these as well, so
        that it is rounded as a weight in memory would have been."""
        for weight in self._weights.values():
            types = self._types[id(weight)]
            if weight.dtype != types[-1]:
                types.append(weight.dtype)

    def places_in(self, model: nn.Module) -> dict[str, Place]:
        """By the name that a weight is read by, where it comes to lie in what was built of the
        model; what is left of it there. A weight with several names has one place.

        Raises `ValueError` where the model wants a weight that nobody gives.
        """
        self.note_types()
        here = {id(weight): name for name, weight in model.named_parameters() if weight.is_meta}
        known = {id(weight) for weight in self._weights.values()}
        if strangers := [name for key, name in here.items() if key not in known]:
            raise ValueError(f"{len(strangers)} weights come from nowhere, such as {strangers[0]}")
        return {
            name: Place(name=here[id(weight)], types=tuple(self._types[id(weight)]))
            for name, weight in self._weights.items()
            if id(weight) in here
        }

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by the name that it is read by. All ranks iterate to the end."""
        yield from self._read()


class WithoutMemory(TorchFunctionMode):
    """While it is entered, tensors that are made empty have no memory: weights are made so, and
    tables are computed. Of this thread alone."""

    def __torch_function__(
        self, function: Any, types: Any, given: Any = (), named: Any = None
    ) -> Any:
        named = dict(named or {})
        if function is torch.empty and named.get("device") is None:
            named["device"] = torch.device("meta")
        return function(*given, **named)
