"""Weights between machines that share no folder: their files are carried by the driver.

    home's folder ──part──> driver ──part──> folder of the pool that takes them

Either end has files in the memory of its own machine, as where a folder is shared; the driver holds
one part of one file at a time, and whatever carries calls carries it (Ray: its object store). All
weights pass the driver once for each pool, so a folder that all see is faster.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from coloop.plan.portions import CPU_BYTES
from coloop.workers.sync import WeightTransfer
from coloop.workers.worker_api import PoolCall, WorkerApi


def landing(call: PoolCall, transfer: WeightTransfer, pool: str) -> WeightTransfer:
    """The transfer as another pool will have it, in a folder of its own; nothing is there yet.

    Args:
        call: a method of a pool's workers.
    """
    folder, files = transfer.place
    own = call(pool, WorkerApi.own_place, transfer.size_bytes, transfer.version)
    return replace(transfer, place=(str(own / Path(folder).name), files))


def carry(
    call: PoolCall,
    transfers: Mapping[str, WeightTransfer],
    home: str,
    pool: str,
    *,
    part_bytes: int = CPU_BYTES,
) -> None:
    """Bring the files of a transfer from the pool in which they are to where another has it."""
    folder, files = transfers[home].place
    target = transfers[pool].place[0]
    for name, size in files:
        for start in range(0, size, part_bytes):
            part = call(home, WorkerApi.read_part, Path(folder) / name, start, part_bytes)
            call(pool, WorkerApi.write_part, Path(target) / name, start, part)
