"""Conversations of one sampling call: when texts pause, and which tool answers."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from coloop.data.chats import chat_problem, joined_parts
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.data.tools.calls import ToolCall, call_in, pauses_of, worded
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.protocol import Answered, Caller, Session, Tick, ToolFailure
from coloop.data.tools.turns import SUMS
from coloop.errors import UserCodeError
from coloop.runtime.roles.generation.policy_tool import Asked, PolicySession, PolicyTool
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.tool import ToolRole
from coloop.spec.base import as_tuple
from coloop.spec.groups import rollout_of, turns_of
from coloop.spec.nodes import ToolNode
from coloop.spec.rollout import Rollout, Turns
from coloop.workers.messages import Pause, Sampling, Silence, TurnEnd, Word

if TYPE_CHECKING:
    from coloop.runtime.roles.generation.writer import RowPrompt


# One text between a policy and its tools, turn by turn.
#
#     a turn ends ── with a call ──► tool ──► its formatted answer ──► the next turn
#                 ── without a call, and not at the end ──► `invalid_action`, or the end
#                 ── at the end
#
# After the last turn the policy generates once more without tools, or the text is cut. Each text
# has its own conversation, which depends only on the text, the row and seeds.


@dataclass(slots=True)
class Work:
    """The use of a tool in a text."""

    calls: int = 0
    errors: int = 0
    """Failed calls."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationResult:
    turns: int = 1
    calls: tuple[str, ...] = ()
    """Texts of the calls."""
    outputs: tuple[str, ...] = ()
    """The answers that the policy read, one per call."""
    earned: Mapping[str, float] = field(default_factory=dict)
    """Columns from environments, by full name."""
    work: Mapping[str, Work] = field(default_factory=dict)
    """By tool."""
    asked: tuple[Asked, ...] = ()
    """Calls of other policies in it."""
    invalid: int = 0
    """Turns without a call, which were answered with `invalid_action`."""
    was_cut: bool = False
    """Whether the turns ran out before the text ended."""

    @property
    def columns(self) -> dict[str, Any]:
        return {
            "turns": self.turns,
            "tool_calls": list(self.calls),
            "tool_outputs": list(self.outputs),
        }


PLAIN: Final = (str, int, float, bool, list, tuple, dict, type(None))
"""Types of columns that are passed to tools."""
SILENT: Final = ConversationResult()
"""The result of a text without tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A tool that a text may call."""

    name: str
    """The tool with the call pattern."""
    section: ToolNode
    answers: str
    """The tool that answers: the same, or a policy that wraps it."""
    words: ToolNode
    """Section of the tool that answers, which formats the answer."""
    open: Callable[[], Session]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.name, self.answers)))


