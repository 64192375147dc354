"""Sums over the ranks of a group, in a graph whose other numbers are alike on all of them.

summed         forward: the sum of what the ranks have; backward: nothing, all have it
summed_behind  forward: nothing, all have it; backward: the sum of what the ranks learn from it
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh


def summed(part: Tensor, mesh: DeviceMesh) -> Tensor:
    """The sum of the ranks' parts, on each of them."""
    found: Tensor = _Summed.apply(part, mesh)  # type: ignore[no-untyped-call]
    return found


def summed_behind(whole: Tensor, mesh: DeviceMesh) -> Tensor:
    """What all ranks have alike, where each goes on with a part of the work."""
    found: Tensor = _SummedBehind.apply(whole, mesh)  # type: ignore[no-untyped-call]
    return found


def _sum(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    found = tensor.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(found, group=mesh.get_group())
    return found


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, mesh: DeviceMesh) -> Tensor:
        del ctx
        return _sum(part, mesh)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        del ctx
        return gradient, None


class _SummedBehind(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole: Tensor, mesh: DeviceMesh) -> Tensor:
        ctx.mesh = mesh
        return whole.view_as(whole)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _sum(gradient, ctx.mesh), None
