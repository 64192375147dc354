"""The hardware of a loop, laid out into pools.

Reads `hardware` into numbers. A pool is a share of equal GPUs, or on a CPU of worker processes.
Knows nothing of what runs on it. Pools that want more than there is are laid out as they are
written: the check reports them.
"""

from dataclasses import dataclass

from coloop.errors import PresetNotFound
from coloop.plan.settings.facts import Note
from coloop.plan.settings.processor import Processor
from coloop.plan.settings.settings import CPU_TOKENS_AT_ONCE, TOKENS_AT_ONCE
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.presets import HardwarePreset

MAIN = "main"
NODE_LINK_BYTES_PER_SECOND = 50e9
"""Between machines, for each GPU: NDR400."""

FEW_CORES = 4
"""Each of so few is missed."""
PROCESS_BYTES_PER_SECOND = 1.5e9
"""Between processes of one machine, for each of them. Two that sum gradients of 1M, 5M and 20M
parameters take 2.3, 9.5 and 87 ms of a processor each: 2.0, 2.2 and 1.0 GB/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShare:
    name: str
    gpus: int
    """0 on a CPU."""
    workers: int
    """Processes of the pool; on GPUs one for each."""
    share: float
    """Its part of the machine's memory, where there is no GPU."""
    threads: int
    """Of each of its processes."""

    @property
    def places(self) -> int:
        """GPUs, or processes on a CPU."""
        return self.gpus or self.workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    preset: HardwarePreset
    pools: dict[str, PoolShare]
    budget: float
    """Share of the usable memory that may be planned for."""
    processor: Processor
    """Of the machine on which settings are decided."""

    @property
    def is_cpu(self) -> bool:
        return self.preset.gpus == 0

    @property
    def cores_for_pools(self) -> int:
        """Of few cores all; of many all but one, so that the driver, the service and the page stay
        quick beside pools that would wait for the core that they share with them."""
        cores = self.processor.cores
        return cores if cores <= FEW_CORES else cores - 1

    @property
    def tokens_at_once(self) -> int:
        return CPU_TOKENS_AT_ONCE if self.is_cpu else TOKENS_AT_ONCE

    def pool(self, name: str | None) -> PoolShare:
        """The pool of a name; the first one where the name is none or unknown."""
        if name is not None and name in self.pools:
            return self.pools[name]
        return next(iter(self.pools.values()))

    def capacity_bytes(self, pool: PoolShare) -> int:
        """Memory of one place of a pool."""
        return self._place_bytes(pool, self.preset.capacity_bytes)

    def visible_bytes(self, pool: PoolShare) -> int:
        """What a process of the pool can see of it."""
        return self._place_bytes(pool, self.preset.usable_bytes)

    def usable_bytes(self, pool: PoolShare) -> int:
        """What may be planned for: the budget's share of it."""
        return int(self.budget * self.visible_bytes(pool))

    def _place_bytes(self, pool: PoolShare, total: int) -> int:
        return int(total * pool.share / pool.workers) if self.is_cpu else total

    def link(self, gpus: int) -> float:
        """Bytes per second between neighbours of so many GPUs, or between processes on a CPU."""
        if self.is_cpu:
            return PROCESS_BYTES_PER_SECOND
        if self.preset.gpus_per_node and gpus > self.preset.gpus_per_node:
            return min(NODE_LINK_BYTES_PER_SECOND, self.preset.link_bandwidth)
        return self.preset.link_bandwidth


def threads_per_worker(threads: int, pools: int, workers: int) -> int:
    """Threads of each of a pool's processes, where so many are shared evenly by the pools."""
    return max(1, threads // max(1, pools * workers))


def lay_out(
    spec: LoopSpec, processor: Processor, workers: int = 1
) -> tuple[Machine, tuple[Note, ...]]:
    """The machine of a loop, a thread for each process; a preset that does not exist is replaced by
    `cpu` and noted.

    Args:
        workers: processes on a CPU of a loop that names no pools.
    """
    hardware, notes = spec.hardware, []
    try:
        preset = presets.hardware_of(hardware)
    except PresetNotFound as missing:
        field = "hardware.gpu" if hardware.gpu else "hardware.preset"
        notes.append(Note(message=f"{missing}; estimated as `cpu`", field=field, is_gap=True))
        preset = presets.hardware("cpu")
    if not preset.verified:
        facts = ", ".join(preset.unverified)
        notes.append(Note(message=f"not verified for {preset.name}: {facts}", field="hardware"))
    machine = Machine(
        preset=preset,
        pools=_pools(spec, preset, workers),
        budget=hardware.memory_budget,
        processor=processor,
    )
    return machine, tuple(notes)


def _pools(spec: LoopSpec, preset: HardwarePreset, workers: int) -> dict[str, PoolShare]:
    written = spec.hardware.pools
    if not written:
        count = preset.gpus or workers
        whole = PoolShare(name=MAIN, gpus=preset.gpus, workers=count, share=1.0, threads=1)
        return {MAIN: whole}
    if preset.gpus:
        counts = {name: pool.gpus or pool.workers or 1 for name, pool in written.items()}
        return {
            name: PoolShare(name=name, gpus=count, workers=count, share=1.0, threads=1)
            for name, count in counts.items()
        }
    counts = {name: pool.workers or pool.gpus or 1 for name, pool in written.items()}
    total = sum(counts.values())
    return {
        name: PoolShare(name=name, gpus=0, workers=count, share=count / total, threads=1)
        for name, count in counts.items()
    }
