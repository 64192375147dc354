"""Pools: parts of the hardware, and the weights groups that live in them."""

from coloop.plan.types import PoolPlan
from coloop.presets import hardware
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.homes import DEFAULT_POOL, holding_pool, writing_pools


def pools_of(spec: LoopSpec) -> tuple[PoolPlan, ...]:
    """The pools, in the order in which they are written; without any, one over all the hardware."""
    groups = weights_groups(spec)
    if not spec.hardware.pools:
        gpus = gpus_of(spec)
        return (PoolPlan(name=DEFAULT_POOL, workers=max(1, gpus), gpus=gpus, groups=tuple(groups)),)
    homes = {
        name: {holding_pool(spec, group), *writing_pools(spec, group)}
        for name, group in groups.items()
    }
    return tuple(
        PoolPlan(
            name=name,
            workers=pool.workers or pool.gpus or 1,
            gpus=pool.gpus or 0,
            groups=tuple(group for group in groups if name in homes[group]),
        )
        for name, pool in spec.hardware.pools.items()
    )


def gpus_of(spec: LoopSpec) -> int:
    """GPUs of the whole hardware; 0 on a CPU."""
    name = spec.hardware.preset_name
    if name is not None:
        preset = hardware(name)
        return preset.nodes * preset.gpus_per_node
    return (spec.hardware.nodes or 1) * (spec.hardware.gpus_per_node or 0)
