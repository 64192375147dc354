"""What a host is built from. Whoever only speaks with hosts loads nothing of what they compute
with: a driver beside the processes of its pools needs no models."""

from dataclasses import dataclass
from pathlib import Path

import torch

from coloop.plan.types import WeightsPlan
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import DEFAULT_POOL


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What a host is built from; picklable."""

    spec: LoopSpec
    weights: tuple[WeightsPlan, ...]
    """All groups of the loop, those of other pools as well: what lives here may start from them."""
    root: Path
    seed: int
    threads: int
    pool: str = DEFAULT_POOL
    """Where the host stands: it has the homes that are planned for this pool."""
    rank: int = 0
    """Of the process among those of its pool, from 0."""
    ranks: int = 1
    """Processes of the pool: they do together what is asked of it."""
    device: str = "cpu"
    log: Path | None = None
    """The run's log, for a host in a process of its own; it is left alone where its folder cannot
    be seen from there."""


def gpus_here() -> int:
    """GPUs that this process can use."""
    return torch.cuda.device_count()


def compute_with(threads: int) -> None:
    """So many threads for what this process computes."""
    torch.set_num_threads(threads)
