"""Checks that stand on the first lines of every public function of this package, and its precision.

Invariant: a wrong rank or shape raises ``ValueError`` with the shapes that were met, before any
arithmetic can broadcast it into a plausible number.
"""

import torch
from torch import Tensor


def check_rank(rank: int, **tensors: Tensor | None) -> None:
    """Raise unless every given tensor has `rank` dimensions."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dim() != rank:
            raise ValueError(f"{name} must have rank {rank}, got shape {tuple(tensor.shape)}")


def check_same_shape(**tensors: Tensor | None) -> None:
    """Raise unless all given tensors have one shape."""
    present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    first_name, first = next(iter(present.items()))
    for name, tensor in present.items():
        if tensor.shape != first.shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, "
                f"but {first_name} has shape {tuple(first.shape)}"
            )


def check_mask(mask: Tensor) -> None:
    """Raise unless `mask` is a bool tensor."""
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be bool, got {mask.dtype}")


def check_rows(like: Tensor, /, **tensors: Tensor | None) -> None:
    """Raise unless every given tensor has rank 1 and as many entries as `like` has rows."""
    check_rank(1, **tensors)
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape[0] != like.shape[0]:
            raise ValueError(f"{name} has {tensor.shape[0]} rows, expected {like.shape[0]}")


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32, or in float64 where it is that: no formula is computed in less."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
