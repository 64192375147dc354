"""Adapters by their weights' names: what belongs to one, and what a model becomes by it.

    y = W x + (alpha / rank) B A x        merged: W + (alpha / rank) B A, under W's own name

Names inside a model are peft's: a layer `q_proj` with an adapter has `q_proj.base_layer.weight`,
`q_proj.lora_A.default.weight` (rank, in) and `q_proj.lora_B.default.weight` (out, rank). A score
head learns whole and counts as part of the adapter. Needs no peft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch import Tensor

from coloop.models.heads import SCORE

BASE, FIRST, SECOND = ".base_layer.", ".lora_A.", ".lora_B."
ADAPTER = "default"
"""Name of the one adapter of a model, as peft calls it."""


def is_own(name: str) -> bool:
    """Whether a weight is the adapter's: its matrices, and those of a score head."""
    return FIRST in name or SECOND in name or name.startswith(f"{SCORE}.")


def is_moved(name: str) -> bool:
    """Whether a weight is needed for what an adapter changes: its own, and those that it stands
    beside."""
    return is_own(name) or (BASE in name and name.endswith(".weight"))


def plain_name(name: str) -> str:
    """What a weight was called before an adapter stood beside it."""
    return name.replace(BASE, ".")


def merged(weights: Iterable[tuple[str, Tensor]], scale: float) -> Iterator[tuple[str, Tensor]]:
    """Weights of a model with an adapter as those of one without, a layer at a time. Products are
    taken in float32; what comes has the type that the layer had.

    Args:
        weights: in the order of the model: a layer's own, then A, then B.
        scale: alpha / rank.
    """
    waiting: tuple[str, Tensor] | None = None
    first: Tensor | None = None
    for name, weight in weights:
        if BASE in name and name.endswith(".weight"):
            waiting = plain_name(name), weight
        elif FIRST in name:
            first = weight
        elif SECOND in name:
            assert waiting is not None
            assert first is not None
            change = (weight.float() @ first.float()) * scale
            yield waiting[0], (waiting[1].float() + change).to(waiting[1].dtype)
        else:
            yield plain_name(name), weight
