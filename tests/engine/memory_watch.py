"""How many bytes of tensors a piece of code has at once, whoever holds them."""

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MemoryWatch(TorchDispatchMode):
    """While it is entered, the memory of every tensor that torch makes is counted until it is
    freed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, given: Any = (), named: Any = None
    ) -> Any:
        before = {self._key(one) for one in tree_leaves((given, named)) if _is_plain(one)}
        out = function(*given, **(named or {}))
        for one in tree_leaves(out):
            if _is_plain(one) and self._key(one) not in before:
                self._add(one.untyped_storage())
        return out

    def _key(self, tensor: torch.Tensor) -> int:
        return tensor.untyped_storage()._cdata

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


class ResizedWatch(MemoryWatch):
    """A `MemoryWatch` that sees memory which is given back while its tensor stays, as what ranks
    gather for a pass is."""

    def __init__(self) -> None:
        super().__init__()
        self._live: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def begin(self) -> int:
        """Bytes that are held now, from which the peak begins anew."""
        alive = {key: one for key, ref in self._live.items() if (one := ref()) is not None}
        self._live = {key: self._live[key] for key in alive}
        self.now = self.peak = sum(one.nbytes() for one in alive.values())
        return self.now

    def _add(self, storage: torch.UntypedStorage) -> None:
        self._live[storage._cdata] = weakref.ref(storage)
        peak = self.peak
        self.peak = max(peak, self.begin())


def _is_plain(one: Any) -> bool:
    return type(one) in (torch.Tensor, torch.nn.Parameter) and one.device.type != "meta"
