"""The processes that train one weights group together, as one of them sees the others.

    rank 0   rank 1   ...   rank n-1        each with its own rows; sums, flags and lists are agreed
       └────────┴──── group ─────┘          over gloo on a CPU, over nccl between GPUs

Where ranks share layers (`tensor`), those of one group have the same rows and stand side by side:
of 4 with 2 each, 0 and 1 have the first rows, 2 and 3 the others. A rank alone (`ALONE`) needs no
group: every answer is its own. All ranks must ask the same questions in the same order. Does not
know models, rows or pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import FileStore, HashStore, Store, TCPStore
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from coloop.errors import PlacementTimeout

DEADLINE_SECONDS = 600.0
"""Longest wait for another rank where nothing else is said."""
DATA, TENSOR = "data", "tensor"
"""Dimensions of a mesh: over parts of the rows, and over parts of each layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1
    tensor: int = 1
    """Ranks of a group that shares every layer."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank {self.rank} of {self.size}; ranks count from 0")
        if self.tensor < 1 or self.size % self.tensor:
            raise ValueError(f"groups of {self.tensor} ranks do not divide {self.size}")

    @property
    def is_first(self) -> bool:
        """Whether this rank writes what all would write alike."""
        return self.rank == 0

    @property
    def parts(self) -> int:
        """Into how many parts rows are cut."""
        return self.size // self.tensor

    @property
    def part(self) -> int:
        """Which of them this rank has, with the others of its group."""
        return self.rank // self.tensor

    @property
    def speaks(self) -> bool:
        """Whether this rank tells of its part; the others of its group would tell the same."""
        return self.rank % self.tensor == 0

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank."""
        return self.any_of([flag])[0]

    def any_of(self, flags: Sequence[bool]) -> list[bool]:
        """Of each flag whether it is so on any rank."""
        if self.size == 1:
            return list(flags)
        told = torch.tensor(flags, dtype=torch.int32)
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
        return [bool(one) for one in told.tolist()]

    def summed(self, numbers: Tensor) -> Tensor:
        """The sum over the parts of a tensor on the CPU."""
        if self.size > 1:
            numbers = numbers.clone() if self.speaks else torch.zeros_like(numbers)
            dist.all_reduce(numbers)
        return numbers

    def gathered(self, value: Any) -> list[Any]:
        """What is given for each part, in their order; anything that pickle takes."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value if self.speaks else None)
        return found[:: self.tensor]

    def mesh(self, device_type: str) -> DeviceMesh:
        """The ranks as torch's sharding wants them, `data` by `tensor` where they share layers; a
        rank alone gets a group of its own."""
        if not dist.is_initialized():
            join(self, rendezvous=None)
        if self.tensor == 1:
            return init_device_mesh(device_type, (self.size,), mesh_dim_names=(DATA,))
        shape, names = (self.parts, self.tensor), (DATA, TENSOR)
        mesh = init_device_mesh(device_type, shape, mesh_dim_names=names)
        mesh._flatten("ranks")  # sums over both dimensions take one turn
        return mesh


ALONE = Ranks()
"""One process by itself."""


Meeting = TCPStore
"""A place where ranks meet; its `port` is what those must know that did not open it."""


def open_meeting(size: int, *, timeout_seconds: float = DEADLINE_SECONDS) -> Meeting:
    """A place on a free port of this machine where so many ranks can meet; rank 0 opens it and
    takes it to `join`."""
    timeout = timedelta(seconds=timeout_seconds)
    return TCPStore("127.0.0.1", 0, size, is_master=True, timeout=timeout, wait_for_workers=False)


def join(
    ranks: Ranks,
    *,
    rendezvous: str | None,
    meeting: Meeting | None = None,
    timeout_seconds: float = DEADLINE_SECONDS,
    wait_seconds: float | None = None,
) -> None:
    """Meet the other ranks.

    Args:
        rendezvous: `tcp://host:port` of rank 0, or `file:///path` that all ranks see; None for one
            rank alone.
        meeting: rank 0: the place, where it has opened it already.
        timeout_seconds: longest wait for a rank to come.
        wait_seconds: longest later wait for one of them; None: as long.

    Raises `PlacementTimeout`, which says who did not come.
    """
    timeout = timedelta(seconds=timeout_seconds)
    try:
        store = _store(ranks, rendezvous, timeout) if meeting is None else meeting
    except dist.DistError as error:
        raise PlacementTimeout(
            f"rank {ranks.rank} of {ranks.size} did not reach rank 0 at {rendezvous} within "
            f"{timeout_seconds:g} s: {error}"
        ) from error
    keys = [f"here/{rank}" for rank in range(ranks.size)]
    store.set(keys[ranks.rank], "yes")
    try:
        store.wait(keys, timeout)
    except (dist.DistError, RuntimeError) as error:
        missing = [str(rank) for rank, key in enumerate(keys) if not store.check([key])]
        raise PlacementTimeout(
            f"of {ranks.size} ranks {', '.join(missing)} did not join {rendezvous} within "
            f"{timeout_seconds:g} s"
        ) from error
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    later = timeout if wait_seconds is None else timedelta(seconds=wait_seconds)
    dist.init_process_group(
        backend, store=store, rank=ranks.rank, world_size=ranks.size, timeout=later
    )


def leave() -> None:
    """Part from the other ranks; nothing where none were met."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _store(ranks: Ranks, rendezvous: str | None, timeout: timedelta) -> Store:
    if rendezvous is None:
        if ranks.size > 1:
            raise ValueError(f"{ranks.size} ranks need a place to meet")
        return HashStore()
    kind, _, place = rendezvous.partition("://")
    if kind == "file":
        return FileStore(place, ranks.size)
    if kind != "tcp":
        raise ValueError(f"{rendezvous!r} is neither tcp://host:port nor file:///path")
    host, _, port = place.rpartition(":")
    return TCPStore(
        host,
        int(port),
        ranks.size,
        is_master=ranks.is_first,
        timeout=timeout,
        wait_for_workers=False,
    )
