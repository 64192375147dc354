"""Environment of a process that computes on a CPU, set before torch is imported: how threads wait
for each other, and how many forms of a product are kept.

A thread that waits for others spins first. By default libgomp, which torch uses on Linux, spins
300,000 times, 20 ms on a processor whose `pause` takes 140 cycles: where other processes use the
same cores, it takes them from the thread that it waits for. Measured with two threads on two cores
that ran five other processes each, 32 texts of a model of 135M parameters: 18 to 22 s of CPU time
for 12 tokens each, 2.5 to 3.1 s with the count below.

oneDNN, which computes products in bfloat16, builds one for each number of rows and keeps the last
1,024, as does torch's wrapper of it, with 0.6 MiB each. Texts of other lengths have other numbers
of rows: a process that trained 135M parameters on sums grew from 4.3 to 7.9 GiB in 150 updates.
With 120 numbers of rows and five matrices, forward and backward, 1,412 MiB and 18.9 s of CPU time
with 1,024 of them, 311 MiB and 17.1 s with 64: layers of one form follow each other.
"""

import os
from typing import Final

THREADS: Final = "OMP_NUM_THREADS"
SPINS: Final = "GOMP_SPINCOUNT"
POLICY: Final = "OMP_WAIT_POLICY"
SPIN_COUNT: Final = 1000
"""Some 70 µs: longer than what lies between two products of a block, so that waiting threads are
still there on a machine of one's own."""
PRODUCTS: Final = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}
"""Products that oneDNN and torch's wrapper keep: more than a layer has, forward and backward."""


def waiting() -> dict[str, str]:
    """How threads wait: as this process's environment says, else for a short time."""
    if SPINS not in os.environ and POLICY in os.environ:
        return {}
    return {SPINS: os.environ.get(SPINS, str(SPIN_COUNT))}


def settings() -> dict[str, str]:
    """What does not depend on the number of threads, as this process's environment says where it
    does."""
    kept = {name: os.environ.get(name, value) for name, value in PRODUCTS.items()}
    return {**waiting(), **kept}


def set_default_threads(threads: int) -> None:
    """Set the environment of this process, where it does not say otherwise."""
    os.environ.setdefault(THREADS, str(threads))
    os.environ.update(settings())


def environment_of(threads: int) -> dict[str, str]:
    """The same for another process, in which so many threads compute."""
    return {
        THREADS: str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # numpy's; it starts its threads when it is imported
        **settings(),
    }
