"""Environments: classes with `reset(row)` and `step(text)`, with which a policy interacts in turns.

    reset(row) ──► prompt ──► policy writes ──► step(text) ──► observation, reward, score, done
                                  ▲                                │
                                  └────────────────────────────────┘ until done

Each text has its own instance (`instances`). `reset` must return the same prompt for all texts of a
row.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Protocol

from coloop.data.tools.protocol import Answered, Caller, Tick, ToolFailure
from coloop.data.tools.turns import SUMS, opening_of, turn_of

ALONE = 0
"""The seat of the one player of a tool."""


class Environment(Protocol):
    """Calls to instances of an environment, by name; methods may raise `ToolFailure`."""

    def reset(self, name: str, row: Mapping[str, Any], seed: int, tick: Tick) -> Any:
        """Create an instance; returns its first observation."""
        ...

    def step(self, name: str, text: str, seed: int, tick: Tick) -> Any:
        """The result of an instance for a text: a dict, checked by the caller."""
        ...

    def move(self, state: str, action: str, seed: int, tick: Tick) -> Any: ...

    def forget(self, name: str) -> None: ...

    def take_printed(self) -> str:
        """What instances printed since this method was last called."""
        ...

    def close(self) -> None: ...


class EnvironmentTool:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._numbers = itertools.count()

    def open(self, caller: Caller) -> "EnvironmentSession":
        return EnvironmentSession(self._environment, f"{next(self._numbers)}", caller)

    def prompt(self, caller: Caller, tick: Tick) -> Any:
        """The first observation for a row, from a temporary instance; may raise ToolFailure."""
        name = f"{next(self._numbers)}"
        try:
            opening = self._environment.reset(name, caller.columns, caller.shared_seed, tick)
            return opening_of(opening).observation if isinstance(opening, Mapping) else opening
        finally:
            self._environment.forget(name)

    def moves(self, state: str, action: str, seed: int, tick: Tick) -> list[str]:
        """The states after an action: none if it is solved, several if all must be solved. Raises
        ToolFailure for an invalid action."""
        states = self._environment.move(state, action, seed, tick)
        if not isinstance(states, list) or not all(isinstance(each, str) for each in states):
            raise ToolFailure(f"`step` returned {type(states).__name__}, expected a list of texts")
        return states

    def take_printed(self) -> str:
        return self._environment.take_printed()

    def close(self) -> None:
        self._environment.close()


class EnvironmentSession:
    """The instance of a text, created at its first turn."""

    def __init__(self, environment: Environment, name: str, caller: Caller) -> None:
        self._environment = environment
        self._name = name
        self._caller = caller
        self._has_begun = False
        self._steps = 0
        self._sums = defaultdict(float, dict.fromkeys(SUMS, 0.0))

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        if not self._has_begun:
            caller = self._caller
            self._environment.reset(self._name, caller.columns, caller.shared_seed, tick)
            self._has_begun = True
        self._steps += 1
        seed = self._caller.seed + self._steps
        step = self._environment.step(self._name, arguments["text"], seed, tick)
        turn = turn_of(step, ALONE)
        if not isinstance(turn.observation, str):
            raise ToolFailure("`step` returned an `observation` that is not a text")
        if turn.seat != ALONE:
            raise ToolFailure(
                f"`step` gives the turn to the player at seat {turn.seat}, but a tool has one "
                "player: use a node of `kind: environment`"
            )
        for name, number in turn.rewards.get(ALONE, {}).items():
            self._sums[name] += number
        return Answered(value=turn.observation, is_last=turn.is_done)

    def earned(self) -> Mapping[str, float]:
        return self._sums

    def close(self) -> None:
        if self._has_begun:
            self._environment.forget(self._name)
