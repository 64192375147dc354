"""Where weights are held and where members of their group write: pools, from the spec alone."""

from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, owner_of
from coloop.spec.rollout import Rollout, Turns

DEFAULT_POOL = "main"


def pool_of(spec: LoopSpec, node: str) -> str:
    """The pool that a node's weights are given to; a group's is its owner's."""
    owner = owner_of(spec, node) or node
    named = spec.nodes[owner].pool
    if named is not None:
        return named
    return next(iter(spec.hardware.pools), DEFAULT_POOL)


def writing_pools(spec: LoopSpec, group: WeightsGroup) -> dict[str, tuple[str, ...]]:
    """The pools in which members of a group write, each with its writers."""
    found: dict[str, tuple[str, ...]] = {}
    for member in group.members:
        rollout = rollout_of(spec, member)
        if rollout is not None:
            pool = rollout.pool or spec.nodes[member].pool or pool_of(spec, member)
            found[pool] = (*found.get(pool, ()), member)
    return found


def holding_pool(spec: LoopSpec, group: WeightsGroup) -> str:
    """The pool that holds a group's weights: where they train or score, and of frozen weights that
    only write where they do."""
    pools = writing_pools(spec, group)
    only_write = all(rollout_of(spec, member) is not None for member in group.members)
    if not group.trainable and only_write and len(pools) == 1:
        return next(iter(pools))
    return pool_of(spec, group.name)


def rollout_of(spec: LoopSpec, node: str) -> Rollout | None:
    """How a node writes; nothing of one that does not."""
    rollout: Rollout | None = getattr(spec.nodes[node], "rollout", None)
    return rollout


def turns_of(spec: LoopSpec, node: str) -> Turns | None:
    """How a writer takes turns with tools; nothing of one to which nobody speaks."""
    rollout = rollout_of(spec, node)
    if rollout is None:
        return None
    has_tools = bool(spec.graph.edges_into(node, "tools"))
    return rollout.turns or (Turns() if has_tools else None)
