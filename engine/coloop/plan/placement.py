"""Pools: parts of the hardware, and the weights groups that live in them."""

from coloop.plan.types import PoolPlan
from coloop.presets import hardware
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of, weights_groups

DEFAULT_POOL = "main"


def pool_of(spec: LoopSpec, node: str) -> str:
    """The pool of a node's weights; a group lives where its owner does."""
    owner = owner_of(spec, node) or node
    named = spec.nodes[owner].pool
    if named is not None:
        return named
    return next(iter(spec.hardware.pools), DEFAULT_POOL)


def pools_of(spec: LoopSpec) -> tuple[PoolPlan, ...]:
    """The pools, in the order in which they are written; without any, one over all the hardware."""
    groups = weights_groups(spec)
    if not spec.hardware.pools:
        gpus = gpus_of(spec)
        return (PoolPlan(name=DEFAULT_POOL, workers=max(1, gpus), gpus=gpus, groups=tuple(groups)),)
    return tuple(
        PoolPlan(
            name=name,
            workers=pool.workers or pool.gpus or 1,
            gpus=pool.gpus or 0,
            groups=tuple(group for group in groups if pool_of(spec, group) == name),
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
