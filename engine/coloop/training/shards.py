"""Weights spread over ranks by torch's `fully_shard`: each holds a part of every weight, and they
are gathered around each use."""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

from coloop.training.forward import Heads, blocks_of
from coloop.training.ranks import DATA


def spread(
    net: Heads,
    mesh: DeviceMesh,
    *,
    compute: torch.dtype | None,
    is_freed: bool | None,
    is_root_freed: bool | None = None,
) -> list[FSDPModule]:
    """One group for each block and one for embedding, last norm and head, which is the last of
    them; changed in place.

    Args:
        compute: type that weights are gathered in; None: as they are held.
        is_freed: gathered weights of a block are let go after its forward pass; None: they are.
        is_root_freed: the same of the last group; None: they stay for the backward pass.
    """
    policy = MixedPrecisionPolicy(
        param_dtype=compute,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,  # temperatures stay as they are
    )
    options: dict[str, Any] = {"mesh": mesh[DATA], "mp_policy": policy}
    groups = [
        fully_shard(block, reshard_after_forward=is_freed, **options)
        for block in blocks_of(net.model)
    ]
    return [*groups, fully_shard(net, reshard_after_forward=is_root_freed, **options)]


def let_go(groups: list[FSDPModule]) -> None:
    """Drop what the last pass gathered: else the model has that in place of the parts."""
    for group in groups:
        group.reshard()


def whole(value: Any) -> Any:
    """Every rank's part of a tensor put together; anything else as it is."""
    if not isinstance(value, DTensor):
        return value
    for dimension in range(value.device_mesh.ndim):  # rows' ranks first: they cut what was cut
        lies = (*[Replicate()] * (dimension + 1), *value.placements[dimension + 1 :])
        value = value.redistribute(placements=lies)
    return value.to_local()


def part_of(value: Any, held: Tensor) -> Any:
    """This rank's part of a whole tensor, spread as `held` is; numbers stay."""
    if not isinstance(held, DTensor) or not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if value.shape != held.shape:
        raise ValueError(f"a weight has shape {tuple(value.shape)}, not {tuple(held.shape)}")
    there = value.to(held.device)
    return distribute_tensor(there, held.device_mesh, held.placements, src_data_rank=None)
