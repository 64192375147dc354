"""The processes that train one weights group together, as one of them sees the others.

    rank 0   rank 1   ...   rank n-1        each with its own rows; sums, flags and lists are agreed
       └────────┴──── group ─────┘          over gloo on a CPU, over nccl between GPUs

Ranks that share layers (`tensor`) have the same rows and neighbouring numbers. A rank alone
(`ALONE`) needs no group. All ranks must ask the same questions in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import FileStore, HashStore, Store, TCPStore
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from coloop.algorithms.batch import Batch
from coloop.algorithms.batch.passes import tokens_of
from coloop.errors import PlacementTimeout

DEADLINE_SECONDS = 600.0  # longest wait for another rank where nothing else is said
DATA, TENSOR = "data", "tensor"
"""Dimensions of a mesh: over parts of the rows, and over parts of each layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1
    tensor: int = 1  # ranks of a group that shares every layer

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
        return self.any_of([flag])[0]

    def any_of(self, flags: Sequence[bool]) -> list[bool]:
        """Of each flag whether it is so on any rank."""
        if self.size == 1:
            return list(flags)
        counts = torch.tensor(flags, dtype=torch.int32)
        dist.all_reduce(counts, op=dist.ReduceOp.MAX)
        return [bool(count) for count in counts.tolist()]

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
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value if self.speaks else None)
        return values[:: self.tensor]

    def mesh(self, device_type: str) -> DeviceMesh:
        """For torch's sharding, `data` by `tensor` where ranks share layers."""
        if not dist.is_initialized():
            join(self, rendezvous=None)
        if self.tensor == 1:
            return init_device_mesh(device_type, (self.size,), mesh_dim_names=(DATA,))
        shape, names = (self.parts, self.tensor), (DATA, TENSOR)
        mesh = init_device_mesh(device_type, shape, mesh_dim_names=names)
        mesh._flatten("ranks")  # sums over both dimensions take one turn
        return mesh


ALONE = Ranks()  # one process by itself


Meeting = TCPStore
"""A place where ranks meet; its `port` is what those must know that did not open it."""


def open_meeting(size: int, *, timeout_seconds: float = DEADLINE_SECONDS) -> Meeting:
    """A place on a free port where ranks can meet; rank 0 takes it to `join`."""
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
        rendezvous: `tcp://host:port` of rank 0, or a `file:///path` that all see; None: alone.
        meeting: rank 0: the place, where it is open already.
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
    if dist.is_initialized():
        dist.destroy_process_group()


def _store(ranks: Ranks, rendezvous: str | None, timeout: timedelta) -> Store:
    if rendezvous is None:
        if ranks.size > 1:
            raise ValueError(f"{ranks.size} ranks need a place to meet")
        return HashStore()
    kind, _, address = rendezvous.partition("://")
    if kind == "file":
        return FileStore(address, ranks.size)
    if kind != "tcp":
        raise ValueError(f"{rendezvous!r} is neither tcp://host:port nor file:///path")
    host, _, port = address.rpartition(":")
    return TCPStore(
        host,
        int(port),
        ranks.size,
        is_master=ranks.is_first,
        timeout=timeout,
        wait_for_workers=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How an update speaks with who waits for it."""

    progress: Callable[[int, int], None] = lambda done, total: None
    """Called with rows done by this rank and rows of all, after each micro-batch."""
    should_stop: Callable[[], bool] = lambda: False
    """Asked between micro-batches before an optimizer step is taken; if one rank stops, all do."""


# An optimizer step's rows over the ranks, and each rank's in micro-batches: every rank knows the
# shares of all. Where passes are collective, all make as many, maybe empty ones. Rows that begin
# alike stay together.

Split = Callable[[Sequence[int], Sequence[int], Batch | None], list[list[int]]]
"""Units in micro-batches, as `split_units`."""


def passes_of(
    ranks: Ranks,
    units: Sequence[int],
    lengths: Sequence[int],
    split: Split,
    batch: Batch | None = None,
    *,
    is_in_step: bool = True,
) -> list[list[int]]:
    """This rank's micro-batches of a step's units; [] for a pass without rows.

    Args:
        lengths: tokens that every unit of the batch fills.
        batch: whose rows may begin alike; None: it does not matter.
        is_in_step: all ranks make as many passes.
    """
    shares = shares_of(units, lengths, ranks.parts, batch)
    own = split(shares[ranks.part], lengths, batch)
    if not is_in_step:
        return own
    others = (share for part, share in enumerate(shares) if part != ranks.part)
    most = max((len(split(share, lengths, batch)) for share in others), default=0)
    return [*own, *([] for _ in range(most - len(own)))]


def shares_of(
    units: Sequence[int], lengths: Sequence[int], size: int, batch: Batch | None = None
) -> list[list[int]]:
    """Units of each rank, in order: the longest first, each to the rank with the fewest tokens.
    Units that begin alike go to one rank, unless the fullest would then read more."""
    if size == 1:
        return [list(units)]
    apart = _dealt([[unit] for unit in units], lengths, size)
    if batch is not None and batch.begin_alike(units):
        alike: dict[int, list[int]] = {}
        prompts = batch.prompts.tolist()
        for unit in units:
            alike.setdefault(prompts[unit], []).append(unit)
        together = _dealt([*alike.values()], lengths, size)
        apart = min(together, apart, key=lambda shares: max(tokens_of(shares, lengths, batch)))
    order = {unit: index for index, unit in enumerate(units)}
    return [sorted(share, key=order.__getitem__) for share in apart]


def _dealt(bundles: list[list[int]], lengths: Sequence[int], size: int) -> list[list[int]]:
    sizes = [sum(lengths[unit] for unit in bundle) for bundle in bundles]
    shares: list[list[int]] = [[] for _ in range(size)]
    filled = [0] * size
    for index in sorted(range(len(bundles)), key=lambda index: -sizes[index]):
        least = min(range(size), key=filled.__getitem__)
        shares[least] += bundles[index]
        filled[least] += sizes[index]
    return shares


# Epochs and mini-batches, in an order that a seed decides. Several loads are cut into as many
# mini-batches as the largest needs to stay at `mini_batch` rows, as evenly as can be.

Step = list[list[int]]
"""For each load the places of its rows in one optimizer step; a list may be empty."""


def plan_steps(
    sizes: Sequence[int], *, mini_batch: int | None, epochs: int, seed: int
) -> list[Step]:
    """Rows of each optimizer step of an update, every row once an epoch."""
    largest = max(sizes, default=0)
    parts = 1 if mini_batch is None else max(-(-largest // mini_batch), 1)
    generator = torch.Generator().manual_seed(seed)
    steps: list[Step] = []
    for _ in range(epochs):
        orders = [_order(size, parts, generator) for size in sizes]
        for part in range(parts):
            steps.append([_share(order, part, parts) for order in orders])
    return steps


def _order(size: int, parts: int, generator: torch.Generator) -> list[int]:
    if parts == 1:
        return list(range(size))
    order: list[int] = torch.randperm(size, generator=generator).tolist()
    return order


def _share(order: list[int], part: int, parts: int) -> list[int]:
    return order[part * len(order) // parts : (part + 1) * len(order) // parts]
