"""How new weights reach a rollout engine, with proof that they did.

Knows models and what an engine takes; nothing of optimizers, rows or phases.
"""

from __future__ import annotations

from collections.abc import Callable

from coloop.sync.files import FilesChannel
from coloop.sync.local import LocalChannel
from coloop.sync.protocol import Proof, WeightChannel, WeightReceiver

CHANNELS: dict[str, Callable[..., WeightChannel]] = {"local": LocalChannel, "files": FilesChannel}

__all__ = [
    "CHANNELS",
    "FilesChannel",
    "LocalChannel",
    "Proof",
    "WeightChannel",
    "WeightReceiver",
]
