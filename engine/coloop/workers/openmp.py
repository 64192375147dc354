"""Environment of a process whose products are computed by several threads, set before torch is
imported.

A thread that waits for others spins first. By default libgomp, which torch uses on Linux, spins
300,000 times, 20 ms on a processor whose `pause` takes 140 cycles: where other processes use the
same cores, it takes them from the thread that it waits for. Measured with two threads on two cores
that ran five other processes each, 32 texts of a model of 135M parameters: 18 to 22 s of CPU time
for 12 tokens each, 2.5 to 3.1 s with the count below.
"""

import os
from typing import Final

THREADS: Final = "OMP_NUM_THREADS"
SPINS: Final = "GOMP_SPINCOUNT"
POLICY: Final = "OMP_WAIT_POLICY"
SPIN_COUNT: Final = 1000
"""Some 70 µs: longer than what lies between two products of a block, so that waiting threads are
still there on a machine of one's own."""


def waiting() -> dict[str, str]:
    """How threads wait: as this process's environment says, else for a short time."""
    if SPINS not in os.environ and POLICY in os.environ:
        return {}
    return {SPINS: os.environ.get(SPINS, str(SPIN_COUNT))}


def set_default_threads(threads: int) -> None:
    """Set the environment of this process, where it does not say otherwise."""
    os.environ.setdefault(THREADS, str(threads))
    os.environ.update(waiting())


def environment_of(threads: int) -> dict[str, str]:
    """The same for another process, in which so many threads compute."""
    return {
        THREADS: str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",  # numpy's; it starts its threads when it is imported
        **waiting(),
    }
