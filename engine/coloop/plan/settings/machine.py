"""The hardware of a loop, divided into pools: shares of equal GPUs, or of worker processes on a
CPU.

Pools that request more than there is are laid out as written; a check reports them.
"""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypeVar

from coloop.errors import PresetNotFound
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.settings.processor import Conditions, Processor
from coloop.plan.settings.settings import CPU_TOKENS_AT_ONCE, TOKENS_AT_ONCE, Decision, Note
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import (
    DEFAULT_POOL,
    WeightsGroup,
    holding_pool,
    owner_of,
    weights_groups,
    writing_pools,
)
from coloop.spec.lean import record
from coloop.spec.presets import HardwarePreset

NODE_LINK_BYTES_PER_SECOND = 50e9
"""Between machines, of one network card: NDR400. Machines have one for each GPU."""
NETWORK_SHARE = 0.85
"""Of a network card's bandwidth, what transfers reach."""

FEW_CORES = 4
"""Up to this many cores, pools use all of them."""
PROCESS_BYTES_PER_SECOND = 1.5e9
"""Between processes of one machine, for each. Two processes that sum gradients of 1M, 5M and 20M
parameters take 2.3, 9.5 and 87 ms of CPU time each: 2.0, 2.2 and 1.0 GB/s."""


@record
class PoolShare:
    name: str
    gpus: int
    workers: int
    """Processes of the pool; one per GPU."""
    share: float
    """On a CPU, its share of the machine's memory."""
    threads: int
    """Per process."""

    @property
    def places(self) -> int:
        return self.gpus or self.workers


