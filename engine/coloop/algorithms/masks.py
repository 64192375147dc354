"""Sums and means over masked tokens; the only place that divides by a count of tokens.

Legend: ``B`` sequences, ``T`` token positions.
Invariant: a mean over nothing is 0, never NaN, and what stands at masked positions (NaN and
infinity included) reaches neither the value nor the gradient.
"""

import torch
from torch import Tensor


def masked_sum(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Sum of `values` where `mask` is true, over `dim` or over everything."""
    check_same_shape(values=values, mask=mask)
    check_mask(mask)
    kept = torch.where(mask, values, torch.zeros((), dtype=values.dtype, device=values.device))
    return kept.sum() if dim is None else kept.sum(dim)


def masked_mean(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Mean of `values` over the true positions of `mask`; 0 where there are none."""
    total = masked_sum(values, mask, dim)
    count = mask.sum() if dim is None else mask.sum(dim)
    return total / count.clamp(min=1)


# Checks that stand on the first lines of every public function of this package, and its
# precision.
#
# Invariant: a wrong rank or shape raises ``ValueError`` with the shapes that were met, before any
# arithmetic can broadcast it into a plausible number.


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
