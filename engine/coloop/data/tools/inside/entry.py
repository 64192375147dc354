"""A class by its module as an `Environment`: Gymnasium's interface, or that of coloop.

Appended to an import of the class as `coloop_entry`, and its arguments as `COLOOP_SETTINGS` and
`COLOOP_ROW_SETTINGS`.
"""

import inspect
import random
import re
from typing import Any

STEP = 5
"""Values of Gymnasium's `step`."""


class Environment:
    def __init__(self) -> None:
        self._made: Any = None

    def reset(self, row: dict[str, Any]) -> Any:
        space = globals()
        given = {name: row[name] for name in space["COLOOP_ROW_SETTINGS"] if name in row}
        self._made = space["coloop_entry"](**{**space["COLOOP_SETTINGS"], **given})
        if not _takes_seed(self._made.reset):
            return self._made.reset(row)
        opening = self._made.reset(seed=random.randrange(2**31), options={"row": row})
        observation, info = opening if isinstance(opening, tuple) else (opening, {})
        return {"observation": _words(observation), "shown": _texts(info)}

    def step(self, text: str) -> Any:
        space: Any = getattr(self._made, "action_space", None)
        action: Any = text
        if hasattr(space, "n") and hasattr(space, "start"):
            first, last = int(space.start), int(space.start + space.n) - 1
            found = re.search(r"-?\d+", text)
            if found is None or not first <= int(found[0]) <= last:
                words = f"`{text[:80]}` is no action: write a number from {first} to {last}"
                return {"observation": words, "invalid": True}
            action = int(found[0])
        result = self._made.step(action)
        if not isinstance(result, tuple):
            return result
        if len(result) != STEP:
            raise ValueError(f"`step` returned {len(result)} values, Gymnasium's returns {STEP}")
        observation, reward, terminated, truncated, info = result
        return {
            "observation": _words(observation),
            "reward": float(reward),
            "score": float(info.get("score", info.get("is_success", 0.0))),
            "parts": {name: float(number) for name, number in info.get("parts", {}).items()},
            "done": bool(terminated) or bool(truncated),
            "shown": _texts(info),
        }


def _takes_seed(reset: Any) -> bool:
    names = inspect.signature(reset).parameters
    return "seed" in names or "options" in names


def _words(observation: Any) -> Any:
    return observation if isinstance(observation, str | list) else str(observation)


def _texts(info: Any) -> dict[str, Any]:
    """What a template can show of `info`."""
    plain = (str, int, float, bool)
    return {name: value for name, value in dict(info).items() if isinstance(value, plain)}