class Conversation:
    """One text that alternates between a policy and its tools. Used by one thread at a time."""

    def __init__(
        self, callees: Sequence[Callee], turns: Turns, rollout: Rollout, tick: Tick
    ) -> None:
        self._callees = callees
        self._turns = turns
        self._has_stops = bool(rollout.stop)
        self._tick = tick
        self._sessions: dict[int, Session] = {}
        """By index of the callee."""
        self._calls: list[str] = []
        self._outputs: list[str] = []
        self._work = {name: Work() for callee in callees for name in callee.nodes}
        self._taken = 0
        self._invalid = 0
        self._is_over = False
        """Whether the text ended with the last turn."""
        self._was_cut = False

    def answer(self, pause: Pause) -> Word:
        """The answer to a text that pauses."""
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
        """Whether the first turn is over."""
        return self._taken > 0

    def told(self) -> ConversationResult:
        """The result, once the text is finished."""
        earned = {
            name: value
            for callee in self._callees
            for name, value in nothing_earned(callee.answers, callee.words).items()
        }
        earned |= {
            f"{self._callees[place].answers}.{name}": value
            for place, session in self._sessions.items()
            for name, value in session.earned().items()
        }
        asked = [
            question
            for _, session in sorted(self._sessions.items())
            if isinstance(session, PolicySession)
            for question in session.asked
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
        """The last call in a turn with the index of its callee, or the error for the policy if the
        calls cannot be parsed. Both are None if there is no call."""
        calls: list[tuple[int, ToolCall]] = []
        for index, callee in enumerate(self._callees):
            try:
                call = call_in(text, callee.name, callee.section)
            except ToolFailure as failure:
                self._work[callee.name].errors += 1
                return None, f"error: {failure}"
            if call is not None:
                calls.append((index, call))
        return max(calls, key=lambda one: one[1].end, default=None), None

    def _answered(self, index: int, call: ToolCall) -> Word:
        callee = self._callees[index]
        began, has_failed = time.monotonic(), False
        try:
            if index not in self._sessions:
                self._sessions[index] = callee.open()
            answered = self._sessions[index].answer(call.arguments, self._tick)
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
        """End a turn; returns the text before the next, or a cut if it was the last."""
        self._taken += 1
        is_cut = is_world or self._turns.last == "cut"
        if self._taken >= self._turns.max and is_cut:
            self._is_over = self._was_cut = True
            return Silence.CUT
        return text


def nothing_earned(name: str, section: ToolNode) -> Mapping[str, float]:
    """Columns that a tool adds to a text that does not call it."""
    if section.type != "environment":
        return {}
    return {f"{name}.{column}": 0.0 for column in SUMS}


def _failed(failure: ToolFailure, call: ToolCall, callee: Callee) -> str:
    """The answer to a failed call."""
    reason = f"error: {failure}"
    try:
        return worded(reason, call.arguments, callee.words)
    except ToolFailure:
        return reason


def turn_measures(told: Sequence[ConversationResult]) -> dict[str, float]:
    count = len(told)
    return {
        "turns/mean": sum(result.turns for result in told) / count,
        "turns/invalid": sum(result.invalid for result in told) / count,
        "turns/cut": sum(result.was_cut for result in told) / count,
    }


def tool_measures(told: Sequence[ConversationResult]) -> dict[str, dict[str, float]]:
    measures: dict[str, dict[str, float]] = {}
    for tool in dict.fromkeys(name for result in told for name in result.work):
        work = [result.work[tool] for result in told if tool in result.work]
        calls = sum(own.calls for own in work)
        measures[tool] = {
            "tool/calls": calls / len(told),
            "tool/seconds": sum(own.seconds for own in work),
        }
        if calls:
            measures[tool]["tool/errors"] = sum(own.errors for own in work) / calls
    return measures


class Conversations:
    """The conversations of one sampling call of a node."""

    def __init__(
        self,
        node: str,
        call: Call,
        row_prompts: "Sequence[RowPrompt]",
        numbers: Sequence[int],
    ) -> None:
        """`numbers`: for each prompt, the number of its first text among those of the row."""
        self.node = node
        self.call = call
        self.row_prompts = row_prompts
        self.numbers = numbers
        self._tools = tools_of(node, call)
        rollout = rollout_of(call.context.spec, node)
        assert rollout is not None
        self._rollout, self._turns = rollout, turns_of(call.context.spec, node)
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], Conversation] = {}
        self._done: dict[tuple[int, int], ConversationResult] = {}

    def sampling(self, sampling: Sampling) -> Sampling:
        """The sampling settings with the texts and turn ends at which completions pause."""
        turns = self._turns
        if turns is None:
            return sampling
        pauses = {text for _, role, _, _ in self._called for text in pauses_of(role.section)}
        return replace(
            sampling,
            pauses=tuple(sorted(pauses)),
            turn_ends=self._turn_ends(),
            turn_tokens=turns.tokens,
            heard_tokens=turns.observation_tokens,
        )

    def _turn_ends(self) -> frozenset[TurnEnd]:
        assert self._turns is not None
        ends: set[TurnEnd] = set()
        sections = [role.section for _, role, _, _ in self._called]
        if not all(map(pauses_of, sections)):
            ends |= {"end", "length"}
        if any(own.type == "environment" and own.call is None for own in sections):
            ends.add("stop")
        if self._turns.invalid_action is not None:
            ends |= {"end", "length"} if as_tuple(self._rollout.stop) else {"length"}
        return frozenset(ends)

    def answer(self, pause: Pause) -> Word:
        """The answer to a text that pauses. Called from several threads, but for a text from one at
        a time."""
        conversation = self._conversation(pause.place, pause.k)
        if pause.turn == 0 and conversation.is_under_way:  # it is written anew
            self._open.pop((pause.place, pause.k)).close()
            conversation = self._conversation(pause.place, pause.k)
        return conversation.answer(pause)

    def told(self, place: int, k: int) -> ConversationResult:
        name = place, k
        with self._lock:
            conversation = self._open.pop(name, None)
        if conversation is not None:
            self._done[name] = conversation.told()
            conversation.close()
        return self._done.get(name, self._unspoken)

    def close(self) -> None:
        for conversation in self._open.values():
            conversation.close()
        self._open.clear()

    def _conversation(self, index: int, k: int) -> Conversation:
        with self._lock:
            if (index, k) not in self._open:
                assert self._turns is not None
                callees = self._callees(self.row_prompts[index].row, self.numbers[index] + k)
                self._open[index, k] = Conversation(
                    callees, self._turns, self._rollout, self.call.tick
                )
            return self._open[index, k]

    @cached_property
    def _unspoken(self) -> ConversationResult:
        """The result of a text that never paused: its tools were not called."""
        if self._turns is None:
            return SILENT
        names = {name for called, _, answers, _ in self._called for name in (called, answers)}
        earned = {
            column: value
            for name, role in self._tools.items()
            for column, value in nothing_earned(name, role.section).items()
        }
        return ConversationResult(work={name: Work() for name in sorted(names)}, earned=earned)

    @cached_property
    def _called(self) -> list[tuple[str, ToolRole, str, ToolRole]]:
        """(name, role) of each tool with a call pattern, and of the tool that answers: itself, or
        the policy that wraps it."""
        return [
            (name, role, answers, answering)
            for answers, answering in self._tools.items()
            for name, role in (tools_of(answers, self.call) or {answers: answering}).items()
        ]

    def _callees(self, row: Row, number: int) -> list[Callee]:
        """Tools for a text; `number`: its number among the texts of the row."""
        return [
            Callee(
                name=name,
                section=role.section,
                answers=answers,
                words=answering.section,
                open=partial(
                    _session,
                    role,
                    answering,
                    caller_of(name, self.node, row, self.call, number),
                    self.call,
                    f"{self.node}:{row.id}.{number}",
                ),
            )
            for name, role, answers, answering in self._called
        ]


