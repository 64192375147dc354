"""Settings and environment of a worker process; imports neither models nor transformers."""

import ctypes
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from coloop.plan.types import WeightsPlan
from coloop.spec import model_folders
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import DEFAULT_POOL
from coloop.workers import openmp


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What a worker is created from; picklable."""

    spec: LoopSpec
    weights: tuple[WeightsPlan, ...]
    """All groups of the loop; those of other pools too, as groups here may start from them."""
    root: Path
    seed: int
    threads: int
    pool: str = DEFAULT_POOL
    """The worker's pool; it holds the weights groups that are planned for it."""
    rank: int = 0  # in the pool
    ranks: int = 1  # processes of the pool, which answer each call together
    device: str = "cpu"
    log: Path | None = None
    """The run's log file, for a worker in a separate process that sees its folder; else None."""


def gpus_here() -> int:
    return torch.cuda.device_count()


def set_cpu_threads(threads: int) -> None:
    torch.set_num_threads(threads)


# The environment of a worker process, set before torch is imported there.

KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""Else glibc returns freed tensors to the system about 50,000 times a second. Values that are set
already are kept."""

FORWARDED = (
    *("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_", "PYTORCH_"),
    *("HF_", "TRANSFORMERS_", "TOKENIZERS_", "VLLM_"),
    *("COLOOP_LAUNCH", model_folders.SETTING),
)
"""Prefixes of the environment variables that workers on other machines inherit: GPU communication,
model folders, library settings, and the mark of the server that started the run."""
SECRETS = ("TOKEN", "SECRET", "PASSWORD", "KEY")
"""Words in names of variables that are not forwarded, as Ray shows them to all its users."""

MALLOPT = {"MALLOC_TRIM_THRESHOLD_": -1, "MALLOC_MMAP_THRESHOLD_": -3, "MALLOC_ARENA_MAX": -8}
"""By variable, the parameter of `mallopt` in glibc's malloc.h."""


def environment_of(threads: int) -> dict[str, str]:
    """Thread counts and malloc settings of a worker process."""
    malloc = {name: os.environ.get(name, value) for name, value in KEEP_MEMORY.items()}
    return {**openmp.environment_of(threads), **malloc}


def forwarded() -> dict[str, str]:
    """Variables of this process for its workers on other machines."""
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if os.environ.get("PYTHONPATH") else {}
    prefixed = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(FORWARDED) and not set(name.split("_")) & set(SECRETS)
    }
    return {**path, **prefixed}


def keep_memory() -> None:
    """Apply `KEEP_MEMORY` to this process, where the environment sets nothing else."""
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    for name, parameter in MALLOPT.items():
        if name not in os.environ:
            libc.mallopt(parameter, int(KEEP_MEMORY[name]))
