"""What a model drops at random while it learns, and when.

Only what is taught by texts alone is learned with dropout. Of all else the log-probs are compared
with those of the engine, of a reference or of the policy before, which have none: with dropout the
first ratio would not be 1, nor the first loss of DPO log 2 (huggingface/trl #3500).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch import nn

from coloop.spec.training import Training
from coloop.workers.training.forward import set_training

Mode = Literal["reads", "learns", "drops"]
"""A model that only reads; that learns as it reads; that learns and drops at random."""
TEXTS = "demonstrations"
"""The teaching port of texts."""
_MARKS = ("drop", "jitter")
"""Parts of the names of shares that are dropped or disturbed at random."""


def drops(port: str, training: Training) -> bool:
    """Whether what a teaching port brings is learned with dropout."""
    return port == TEXTS if training.dropout is None else training.dropout


class Dropout:
    """The modes of one model."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._mode: Mode = "reads"
        self._kept: list[tuple[Any, str, float]] = []
        """Shares that are 0 in the meantime: of what, their names and values."""

    def set(self, mode: Mode) -> None:
        """Change the model to a mode."""
        if mode == self._mode:
            return
        for owner, name, value in self._kept:
            setattr(owner, name, value)
        self._kept = []
        set_training(self._model, mode == "drops")
        if mode == "learns":
            self._recompute()
        self._mode = mode

    def _recompute(self) -> None:
        """Blocks whose activations are computed again do so only in training mode, in which they
        would drop by themselves."""
        found = [one for one in self._model.modules() if getattr(one, "gradient_checkpointing", 0)]
        configs = {id(one.config): one.config for one in found if hasattr(one, "config")}
        for owner in (*found, *configs.values()):
            for name, value in _shares(owner):
                self._kept.append((owner, name, value))
                setattr(owner, name, 0.0)
        for module in found:
            object.__setattr__(module, "training", True)


def _shares(owner: object) -> Iterator[tuple[str, float]]:
    """Numbers above 0 by which it drops."""
    for name, value in list(vars(owner).items()):
        if isinstance(value, float) and value > 0 and any(mark in name for mark in _MARKS):
            yield name, value
