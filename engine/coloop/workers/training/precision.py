"""Weights in the types that were decided for them, and the type that products are computed in.

Losses are always float32. What is decided stands in `coloop.spec.dtypes`; here it is done.
"""

from collections.abc import Callable

import torch
from torch import nn

from coloop.errors import BackendMissing
from coloop.models import DTYPES
from coloop.spec.dtypes import Dtypes


def autocast_of(dtypes: Dtypes) -> torch.dtype | None:
    """Type of the matrix products where it is not that of all weights."""
    return DTYPES[dtypes.compute] if dtypes.casts else None


def place_weights(
    model: nn.Module, dtypes: Dtypes, *, after_each: Callable[[], None] | None = None
) -> nn.Module:
    """The model with its weights in the decided types; changed in place.

    The weight of a linear layer that is the embedding's as well is held as the embedding is.

    Args:
        after_each: called after each cast, which rounds what comes after it.
    """
    after_each = after_each or _nothing
    model.to(DTYPES[dtypes.rest])
    after_each()
    if dtypes.matrices != dtypes.rest:
        tied = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
        for layer in model.modules():
            if isinstance(layer, nn.Linear) and id(layer.weight) not in tied:
                layer.to(DTYPES[dtypes.matrices])
        after_each()
    return model


def _nothing() -> None:
    return None


def check_trainable(dtypes: Dtypes, *, backend: str) -> None:
    """Raises `BackendMissing` where a backend cannot train in these types."""
    if dtypes.compute not in DTYPES:
        raise BackendMissing(f"`{backend}` cannot train in {dtypes.compute}; use bfloat16")
    if "float16" in (dtypes.matrices, dtypes.compute):
        raise BackendMissing(
            f"training in float16 needs loss scaling, which `{backend}` has not; use bfloat16"
        )
