"""What a host's process finds in its environment before torch is imported there."""

import ctypes
import os
import platform

KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""glibc gives freed tensors back to the system and gets them again, page by page, some 50,000 times
a second of training; a host's process keeps its memory. Who sets these differently is obeyed."""

FORWARDED = (
    *("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_", "PYTORCH_"),
    *("HF_", "TRANSFORMERS_", "TOKENIZERS_", "VLLM_"),
    "COLOOP_LAUNCH",
)
"""How the names begin of what is set where a run is started and counts for its hosts, on whatever
machine they stand: how GPUs speak with one another, where models lie, what a library does; and the
mark of the server that started it, by which it finds what is left of a run."""
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
    """The same for this process, in which a host is to work."""
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    for name, number in MALLOPT.items():
        if name not in os.environ:
            libc.mallopt(number, int(KEEP_MEMORY[name]))
