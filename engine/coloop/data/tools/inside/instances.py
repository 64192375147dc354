"""Instances of the user's class `Environment`, many in one process.

Appended to the user's code, in the same module. Each call sets the seed that comes with it.
"""

import random
from typing import Any

_coloop_instances: dict[str, Any] = {}


def coloop_act(name: str, act: str, given: Any, seed: int) -> dict[str, Any]:
    """Call an instance: `reset` with a row, `step` with a text, `forget`; or `move` with state and
    action, on a new one."""
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
