"""A recorder of steps for a CPU that keeps to the rules of a CUDA graph: what is replayed are the
operations that were recorded, on the memory that they had then, and nothing is asked of the host.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from coloop.workers.rollout.graphs import Work

WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "item", "is_nonzero"}
"""Operations for which the host waits."""
LOOKUPS = {"gather", "searchsorted", "index", "index_select", "embedding"}
"""Operations that read as much of a table as they write."""
WITHOUT_KERNEL = {
    *("view", "_unsafe_view", "expand", "slice", "select", "transpose", "t", "permute", "alias"),
    *("unsqueeze", "squeeze", "split", "split_with_sizes", "unbind", "chunk", "view_as_real"),
    *("view_as_complex", "as_strided", "detach", "empty", "empty_like", "new_empty"),
    *("unflatten", "narrow", "lift_fresh"),
}


def name_of(operation: Any) -> str:
    return str(operation._schema.name.split("::")[-1])


def storage_of(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


class Counting(TorchDispatchMode):
    """Counts what a GPU would launch."""

    def __init__(self) -> None:
        super().__init__()
        self.launched = 0
        self.moved = 0
        """Bytes read and written by it."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        made = [one for one in tree_leaves(found) if isinstance(one, Tensor)]
        known = {storage_of(one) for one in given}
        may_be_a_view = any(one.alias_info is not None for one in func._schema.returns)
        is_new = func._schema.is_mutable or not may_be_a_view
        is_view = not is_new and {storage_of(one) for one in made} <= known
        if name_of(func) not in WITHOUT_KERNEL and not is_view:
            self.launched += 1
            written = sum(one.nbytes for one in made)
            out = kwargs.get("out")
            read = sum(one.nbytes for one in given if one is not out)
            self.moved += 2 * written if name_of(func) in LOOKUPS else read + written
        return found


class _Foreign:
    """A tensor that was there before the recording, which does not keep it."""

    def __init__(self, tensor: Tensor) -> None:
        self._storage = StorageWeakRef(tensor.untyped_storage())
        self._like = torch.empty(0, dtype=tensor.dtype)
        self._place = (tensor.storage_offset(), tensor.size(), tensor.stride())

    def tensor(self) -> Tensor:
        storage = torch.UntypedStorage._new_with_weak_ptr(self._storage.cdata)
        assert storage is not None, "what is replayed reads memory that is gone"
        return torch.empty_like(self._like).set_(storage, *self._place)


def _there(value: Any) -> Any:
    return value.tensor() if isinstance(value, _Foreign) else value


class _Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self._born: set[int] = set()
        self._before: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if name_of(func) in WAITS:
            raise RuntimeError(f"{func} is not permitted when a stream is capturing")
        for place, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written = kwargs.get(argument.name, args[place] if place < len(args) else None)
                if isinstance(written, Tensor):
                    self._save(written)
        known = {storage_of(one) for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)}
        found = func(*args, **kwargs)
        made = {storage_of(one) for one in tree_leaves(found) if isinstance(one, Tensor)}
        self._born |= made - known
        self.operations.append((func, *tree_map(self._kept, (args, kwargs, found))))
        return found

    def _kept(self, value: Any) -> Any:
        is_foreign = isinstance(value, Tensor) and storage_of(value) not in self._born
        return _Foreign(value) if is_foreign else value

    def _save(self, written: Tensor) -> None:
        if storage_of(written) not in self._before:
            whole = torch.empty(0, dtype=torch.uint8).set_(written.untyped_storage())
            self._before[storage_of(written)] = (whole, whole.clone())

    def undo(self) -> None:
        for whole, before in self._before.values():
            whole.copy_(before)
        self._before.clear()


class Tape:
    """Implements `Recorder`."""

    def __init__(self, counting: Counting | None = None) -> None:
        self.recorded = 0
        self.replayed = 0
        self.released = 0
        self._counting = counting

    def warm_up(self, work: Work) -> None:
        work()

    def record(self, work: Work) -> Work:
        with _Recording() as recording:
            work()
        recording.undo()
        self.recorded += 1
        return lambda: self._uncounted(lambda: self._replay(recording))

    def let_go(self) -> None:
        self.released += 1

    def _replay(self, recording: _Recording) -> None:
        self.replayed += 1
        for func, *recorded in recording.operations:
            args, kwargs, made = tree_map(_there, recorded)
            found = func(*args, **kwargs)
            for new, place in zip(tree_leaves(found), tree_leaves(made), strict=True):
                if isinstance(new, Tensor) and storage_of(new) != storage_of(place):
                    place.copy_(new)

    def _uncounted(self, work: Callable[[], None]) -> None:
        """A replay is one launch, whatever it holds."""
        before = None if self._counting is None else (self._counting.launched + 1)
        work()
        if self._counting is not None and before is not None:
            self._counting.launched = before


class Rerun:
    """Implements `Recorder` by doing the work anew each time: what it writes in the same sizes
    without recordings."""

    def warm_up(self, work: Work) -> None:
        work()

    def record(self, work: Work) -> Work:
        return work

    def let_go(self) -> None:
        pass
