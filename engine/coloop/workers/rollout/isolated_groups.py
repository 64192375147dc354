"""Process groups that only vLLM sees: it makes a default group of its own, and destroys every group
of the process when it shuts down.

torch documents the table of groups as replaceable (`distributed_c10d._world`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore
from torch.distributed import distributed_c10d

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRank:
    """This process among those of a pool that share an engine."""

    rank: int = 0
    size: int = 1
    engine: int = 0
    """Number of the engine among those of the pool."""


ALONE = EngineRank()

_group_offsets = count(1_000_000, 1_000_000)
"""Group numbers must be unique in a process, so each table starts at a different offset."""


class IsolatedProcessGroups(distributed_c10d._World):
    """A table of groups beside that of the process."""

    pg_map: Any = None
    pg_names: Any = None
    pg_group_ranks: Any = None
    pg_backend_config: Any = None
    group_count: Any = 0
    tags_to_pg: Any = None
    pg_to_tag: Any = None

    def __init__(self) -> None:
        super().__init__()
        self._number = next(_group_offsets)
        self.group_count = self._number
        self.pg_map, self.pg_names, self.pg_group_ranks = {}, {}, {}
        self.pg_backend_config, self.tags_to_pg, self.pg_to_tag = {}, {}, {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within this context `torch.distributed` uses this table. Not thread-safe."""
        before = distributed_c10d._world
        distributed_c10d._world = self
        try:
            yield
        finally:
            distributed_c10d._world = before

    def outside(self, items: Iterable[T]) -> Iterator[T]:
        """Items that are made with the groups of the process, to be read within `entered`."""
        before, making = distributed_c10d._world, iter(items)

        def read() -> Iterator[T]:
            while True:
                within = distributed_c10d._world
                distributed_c10d._world = before
                try:
                    item = next(making)
                except StopIteration:
                    return
                finally:
                    distributed_c10d._world = within
                yield item

        return read()

    def meet(self, rank: EngineRank, device_type: str) -> str:
        """Make the default group of this table from the ranks that share an engine, by the store
        at which all ranks of the pool have met. Returns a name that no other group on this machine
        has."""
        store: Any = distributed_c10d._get_default_store()
        key = f"engine/{self._number}/{rank.engine}"
        if rank.rank == 0:
            store.set(key, secrets.token_hex(8))
        name: str = store.get(key).decode()
        with self.entered():
            dist.init_process_group(
                "gloo" if device_type == "cpu" else "cpu:gloo,cuda:nccl",
                store=PrefixStore(f"{key}/{name}", store),
                rank=rank.rank,
                world_size=rank.size,
            )
        return name

    def any(self, flag: bool) -> bool:
        """Whether it is so on any rank of the default group; all must ask."""
        count = torch.tensor([flag], dtype=torch.int32)
        with self.entered():
            dist.all_reduce(count, op=dist.ReduceOp.MAX)
        return bool(count)
