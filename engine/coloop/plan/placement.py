"""Pools: parts of the hardware, and the weights groups that live in them."""

from coloop.plan.types import PoolPlan
from coloop.presets import hardware
from coloop.sizing.machine import threads_per_worker
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.homes import DEFAULT_POOL, holding_pool, writing_pools


def pools_of(spec: LoopSpec, threads: int | None = None) -> tuple[PoolPlan, ...]:
    """The pools, in the order in which they are written; without any, one over all the hardware.

    Args:
        threads: of the machine, that the pools share; None where the machine is not known.
    """
    groups = weights_groups(spec)
    if not spec.hardware.pools:
        gpus = gpus_of(spec)
        workers = max(1, gpus)
        each = None if threads is None else threads_per_worker(threads, 1, workers)
        return (
            PoolPlan(
                name=DEFAULT_POOL,
                workers=workers,
                gpus=gpus,
                threads_per_worker=each,
                groups=tuple(groups),
            ),
        )
    homes = {
        name: {holding_pool(spec, group), *writing_pools(spec, group)}
        for name, group in groups.items()
    }
    pools = spec.hardware.pools
    counts = {name: pool.workers or pool.gpus or 1 for name, pool in pools.items()}
    return tuple(
        PoolPlan(
            name=name,
            workers=counts[name],
            gpus=pool.gpus or 0,
            threads_per_worker=(
                None if threads is None else threads_per_worker(threads, len(pools), counts[name])
            ),
            groups=tuple(group for group in groups if name in homes[group]),
        )
        for name, pool in pools.items()
    )


def gpus_of(spec: LoopSpec) -> int:
    """GPUs of the whole hardware; 0 on a CPU."""
    name = spec.hardware.preset_name
    if name is not None:
        preset = hardware(name)
        return preset.nodes * preset.gpus_per_node
    return (spec.hardware.nodes or 1) * (spec.hardware.gpus_per_node or 0)
