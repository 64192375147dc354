"""Processes of torch that belong to one library alone.

torch keeps one default group of processes and a table of all others, for whoever asks in a process.
vLLM makes a default group of its own (of one process, where it writes alone), and takes down
whatever is there when it ends; beside learners that have met it must see none of theirs, and they
none of its. torch names the table as the place to put another one (`distributed_c10d._world`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from torch.distributed import distributed_c10d

_firsts = count(1_000_000, 1_000_000)
"""Groups are known by number to all of a process: each world counts from elsewhere."""


class OwnWorld(distributed_c10d._World):
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
        self.group_count = next(_firsts)
        self.pg_map, self.pg_names, self.pg_group_ranks = {}, {}, {}
        self.pg_backend_config, self.tags_to_pg, self.pg_to_tag = {}, {}, {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What is asked of `torch.distributed` meanwhile is asked of this table. One thread at a
        time."""
        before = distributed_c10d._world
        distributed_c10d._world = self
        try:
            yield
        finally:
            distributed_c10d._world = before
