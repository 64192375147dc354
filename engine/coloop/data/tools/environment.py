"""Environments: classes with `reset(row)` and `step(text)`, with which a policy interacts in turns.

    reset(row) ──► prompt ──► policy writes ──► step(text) ──► observation, reward, score, done
                                  ▲                                │
                                  └────────────────────────────────┘ until done

Each text has its own instance. Instances live in a few sandboxes; if one of these ends, because a
step was too slow or needed too much memory, its other instances are rebuilt by repeating their
steps with the same seeds. `reset` must return the same prompt for all texts of a row.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from coloop.data.tools.protocol import Answered, Caller, Tick, ToolFailure
from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox
from coloop.spec.reward import CODE_MEMORY_MIB

SOURCE: Final = (Path(__file__).parent / "inside" / "instances.py").read_text(encoding="utf-8")
PROCESSES: Final = 4
"""Processes per environment."""
SUMS: Final = ("reward", "score")


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
        """The result of `reset` for a row, from a temporary instance; may raise ToolFailure."""
        name = f"{next(self._numbers)}"
        try:
            return self._environment.reset(name, caller.columns, caller.shared_seed, tick)
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
        self._sums = dict.fromkeys(SUMS, 0.0)

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        if not self._has_begun:
            caller = self._caller
            self._environment.reset(self._name, caller.columns, caller.shared_seed, tick)
            self._has_begun = True
        self._steps += 1
        seed = self._caller.seed + self._steps
        result = _checked(self._environment.step(self._name, arguments["text"], seed, tick))
        for name in SUMS:
            self._sums[name] += result[name]
        return Answered(value=result["observation"], is_last=result["done"])

    def earned(self) -> Mapping[str, float]:
        return self._sums

    def close(self) -> None:
        if self._has_begun:
            self._environment.forget(self._name)


def _checked(result: Any) -> dict[str, Any]:
    """The validated result of `step`, with defaults; raises ToolFailure."""
    if not isinstance(result, dict):
        raise ToolFailure(f"`step` returned {type(result).__name__}, expected a dict")
    step = {"observation": "", "done": False, **dict.fromkeys(SUMS, 0.0), **result}
    if not isinstance(step["observation"], str):
        raise ToolFailure("`step` returned an `observation` that is not a text")
    if not isinstance(step["done"], bool):
        raise ToolFailure("`step` returned `done` that is neither true nor false")
    for name in SUMS:
        number = step[name]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ToolFailure(f"`step` returned a `{name}` that is not a number")
        if not math.isfinite(number):
            raise ToolFailure(f"`step` returned the `{name}` {number}")
        step[name] = float(number)
    return step


@dataclass(slots=True)
class _Told:
    """The inputs of an instance, from which it can be rebuilt."""

    row: Mapping[str, Any]
    seed: int
    texts: list[tuple[str, int]] = field(default_factory=list)
    life: int = -1
    """The `_Box.life` in which it exists."""


class UserEnvironment:
    def __init__(
        self,
        node: str,
        code: str,
        timeout_seconds: float,
        *,
        modules: Mapping[str, str] | None = None,
    ) -> None:
        """`modules`: by dotted name, sources of modules in the folder of the code."""
        self._boxes = [_Box(node, code, timeout_seconds, modules) for _ in range(PROCESSES)]
        self._told: dict[str, _Told] = {}

    def reset(self, name: str, row: Mapping[str, Any], seed: int, tick: Tick) -> Any:
        box = self._box(name)
        with box.sandbox.held(tick):
            observation = box.act(name, "reset", row, seed)
            self._told[name] = _Told(row, seed, life=box.life)
            return observation

    def step(self, name: str, text: str, seed: int, tick: Tick) -> Any:
        told, box = self._told[name], self._box(name)
        with box.sandbox.held(tick):
            if told.life != box.life:
                box.act(name, "reset", told.row, told.seed)
                for earlier, its_seed in told.texts:
                    box.act(name, "step", earlier, its_seed)
                told.life = box.life
            result = box.act(name, "step", text, seed)
            told.texts.append((text, seed))
            return result

    def move(self, state: str, action: str, seed: int, tick: Tick) -> Any:
        box = self._box(str(seed))
        with box.sandbox.held(tick):
            return box.act("", "move", {"state": state, "action": action}, seed)

    def forget(self, name: str) -> None:
        told = self._told.pop(name, None)
        box = self._box(name)
        if told is not None:
            with box.sandbox.held(lambda: None):
                if told.life == box.life:
                    box.act(name, "forget", None, 0)

    def check(self) -> None:
        """Raise `UserCodeError` if the code cannot be loaded."""
        self._boxes[0].sandbox.load()

    def take_printed(self) -> str:
        return "".join(box.sandbox.take_printed() for box in self._boxes)

    def close(self) -> None:
        for box in self._boxes:
            box.sandbox.close()

    def _box(self, name: str) -> "_Box":
        return self._boxes[int(name or 0) % PROCESSES]


class _Box:
    """A sandbox with instances, used by one thread at a time."""

    def __init__(
        self, node: str, code: str, timeout_seconds: float, modules: Mapping[str, str] | None
    ) -> None:
        self.sandbox = Sandbox(
            f"{code}\n\n{SOURCE}",
            function="coloop_act",
            node=node,
            timeout_seconds=timeout_seconds,
            memory_mib=CODE_MEMORY_MIB,
            modules=modules,
        )
        self._process: int | None = None
        self._life = 0

    @property
    def life(self) -> int:
        """Number of starts of the process so far; starts it if it is not running."""
        with self._failures():
            self.sandbox.load()
        if self.sandbox.process_id != self._process:
            self._life += 1
            self._process = self.sandbox.process_id
        return self._life

    def act(self, name: str, act: str, given: Any, seed: int) -> Any:
        request = {"name": name, "act": act, "given": given, "seed": seed % 2**31}
        with self._failures():
            [result] = self.sandbox.write([request])
        return result.get("said") if result is not None else None

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise errors of user code as `ToolFailure`."""
        try:
            yield
        except UserCodeError as error:
            raise ToolFailure(self.sandbox.bare(error)) from None
