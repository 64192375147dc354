"""One text between a policy and its tools: turn by turn, what is said to it.

    a turn ends ── with a call ──► tool ──► its answer, worded ──► the next turn
                ── with nothing called, and no end ──► `invalid_action`, or the end
                ── with the end

After the last turn the policy writes once more without tools, or is cut. Each text has its own
conversation, which follows from the text, the row and seeds alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from coloop.data.tools.calls import ToolCall, call_in, worded
from coloop.data.tools.environment import SUMS
from coloop.data.tools.protocol import Answered, Session, Tick, ToolFailure
from coloop.runtime.roles.generation.policy_tool import Asked, PolicySession
from coloop.spec.nodes import ToolNode
from coloop.spec.rollout import Rollout, Turns
from coloop.workers.messages import Pause, Silence, Word


@dataclass(slots=True)
class Work:
    """What a tool did in a text."""

    calls: int = 0
    errors: int = 0
    """Calls that it gave no answer to."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationResult:
    turns: int = 1
    calls: tuple[str, ...] = ()
    """As the policy wrote them."""
    outputs: tuple[str, ...] = ()
    """What the policy read, one a call."""
    earned: Mapping[str, float] = field(default_factory=dict)
    """Columns of environments, by their exact names."""
    work: Mapping[str, Work] = field(default_factory=dict)
    """By tool."""
    asked: tuple[Asked, ...] = ()
    """What other policies were asked in it."""
    invalid: int = 0
    """Turns in which nothing was called."""
    was_cut: bool = False
    """The turns were over before the text was."""

    @property
    def columns(self) -> dict[str, Any]:
        return {
            "turns": self.turns,
            "tool_calls": list(self.calls),
            "tool_outputs": list(self.outputs),
        }


SILENT: Final = ConversationResult()
"""Of a text to which nobody speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """What a text may call."""

    name: str
    """The tool by whose pattern it is called."""
    section: ToolNode
    answers: str
    """The tool that answers: the same, or the one that wraps it."""
    words: ToolNode
    """Of the tool that answers: words the answer."""
    open: Callable[[], Session]

    @property
    def nothing_earned(self) -> Mapping[str, float]:
        """Columns of a text that never called it: an environment's sums of no steps."""
        return nothing_earned(self.answers, self.words)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.name, self.answers)))


class Conversation:
    """One text that alternates between a policy and its tools. Asked by one thread at a time."""

    def __init__(
        self, callees: Sequence[Callee], turns: Turns, rollout: Rollout, tick: Tick
    ) -> None:
        self._callees = callees
        self._turns = turns
        self._has_stops = bool(rollout.stop)
        self._tick = tick
        self._sessions: dict[int, Session] = {}
        """By the place of the callee."""
        self._calls: list[str] = []
        self._outputs: list[str] = []
        self._work = {name: Work() for callee in callees for name in callee.nodes}
        self._taken = 0
        self._invalid = 0
        self._is_over = False
        """The text ended with the last turn."""
        self._was_cut = False

    def answer(self, pause: Pause) -> Word:
        """What is said where the text pauses."""
        if self._taken >= self._turns.max:
            return Silence.GO_ON if pause.end == "call" else None
        call, failure = self._find(pause.text)
        if call is not None:
            return self._answered(*call)
        if failure is not None:
            return self._next(failure)
        return self._uncalled(pause)

    @property
    def is_under_way(self) -> bool:
        """Whether a turn of the text is over."""
        return self._taken > 0

    def told(self) -> ConversationResult:
        """What came of it; the text is finished."""
        earned = {
            name: value for callee in self._callees for name, value in callee.nothing_earned.items()
        }
        earned |= {
            f"{self._callees[place].answers}.{name}": value
            for place, session in self._sessions.items()
            for name, value in session.earned().items()
        }
        asked = [
            one
            for _, session in sorted(self._sessions.items())
            if isinstance(session, PolicySession)
            for one in session.asked
        ]
        return ConversationResult(
            turns=self._taken + (not self._is_over),
            calls=tuple(self._calls),
            outputs=tuple(self._outputs),
            earned=earned,
            work=self._work,
            asked=tuple(asked),
            invalid=self._invalid,
            was_cut=self._was_cut,
        )

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    def _find(self, text: str) -> tuple[tuple[int, ToolCall] | None, str | None]:
        """The call with which a turn ends, with the place of its callee: the one that ends last.
        Else what the policy is told of a turn in which none can be looked for."""
        found: list[tuple[int, ToolCall]] = []
        for place, callee in enumerate(self._callees):
            try:
                call = call_in(text, callee.name, callee.section)
            except ToolFailure as failure:
                self._work[callee.name].errors += 1
                return None, f"error: {failure}"
            if call is not None:
                found.append((place, call))
        return max(found, key=lambda one: one[1].end, default=None), None

    def _answered(self, place: int, call: ToolCall) -> Word:
        callee = self._callees[place]
        began, has_failed = time.monotonic(), False
        try:
            answered = self._session(place).answer(call.arguments, self._tick)
            output = worded(answered.value, call.arguments, callee.words)
        except ToolFailure as failure:
            has_failed, answered = True, Answered(value=None)
            output = _failed(failure, call, callee)
        for name in callee.nodes:
            work = self._work[name]
            work.calls += 1
            work.errors += has_failed
            work.seconds += time.monotonic() - began
        self._calls.append(call.text)
        self._outputs.append(output)
        if answered.is_last:
            self._taken += 1
            self._is_over = True
            return None
        return self._next(output, is_world=callee.section.type == "environment")

    def _uncalled(self, pause: Pause) -> Word:
        if pause.end == "call":
            return Silence.GO_ON
        has_ended = pause.end == "stop" or (pause.end == "end" and not self._has_stops)
        if has_ended or self._turns.invalid_action is None:
            return None
        self._invalid += 1
        return self._next(self._turns.invalid_action)

    def _next(self, text: str, *, is_world: bool = False) -> Word:
        """A turn is over; what is said before the next, or that there is none."""
        self._taken += 1
        is_cut = is_world or self._turns.last == "cut"
        if self._taken >= self._turns.max and is_cut:
            self._is_over = self._was_cut = True
            return Silence.CUT
        return text

    def _session(self, place: int) -> Session:
        if place not in self._sessions:
            self._sessions[place] = self._callees[place].open()
        return self._sessions[place]


def nothing_earned(name: str, section: ToolNode) -> Mapping[str, float]:
    """Columns that a tool adds to a text in which it is not called."""
    if section.type != "environment":
        return {}
    return {f"{name}.{one}": 0.0 for one in SUMS}


def _failed(failure: ToolFailure, call: ToolCall, callee: Callee) -> str:
    """What the policy reads of a call without an answer."""
    reason = f"error: {failure}"
    try:
        return worded(reason, call.arguments, callee.words)
    except ToolFailure:
        return reason


def turn_measures(told: Sequence[ConversationResult]) -> dict[str, float]:
    count = len(told)
    return {
        "turns/mean": sum(one.turns for one in told) / count,
        "turns/invalid": sum(one.invalid for one in told) / count,
        "turns/cut": sum(one.was_cut for one in told) / count,
    }


def tool_measures(told: Sequence[ConversationResult]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for tool in dict.fromkeys(name for one in told for name in one.work):
        work = [one.work[tool] for one in told if tool in one.work]
        calls = sum(one.calls for one in work)
        found[tool] = {
            "tool/calls": calls / len(told),
            "tool/seconds": sum(one.seconds for one in work),
        }
        if calls:
            found[tool]["tool/errors"] = sum(one.errors for one in work) / calls
    return found