def _session(role: ToolRole, answering: ToolRole, caller: Caller, call: Call, text: str) -> Session:
    """The session of a text with a tool, or with the policy that answers in its place."""
    own = None if isinstance(role.tool, PolicyTool) else role.tool.open(caller)
    if not isinstance(answering.tool, PolicyTool):
        assert own is not None
        return own
    wrapped = None if own is None else (role.section, own)
    return PolicySession(answering.tool, wrapped, call, text)


def tools_of(node: str, call: Call) -> dict[str, ToolRole]:
    """Tools that a node may call, or that a tool wraps, in the order of their edges."""
    edges = call.context.spec.graph.edges_into(node, "tools")
    roles = {edge.source.node: call.callees[edge.source.node] for edge in edges}
    return {name: role for name, role in roles.items() if isinstance(role, ToolRole)}


def caller_of(tool: str, node: str, row: Row, call: Call, number: int = 0) -> Caller:
    """A text of a row, as a tool sees it: plain columns and seeds."""
    names = (call.context.seed, tool, node, call.salt, call.step, row.id)
    columns = {name: value for name, value in row.columns.items() if isinstance(value, PLAIN)}
    return Caller(
        columns=columns,
        seed=derive_seed(*names, number),
        shared_seed=derive_seed(*names),
    )


def with_openings(rows: Sequence[Row], node: str, call: Call) -> list[Row]:
    """Rows with the prompt that the node's environment returns for them; unchanged without one.
    Raises `UserCodeError` if its `reset` fails."""
    for tool, role in tools_of(node, call).items():
        if isinstance(role.tool, EnvironmentTool):
            environment = role.tool
            return [_opened(row, tool, node, environment, call) for row in rows]
    return list(rows)


def _opened(row: Row, tool: str, node: str, environment: EnvironmentTool, call: Call) -> Row:
    try:
        prompt = environment.prompt(caller_of(tool, node, row, call), call.tick)
    except ToolFailure as failure:
        raise UserCodeError(f"{tool}: `reset` of row {row.id}: {failure}", tool) from None
    prompt = joined_parts(prompt)
    wrong = None if isinstance(prompt, str) else chat_problem(prompt)
    if wrong is not None:
        raise UserCodeError(f"{tool}: `reset` of row {row.id} {wrong}, found {prompt!r:.80}", tool)
    return row.with_columns(tool, {"prompt": prompt})
