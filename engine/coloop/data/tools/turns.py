"""The contract of environments: what `reset` and `step` return, checked.

reset(row)    an observation (a text or a chat), or a mapping with the fields of `step`
step(text)    observation   what the next player reads
              seat          who is next, from 0; without it the same player
              reward, score, parts        of the player that acted: numbers
              rewards       {seat: number or {name: number}}: of several players
              done          whether the episode is over
              reason        why it is over, for people
              invalid       whether the action was invalid
              shown         further values for the template
              tools         function schemas for the chat template
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coloop.data.tools.protocol import ToolFailure

SUMS: Final = ("reward", "score")
"""Numbers that every step has; 0 by default."""
MOST_SEATS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The state of an episode after `reset` or `step`."""

    observation: str | list[Any]
    seat: int = 0
    is_done: bool = False
    is_invalid: bool = False
    rewards: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """By seat and name, what the step earned."""
    reason: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)
    tools: Any = None


def opening_of(result: Any) -> Turn:
    """The first state, from the result of `reset`; raises ToolFailure."""
    if not isinstance(result, Mapping):
        result = {"observation": result}
    if result.get("done"):
        raise ToolFailure("`reset` returned an episode that is over")
    return _turn_of("reset", result, acted=0)


def turn_of(result: Any, acted: int) -> Turn:
    """The next state, from the result of `step` by the player at seat `acted`; raises
    ToolFailure."""
    if not isinstance(result, Mapping):
        raise ToolFailure(f"`step` returned {type(result).__name__}, expected a dict")
    return _turn_of("step", result, acted=acted)


def _turn_of(act: str, result: Mapping[str, Any], acted: int) -> Turn:
    observation = result.get("observation", "")
    if not isinstance(observation, str | list):
        raise ToolFailure(f"`{act}` returned an `observation` that is not a text")
    for name in ("done", "invalid"):
        if not isinstance(result.get(name, False), bool):
            raise ToolFailure(f"`{act}` returned `{name}` that is neither true nor false")
    seat = result.get("seat", acted)
    if isinstance(seat, bool) or not isinstance(seat, int) or not 0 <= seat < MOST_SEATS:
        raise ToolFailure(f"`{act}` returned the `seat` {seat!r:.40}, expected 0, 1, ...")
    rewards = {place: _numbers(act, own) for place, own in _by_seat(act, result).items()}
    own = {name: result[name] for name in SUMS if name in result}
    own |= _mapping(act, result, "parts")
    if own:
        rewards[acted] = {**rewards.get(acted, {}), **_numbers(act, own)}
    return Turn(
        observation=observation,
        seat=seat,
        is_done=result.get("done", False),
        is_invalid=result.get("invalid", False),
        rewards=rewards,
        reason=str(result.get("reason") or ""),
        shown=_mapping(act, result, "shown"),
        tools=result.get("tools"),
    )


def _mapping(act: str, result: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = result.get(name) or {}
    if not isinstance(value, Mapping):
        raise ToolFailure(f"`{act}` returned `{name}` that is not a dict")
    return value


def _by_seat(act: str, result: Mapping[str, Any]) -> dict[int, Any]:
    try:
        return {int(seat): own for seat, own in _mapping(act, result, "rewards").items()}
    except ValueError:
        raise ToolFailure(f"`{act}` returned `rewards` whose keys are no seats") from None


def _numbers(act: str, own: Any) -> dict[str, float]:
    parts = own if isinstance(own, Mapping) else {"reward": own}
    for name, number in parts.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ToolFailure(f"`{act}` returned a `{name}` that is not a number")
        if not math.isfinite(number):
            raise ToolFailure(f"`{act}` returned the `{name}` {number}")
    return {str(name): float(number) for name, number in parts.items()}
