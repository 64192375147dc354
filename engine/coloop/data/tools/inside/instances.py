"""Instances of the user's `Environment`, one a text, many in one process.

Stands behind the user's code, in the same module. Every act draws by the seed that comes with it.
"""

import random
from typing import Any

_coloop_instances: dict[str, Any] = {}


def coloop_act(name: str, act: str, given: Any, seed: int) -> dict[str, Any]:
    """Call an instance: `reset` with a row, `step` with a text or state and action, `forget`."""
    random.seed(seed)
    if act == "forget":
        _coloop_instances.pop(name, None)
        return {}
    if act == "reset":
        _coloop_instances[name] = globals()["Environment"]()
        return {"said": _coloop_instances[name].reset(given)}
    if act == "move":
        return {"said": globals()["Environment"]().step(given["state"], given["action"])}
    return {"said": _coloop_instances[name].step(given)}
