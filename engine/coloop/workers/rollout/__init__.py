"""Rollout engines: what writes completions and scores sequences, behind one seam.

`build_engine(name, model, tokenizer, version=..., max_num_seqs=..., device=...)` builds one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coloop.errors import BackendMissing
from coloop.spec.rollout import Engine
from coloop.workers.rollout.engine import RolloutEngine
from coloop.workers.rollout.protocol import Generation
from coloop.workers.rollout.remote_engine import RemoteEngine
from coloop.workers.rollout.torch_engine import TorchEngine
from coloop.workers.rollout.vllm_engine import VllmEngine, check_installed

ENGINES: dict[str, Callable[..., RolloutEngine]] = {
    "torch": TorchEngine,
    "vllm": VllmEngine,
    "remote": RemoteEngine,
}


def build_engine(name: Engine, *arguments: Any, **options: Any) -> RolloutEngine:
    """The engine of this name; one that cannot run yet is refused by it."""
    if name not in ENGINES:
        runnable = ", ".join(sorted(ENGINES))
        raise BackendMissing(f"not yet runnable: rollout.engine {name}; runnable: {runnable}")
    return ENGINES[name](*arguments, **options)


def check_engine(name: Engine) -> None:
    """Raises `BackendMissing` where an engine's library is missing; loads nothing."""
    if name == "vllm":
        check_installed()


__all__ = [
    "ENGINES",
    "Generation",
    "RolloutEngine",
    "TorchEngine",
    "build_engine",
    "check_engine",
]
