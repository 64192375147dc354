"""Instances of an environment, in a few sandboxes.

If a sandbox ends, because a step was too slow or needed too much memory, its other instances are
rebuilt by repeating their steps with the same seeds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from coloop.data.tools.protocol import Tick, ToolFailure
from coloop.errors import UserCodeError
from coloop.sandbox.code_files import CodeFile
from coloop.sandbox.process import Sandbox
from coloop.spec.environment import PROCESSES
from coloop.spec.reward import CODE_MEMORY_MIB

MOST_AT_ONCE: Final = 64
"""Requests that a process gets at a time; the time limit is for all of them."""
SLOWER: Final = 8
"""By this factor a process gets fewer, if they take longer than the limit only together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """A new instance."""

    name: str
    """A number; it decides about the process."""
    row: Mapping[str, Any]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    text: str
    seed: int


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
        code: CodeFile,
        timeout_seconds: float,
        *,
        memory_mib: int = CODE_MEMORY_MIB,
        processes: int = PROCESSES,
    ) -> None:
        """`code`: with a class `Environment` and `inside/instances.py`."""
        self._boxes = [_Box(node, code, timeout_seconds, memory_mib) for _ in range(processes)]
        self._told: dict[str, _Told] = {}

    def reset(self, name: str, row: Mapping[str, Any], seed: int, tick: Tick) -> Any:
        box = self._box(name)
        with box.sandbox.held(tick):
            observation = box.act(name, "reset", row, seed)
            self._told[name] = _Told(row, seed, life=box.life)
            return observation

    def step(self, name: str, text: str, seed: int, tick: Tick) -> Any:
        box = self._box(name)
        with box.sandbox.held(tick):
            return self._step(box, name, text, seed)

    def _step(self, box: "_Box", name: str, text: str, seed: int) -> Any:
        self._rebuild(box, name)
        result = box.act(name, "step", text, seed)
        self._told[name].texts.append((text, seed))
        return result

    def _rebuild(self, box: "_Box", name: str) -> None:
        """Repeat the steps of an instance, if its process has ended."""
        told = self._told[name]
        if told.life != box.life:
            box.act(name, "reset", told.row, told.seed)
            for earlier, its_seed in told.texts:
                box.act(name, "step", earlier, its_seed)
            told.life = box.life

    def reset_many(self, asked: Sequence[Reset], tick: Tick) -> list[Any | ToolFailure]:
        """The results of `reset` for many new instances, or why there is none."""

        def note(box: _Box, one: Reset) -> None:
            self._told[one.name] = _Told(one.row, one.seed, life=box.life)

        return self._many(
            asked,
            tick,
            request=lambda one: (one.name, "reset", one.row, one.seed),
            ready=lambda box, one: None,
            done=note,
        )

    def step_many(self, asked: Sequence[Step], tick: Tick) -> list[Any | ToolFailure]:
        """The results of `step` for many instances, at most one step of each, or why there is
        none."""
        return self._many(
            asked,
            tick,
            request=lambda one: (one.name, "step", one.text, one.seed),
            ready=lambda box, one: self._rebuild(box, one.name),
            done=lambda box, one: self._told[one.name].texts.append((one.text, one.seed)),
        )

    def _many(
        self,
        asked: Sequence[Any],
        tick: Tick,
        *,
        request: Callable[[Any], tuple[str, str, Any, int]],
        ready: "Callable[[_Box, Any], None]",
        done: "Callable[[_Box, Any], None]",
    ) -> list[Any | ToolFailure]:
        """Results in the order of the requests. A process gets several at a time; if it then hangs
        or ends, they are sent again one by one, to find the one that is to blame."""
        results: list[Any | ToolFailure] = [None] * len(asked)
        for box in self._boxes:
            left = [place for place, one in enumerate(asked) if self._box(one.name) is box]
            while left:
                places, left = left[: box.at_once], left[box.at_once :]
                with box.sandbox.held(tick):
                    try:
                        for place in places:
                            ready(box, asked[place])
                        found = box.act_many([request(asked[place]) for place in places])
                    except ToolFailure:
                        box.sandbox.close()
                        for place in places:
                            results[place] = self._alone(box, asked[place], request, ready, done)
                        if not any(isinstance(results[place], ToolFailure) for place in places):
                            box.at_once = max(1, box.at_once // SLOWER)
                        continue
                    for place, result in zip(places, found, strict=True):
                        results[place] = result
                        if not isinstance(result, ToolFailure):
                            done(box, asked[place])
        return results

    def _alone(
        self,
        box: "_Box",
        one: Any,
        request: Callable[[Any], tuple[str, str, Any, int]],
        ready: "Callable[[_Box, Any], None]",
        done: "Callable[[_Box, Any], None]",
    ) -> Any | ToolFailure:
        try:
            ready(box, one)
            result = box.act(*request(one))
        except ToolFailure as failure:
            return failure
        done(box, one)
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
        return self._boxes[int(name or 0) % len(self._boxes)]


class _Box:
    """A sandbox with instances, used by one thread at a time."""

    def __init__(self, node: str, code: CodeFile, timeout_seconds: float, memory_mib: int) -> None:
        self.sandbox = Sandbox(
            code.source,
            function="coloop_act",
            node=node,
            timeout_seconds=timeout_seconds,
            memory_mib=memory_mib,
            modules=code.modules,
        )
        self.at_once = MOST_AT_ONCE
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

    def act_many(self, asked: Sequence[tuple[str, str, Any, int]]) -> list[Any | ToolFailure]:
        """Raises ToolFailure if the process does not answer all of it."""
        requests = [
            {"name": name, "act": act, "given": given, "seed": seed % 2**31, "is_caught": True}
            for name, act, given, seed in asked
        ]
        with self._failures():
            results = self.sandbox.write(requests)
        return [
            ToolFailure(str(result["failed"]))
            if result is not None and "failed" in result
            else (result or {}).get("said")
            for result in results
        ]

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise errors of user code as `ToolFailure`."""
        try:
            yield
        except UserCodeError as error:
            raise ToolFailure(self.sandbox.bare(error)) from None
