"""A loop on its machine: what every decision about it looks at, and what was decided so far.

Knows no sizes. Values that the loop leaves open are noted with their reasons by who decides them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypeVar

from coloop.plan.settings.facts import Note, resolve_architecture
from coloop.plan.settings.machine import Machine, PoolShare, lay_out, threads_per_worker
from coloop.plan.settings.processor import Conditions
from coloop.plan.settings.settings import Decision
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, holding_pool, owner_of, weights_groups, writing_pools

Value = TypeVar("Value")


class Outline:
    def __init__(
        self, spec: LoopSpec, root: Path | None, conditions: Conditions, workers: int
    ) -> None:
        """
        Args:
            root: folder for relative model paths; without it no file is opened.
            workers: processes on a CPU where the loop names no pools.
        """
        self.spec, self.root, self.conditions = spec, root, conditions
        bare, notes = lay_out(spec, conditions.processor, workers)
        self.machine, threads = with_threads(spec, bare, conditions, root)
        self.notes: list[Note] = list(notes)
        self.decisions: dict[str, Decision] = {one.path: one for one in threads}
        owned = {node: owner_of(spec, node) for node in spec.nodes}
        self.owners = {node: owner for node, owner in owned.items() if owner is not None}
        """Node to the owner of its weights."""
        self.groups: dict[str, WeightsGroup] = weights_groups(spec)

    def home_of(self, group: str) -> PoolShare:
        return self.machine.pool(holding_pool(self.spec, self.groups[group]))

    def decide(self, path: str, value: Value, reason: str) -> Value:
        """Notes a value that the loop left open, and gives it back."""
        self.decisions.setdefault(path, Decision(path=path, value=value, reason=reason))
        return value


# With how many threads each process of a pool computes.
#
# Pools share the cores evenly, and so do the processes of a pool. Products of a narrow model are
# too short to be shared by many: further threads only wait.

WIDTH_OF_THREAD = 256
"""Hidden size for each thread that gains. Steps of GRPO with short texts and the models of
`tests/bench/grpo`, on two cores that do nothing else: where it is 256, two threads take 0.254 to
0.317 s and one 0.217 s; where it is 512, two take 0.605 s and one 0.661 s, as `cores` predicts."""


def with_threads(
    spec: LoopSpec, machine: Machine, conditions: Conditions, root: Path | None = None
) -> tuple[Machine, tuple[Decision, ...]]:
    """The machine with the threads of each pool's processes, and why.

    Args:
        root: folder for relative model paths; without it no file is opened.
    """
    widths = _widths(spec, machine, root)
    settled = list(_settle(machine, conditions, widths))
    pools = {
        name: replace(pool, threads=threads)
        for (name, pool), (threads, _) in zip(machine.pools.items(), settled, strict=True)
    }
    decisions = tuple(
        Decision(path=f"threads.{name}", value=threads, reason=reason)
        for name, (threads, reason) in zip(machine.pools, settled, strict=True)
    )
    return replace(machine, pools=pools), decisions


def _settle(
    machine: Machine, conditions: Conditions, widths: Mapping[str, float]
) -> Iterator[tuple[int, str]]:
    cores = conditions.threads or machine.cores_for_pools
    for name, pool in machine.pools.items():
        each = threads_per_worker(cores, len(machine.pools), pool.workers)
        if conditions.threads is not None:
            yield each, f"a share of the {cores} requested cores"
        elif machine.is_cpu and each > max(widths.get(name, inf) // WIDTH_OF_THREAD, 1):
            fitting = max(int(widths[name] // WIDTH_OF_THREAD), 1)
            several = "one thread" if fitting == 1 else f"{fitting} threads"
            yield fitting, f"more than {several} are no faster with {widths[name]:.0f} columns"
        elif cores == 1:
            yield 1, "one core"
        else:
            left = "" if cores == machine.processor.cores else ", the last is left to the driver"
            yield each, f"a share of {cores} cores{left}"


def _widths(spec: LoopSpec, machine: Machine, root: Path | None) -> dict[str, float]:
    """The widest model of each pool; nothing of a pool of which a model is not known."""
    found: dict[str, float] = {}
    for name, group in weights_groups(spec).items():
        arch, _ = resolve_architecture(spec, name, root)
        for pool in {holding_pool(spec, group), *writing_pools(spec, group)}:
            place = machine.pool(pool).name
            width = inf if arch is None else arch.hidden_size
            found[place] = max(found.get(place, 0.0), width)
    return found
