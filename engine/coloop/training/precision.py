"""Which type weights are held in and which type products are computed in.

float32 holds everything in float32. bfloat16 with master weights (the default) holds float32
weights and computes products in bfloat16; without them it holds bfloat16 weights. Losses are always
float32.
"""

import torch
from torch import nn

from coloop.errors import BackendMissing
from coloop.spec.training import Training


def computing_dtype(model: nn.Module, training: Training) -> torch.dtype | None:
    """Type of the matrix products where it is not that of the weights."""
    if _dtype_name(model, training) == "bfloat16" and training.master_weights is not False:
        return torch.bfloat16
    return None


def place_weights(model: nn.Module, training: Training) -> nn.Module:
    """The model with its weights in the type that the optimizer works on; changed in place."""
    name = _dtype_name(model, training)
    if name == "float16":
        raise BackendMissing(
            "training in float16 needs loss scaling, which `single` has not; use bfloat16"
        )
    keeps_half = name == "bfloat16" and training.master_weights is False
    return model.to(torch.bfloat16 if keeps_half else torch.float32)


def _dtype_name(model: nn.Module, training: Training) -> str:
    if training.dtype is not None:
        return training.dtype
    return "bfloat16" if next(model.parameters()).device.type == "cuda" else "float32"
