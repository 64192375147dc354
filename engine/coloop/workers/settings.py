"""What a host is built from; loads nothing that hosts compute with."""

import ctypes
import os
import platform
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
    rank: int = 0  # of the process among those of its pool, from 0
    ranks: int = 1  # processes of the pool: they do together what is asked of it
    device: str = "cpu"
    log: Path | None = None
    """The run's log, for a host in a process of its own that sees its folder."""


def gpus_here() -> int:
    return torch.cuda.device_count()


def compute_with(threads: int) -> None:
    torch.set_num_threads(threads)


# What a host's process finds in its environment before torch is imported there.

KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""glibc would return freed tensors to the system some 50,000 times a second; set values win."""

FORWARDED = (
    *("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_", "PYTORCH_"),
    *("HF_", "TRANSFORMERS_", "TOKENIZERS_", "VLLM_"),
    "COLOOP_LAUNCH",
)
"""Beginnings of the environment names that a run's hosts inherit, on whatever machine: GPU
communication, model folders, library settings, and the mark of the server that started it."""
SECRETS = ("TOKEN", "SECRET", "PASSWORD", "KEY")
"""In the names of what is not handed on: Ray shows a process's settings to whoever reaches it."""

MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3, "MALLOC_ARENA_MAX": -8}
"""Their numbers in glibc's malloc.h."""


def environment_of(threads: int) -> dict[str, str]:
    """Of a process that works with so many threads."""
    kept = {name: os.environ.get(name, value) for name, value in KEEP_MEMORY.items()}
    return {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # numpy's, which starts its threads as soon as it is loaded
        **kept,
    }


def forwarded() -> dict[str, str]:
    """Of this process's environment what its hosts on other machines are to find in theirs."""
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if os.environ.get("PYTHONPATH") else {}
    named = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(FORWARDED) and not set(name.split("_")) & set(SECRETS)
    }
    return {**path, **named}


def keep_memory() -> None:
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    for name, number in MALLOPT.items():
        if name not in os.environ:
            libc.mallopt(number, int(KEEP_MEMORY[name]))
