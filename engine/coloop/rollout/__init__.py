"""Rollout engines: what writes completions and scores sequences, behind one seam.

`ENGINES[name](model, tokenizer=..., version=..., max_num_seqs=..., device=...)` builds one.
"""

from __future__ import annotations

from collections.abc import Callable

from coloop.rollout.protocol import (
    Generation,
    GenerationRequest,
    Progress,
    Reason,
    RolloutEngine,
    ShouldStop,
)
from coloop.rollout.torch_engine import TorchEngine

ENGINES: dict[str, Callable[..., RolloutEngine]] = {"torch": TorchEngine}

__all__ = [
    "ENGINES",
    "Generation",
    "GenerationRequest",
    "Progress",
    "Reason",
    "RolloutEngine",
    "ShouldStop",
    "TorchEngine",
]
