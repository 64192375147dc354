"""A model apart from its weights: kept while they lie elsewhere, made whole again from them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel


def outline_of(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its weights, which take no memory; what else it holds is copied."""
    empty: dict[int, Any] = {
        id(p): nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()
    }
    return copy.deepcopy(model, memo=empty)


def filled(outline: PreTrainedModel, weights: Iterable[tuple[str, Tensor]]) -> PreTrainedModel:
    """A model of the outline's shape with these weights, by name; ties hold."""
    named = dict(outline.named_parameters())
    given: dict[int, Any] = {
        id(named[name]): nn.Parameter(weight, named[name].requires_grad) for name, weight in weights
    }
    missing = [name for name, weight in named.items() if id(weight) not in given]
    if missing:
        raise ValueError(f"{len(missing)} weights are missing, such as {missing[0]}")
    return copy.deepcopy(outline, memo=given)