@record
class Machine:
    preset: HardwarePreset
    pools: dict[str, PoolShare]
    budget: float
    """Share of the usable memory that a plan may fill."""
    processor: Processor
    """CPU of the machine on which settings are decided."""

    @property
    def is_cpu(self) -> bool:
        return self.preset.gpus == 0

    @property
    def cores_for_pools(self) -> int:
        """All cores if there are few. Otherwise all but one, which keeps driver, service and page
        responsive."""
        cores = self.processor.cores
        return cores if cores <= FEW_CORES else cores - 1

    @property
    def tokens_at_once(self) -> int:
        return CPU_TOKENS_AT_ONCE if self.is_cpu else TOKENS_AT_ONCE

    def pool(self, name: str | None) -> PoolShare:
        """The pool of this name; the first one if the name is None or unknown."""
        if name is not None and name in self.pools:
            return self.pools[name]
        return next(iter(self.pools.values()))

    def capacity_bytes(self, pool: PoolShare) -> int:
        """Memory of one GPU or process of a pool."""
        return self._place_bytes(pool, self.preset.capacity_bytes)

    def visible_bytes(self, pool: PoolShare) -> int:
        """The part of `capacity_bytes` that a process can use."""
        return self._place_bytes(pool, self.preset.usable_bytes)

    def usable_bytes(self, pool: PoolShare) -> int:
        """The part of `visible_bytes` that the budget allows."""
        return int(self.budget * self.visible_bytes(pool))

    def _place_bytes(self, pool: PoolShare, total: int) -> int:
        return int(total * pool.share / pool.workers) if self.is_cpu else total

    def link(self, gpus: int, beside: int = 1) -> float:
        """Bytes per second between neighbours of this many GPUs, or between processes on a CPU.

        A collective over whole machines uses all their network cards. `beside`: GPUs of a machine
        that communicate with others elsewhere at the same time, as those of a tensor-parallel group
        do, and share the cards.
        """
        if self.is_cpu:
            return PROCESS_BYTES_PER_SECOND
        each = self.preset.gpus_per_node
        if each and gpus * beside > each:
            return min(self.network(max(each // beside, 1)), self.preset.link_bandwidth)
        return self.preset.link_bandwidth

    def network(self, cards: int = 1) -> float:
        """Bytes per second to another machine over this many network cards."""
        return NETWORK_SHARE * NODE_LINK_BYTES_PER_SECOND * cards

    def is_one_machine(self, gpus: int) -> bool:
        return not self.preset.gpus_per_node or gpus <= self.preset.gpus_per_node


def _pools(spec: LoopSpec, preset: HardwarePreset, workers: int) -> dict[str, PoolShare]:
    written = spec.hardware.pools
    counts = {DEFAULT_POOL: preset.gpus or workers}
    if written and preset.gpus:
        counts = {name: pool.gpus or pool.workers or 1 for name, pool in written.items()}
    elif written:
        counts = {name: pool.workers or pool.gpus or 1 for name, pool in written.items()}
    total = sum(counts.values())
    return {
        name: PoolShare(
            name=name,
            gpus=count if preset.gpus else 0,
            workers=count,
            share=1.0 if preset.gpus else count / total,
            threads=1,
        )
        for name, count in counts.items()
    }


# A loop on its machine: the inputs of all decisions, and the decisions so far, with their reasons.

Value = TypeVar("Value")


class Outline:
    def __init__(
        self, spec: LoopSpec, root: Path | None, conditions: Conditions, workers: int
    ) -> None:
        """`root`: folder for relative model paths; without it no file is opened. `workers`:
        processes on a CPU if the loop has no pools."""
        self.spec, self.root, self.conditions = spec, root, conditions
        self.notes: list[Note] = []
        self.decisions: dict[str, Decision] = {}
        owned = {node: owner_of(spec, node) for node in spec.nodes}
        self.owners = {node: owner for node, owner in owned.items() if owner is not None}
        """By node, its weights group."""
        self.groups: dict[str, WeightsGroup] = weights_groups(spec)
        self.machine = self._lay_out(workers)

    def home_of(self, group: str) -> PoolShare:
        return self.machine.pool(holding_pool(self.spec, self.groups[group]))

    def decide(self, path: str, value: Value, reason: str) -> Value:
        """Record a value for an open setting, and return it."""
        self.decisions.setdefault(path, Decision(path=path, value=value, reason=reason))
        return value

    def _lay_out(self, workers: int) -> Machine:
        """An unknown hardware preset is replaced by `cpu`, with a note."""
        hardware = self.spec.hardware
        try:
            preset = presets.hardware_of(hardware)
        except PresetNotFound as missing:
            field, text = "hardware.gpu" if hardware.gpu else "hardware.preset", str(missing)
            self.notes.append(Note(message=f"{text}; estimated as `cpu`", field=field, is_gap=True))
            preset = presets.hardware("cpu")
        if not preset.verified:
            text = f"not verified for {preset.name}: {', '.join(preset.unverified)}"
            self.notes.append(Note(message=text, field="hardware"))
        machine = Machine(
            preset=preset,
            pools=_pools(self.spec, preset, workers),
            budget=hardware.memory_budget,
            processor=self.conditions.processor,
        )
        widths = self._widths(machine)
        for name, pool in machine.pools.items():
            threads, reason = _threads(machine, self.conditions, pool, widths.get(name, inf))
            self.decide(f"threads.{name}", threads, reason)
            machine.pools[name] = replace(pool, threads=threads)
        return machine

    def _widths(self, machine: Machine) -> dict[str, float]:
        """Largest hidden size in each pool; infinite if the pool has an unknown model."""
        widths: dict[str, float] = {}
        for name, group in self.groups.items():
            arch, _ = resolve_architecture(self.spec, name, self.root)
            for pool in {holding_pool(self.spec, group), *writing_pools(self.spec, group)}:
                home = machine.pool(pool).name
                width = inf if arch is None else arch.hidden_size
                widths[home] = max(widths.get(home, 0.0), width)
        return widths


# Threads of each process of a pool.
#
# Pools share the cores evenly, and so do the processes of a pool. Products of a narrow model are
# too short for many threads: further ones only wait.

WIDTH_OF_THREAD = 256
"""Hidden size for each thread; further threads are no faster. GRPO steps with short texts and the
models of `tests/bench/grpo`, on two idle cores: at 256, two threads take 0.254 to 0.317 s and one
0.217 s; at 512, two take 0.605 s and one 0.661 s, as `cores` predicts."""


def _threads(
    machine: Machine, conditions: Conditions, pool: PoolShare, width: float
) -> tuple[int, str]:
    """Threads of each process of a pool, and why. `width`: hidden size of the widest model of the
    pool."""
    cores = conditions.threads or machine.cores_for_pools
    each = max(1, cores // (len(machine.pools) * pool.workers))
    if conditions.threads is not None:
        return each, f"a share of the {cores} requested cores"
    if machine.is_cpu and each > max(width // WIDTH_OF_THREAD, 1):
        fitting = max(int(width // WIDTH_OF_THREAD), 1)
        several = "one thread" if fitting == 1 else f"{fitting} threads"
        return fitting, f"more than {several} are no faster with {width:.0f} columns"
    if cores == 1:
        return 1, "one core"
    left = "" if cores == machine.processor.cores else ", the last is left to the driver"
    return each, f"a share of {cores} cores{left}"
