"""Matrices in the order in which the processor's products read them.

A product with few rows spends much of its time on that order; where a matrix serves many of them it
is brought into it once. In bfloat16 the numbers stay the same, in float32 they are rounded
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from coloop.workers.cpu.lean_weights import Layer, LeanWeights

WORTH_TOKENS = 32
"""Texts of so many new tokens are worth it: it takes as long as what ten of them gain."""
MOST_BYTES = 2**28
"""Of weights whose matrices are held twice for it."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """What the products of a decoder read."""

    layers: list[Layer]
    head: Tensor
    """(V, W)"""


def plain(weights: LeanWeights) -> Matrices:
    """The matrices as they are held."""
    return Matrices(weights.layers, weights.head)


def can_pack(weights: LeanWeights) -> bool:
    """Whether this processor has such an order for them, and there is room for it."""
    head = weights.head
    if head.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    has_order = head.dtype == torch.float32 or (
        head.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
    return has_order and sum(one.nbytes for one in weights.held()) <= MOST_BYTES


def packed(weights: LeanWeights) -> Matrices:
    """Copies of the matrices in that order; all else is shared."""
    return Matrices(
        [
            replace(
                layer,
                qkv=_packed(layer.qkv),
                output=_packed(layer.output),
                gate_up=_packed(layer.gate_up),
                down=_packed(layer.down),
            )
            for layer in weights.layers
        ],
        _packed(weights.head),
    )


def product(x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (M, in), matrix (out, in), packed or not -> (M, out)"""
    if matrix.is_mkldnn:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, matrix, bias, "none", [], "")
        return found
    return F.linear(x, matrix, bias)


def added(y: Tensor, x: Tensor, matrix: Tensor) -> Tensor:
    """y (M, out) and the product of x (M, in) with a matrix (out, in), packed or not."""
    if matrix.is_mkldnn:
        found: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, y, matrix, None, "add")
        return found
    return torch.addmm(y, x, matrix.t())


def _packed(matrix: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix, None)
    return found
