"""Pools: parts of the hardware, and the weights groups that live in them."""

from coloop.plan.settings.machine import Machine, PoolShare
from coloop.plan.types import PoolPlan
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.homes import DEFAULT_POOL, holding_pool, writing_pools
from coloop.spec.presets import hardware


def pools_of(spec: LoopSpec, machine: Machine) -> tuple[PoolPlan, ...]:
    """The pools, in the order in which they are written; without any, one over all the hardware.

    Args:
        machine: as it was laid out for the loop.
    """
    groups = weights_groups(spec)
    homes = {
        name: {holding_pool(spec, group), *writing_pools(spec, group)}
        for name, group in groups.items()
    }
    if not spec.hardware.pools:
        whole = machine.pool(None)
        return (_planned(whole, DEFAULT_POOL, gpus_of(spec), tuple(groups)),)
    return tuple(
        _planned(
            machine.pool(name),
            name,
            pool.gpus or 0,
            tuple(group for group in groups if name in homes[group]),
        )
        for name, pool in spec.hardware.pools.items()
    )


def _planned(share: PoolShare, name: str, gpus: int, groups: tuple[str, ...]) -> PoolPlan:
    return PoolPlan(
        name=name,
        workers=share.workers,
        gpus=gpus,
        threads_per_worker=share.threads,
        groups=groups,
    )


def gpus_of(spec: LoopSpec) -> int:
    """GPUs of the whole hardware; 0 on a CPU."""
    name = spec.hardware.preset_name
    if name is not None:
        preset = hardware(name)
        return preset.nodes * preset.gpus_per_node
    return (spec.hardware.nodes or 1) * (spec.hardware.gpus_per_node or 0)
