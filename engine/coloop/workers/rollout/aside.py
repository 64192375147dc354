"""Weights of a sleeping engine: out of the device's memory, in that of the host.

    put ──► the host's memory ──bring_back──► where they were, bit for bit
                     └───────make_room──────► room for those that come instead

Tensors stay the objects that they are, and so do all views of them; only the memory under them goes
and comes. Nobody may read them meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, UntypedStorage


class Aside:
    """What was put aside; nothing at first."""

    def __init__(self) -> None:
        self._put: dict[int, tuple[UntypedStorage, Tensor]] = {}
        """Memory that is gone, and what was in it, by its number."""

    def put(self, tensors: Iterable[Tensor]) -> None:
        """Moves what is under these tensors into the host's memory; of views, all that they are
        part of. What breaks off half-way can be brought back."""
        storages = {one.untyped_storage()._cdata: one.untyped_storage() for one in tensors}
        for number, storage in storages.items():
            if number in self._put or not storage.nbytes():
                continue
            is_pinned = storage.device.type == "cuda"
            kept = torch.empty(storage.nbytes(), dtype=torch.uint8, pin_memory=is_pinned)
            kept.copy_(_bytes_of(storage))
            self._put[number] = (storage, kept)
            storage.resize_(0)

    def bring_back(self) -> None:
        """What was put aside is where it was; where memory is short, the rest can be brought back
        later."""
        for number, (storage, kept) in list(self._put.items()):
            storage.resize_(kept.numel())
            _bytes_of(storage).copy_(kept)
            del self._put[number]

    def make_room(self) -> None:
        """The memory of what was put aside, without what was in it: somebody writes all of it."""
        for number, (storage, kept) in list(self._put.items()):
            storage.resize_(kept.numel())
            del self._put[number]


def _bytes_of(storage: UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
