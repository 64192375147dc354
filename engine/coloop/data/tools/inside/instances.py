"""Instances of the class `Environment`, many in one process.

Appended to the code that defines the class, in the same module. Each call sets the seed that comes
with it.
"""

import random
from typing import Any

_coloop_instances: dict[str, Any] = {}


def coloop_act(
    name: str, act: str, given: Any, seed: int, is_caught: bool = False
) -> dict[str, Any]:
    """Call an instance: `reset` with a row, `step` with a text, `forget`; or `move` with state and
    action, on a new one. `is_caught`: an error is returned as `failed`."""
    random.seed(seed)
    if not is_caught:
        return {"said": _coloop_call(name, act, given)}
    try:
        return {"said": _coloop_call(name, act, given)}
    except Exception as error:
        return {"failed": _coloop_words(error)}


def _coloop_call(name: str, act: str, given: Any) -> Any:
    if act == "forget":
        return _coloop_instances.pop(name, None) and None
    if act == "move":
        return globals()["Environment"]().step(given["state"], given["action"])
    if act == "reset":
        _coloop_instances[name] = globals()["Environment"]()
        return _coloop_instances[name].reset(given)
    result = _coloop_instances[name].step(given)
    rewards = result.get("rewards") if isinstance(result, dict) else None
    if isinstance(rewards, dict):  # JSON has no numbers as keys
        result = {**result, "rewards": {str(seat): own for seat, own in rewards.items()}}
    return result


def _coloop_words(error: Exception) -> str:
    """The error and the line of the user's code that raised it."""
    line, here = None, error.__traceback__
    own = _coloop_call.__code__.co_filename
    while here is not None:
        code = here.tb_frame.f_code
        if code.co_filename == own and not code.co_name.startswith(("_coloop", "coloop")):
            line = here.tb_lineno
        here = here.tb_next
    where = "" if line is None else f" (line {line})"
    return f"{type(error).__name__}: {str(error)[:500]}{where}"
