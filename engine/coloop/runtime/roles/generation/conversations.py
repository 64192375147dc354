"""Conversations of one draw of a writer: where its texts pause, and who answers each of them."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

from coloop.data.chats import chat_problem, joined_parts
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row
from coloop.data.tools.calls import pauses_of
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.protocol import Caller, ToolFailure
from coloop.errors import UserCodeError
from coloop.runtime.roles.generation.conversation import (
    SILENT,
    Callee,
    Conversation,
    ConversationResult,
    Work,
    nothing_earned,
)
from coloop.runtime.roles.generation.policy_tool import PolicySession, PolicyTool, Wrapped
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.tool import ToolRole
from coloop.spec.base import as_tuple
from coloop.spec.groups import rollout_of, turns_of
from coloop.spec.nodes import ToolNode
from coloop.workers.messages import Pause, Sampling, TurnEnd, Word


class Asked(Protocol):
    """What a text is drawn to."""

    @property
    def row(self) -> Row: ...


@dataclass(eq=False)
class Conversations:
    """All conversations of one generate stage."""

    node: str
    call: Call
    row_prompts: Sequence[Asked]
    """What texts are drawn to."""
    numbers: Sequence[int]
    """Of each, the number of its first text among those to the row."""
    _open: dict[tuple[int, int], Conversation] = field(default_factory=dict, init=False)
    _done: dict[tuple[int, int], ConversationResult] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        spec = self.call.context.spec
        self._tools = tools_of(self.node, self.call)
        rollout, turns = rollout_of(spec, self.node), turns_of(spec, self.node)
        assert rollout is not None
        self._rollout, self._turns = rollout, turns
        self._lock = threading.Lock()

    @property
    def are_there(self) -> bool:
        return self._turns is not None

    def sampling(self, sampling: Sampling) -> Sampling:
        """The same with the places where texts pause."""
        turns = self._turns
        if turns is None:
            return sampling
        pauses = {text for section in self._sections for text in pauses_of(section)}
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
        if any(not pauses_of(section) for section in self._sections):
            ends |= {"end", "length"}
        if any(one.type == "environment" and one.call is None for one in self._sections):
            ends.add("stop")
        if self._turns.invalid_action is not None:
            ends |= {"end", "length"} if as_tuple(self._rollout.stop) else {"length"}
        return frozenset(ends)

    def answer(self, pause: Pause) -> Word:
        """What is said to a text. Called from several threads, for a text from one at a time."""
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

    def _conversation(self, place: int, k: int) -> Conversation:
        with self._lock:
            if (place, k) not in self._open:
                assert self._turns is not None
                callees = self._callees(self.row_prompts[place].row, self.numbers[place] + k)
                self._open[place, k] = Conversation(
                    callees, self._turns, self._rollout, self.call.tick
                )
            return self._open[place, k]

    @cached_property
    def _unspoken(self) -> ConversationResult:
        """Of a text to which nobody had to speak: its tools were there, and none of them worked."""
        if self._turns is None:
            return SILENT
        names = {name for tool in self._tools for name in (*tools_of(tool, self.call), tool)}
        earned = {
            column: value
            for name, role in self._tools.items()
            for column, value in nothing_earned(name, role.section).items()
        }
        return ConversationResult(work={name: Work() for name in sorted(names)}, earned=earned)

    @property
    def _sections(self) -> list[ToolNode]:
        """Tools by whose patterns texts call."""
        return [
            role.section
            for name, tool in self._tools.items()
            for role in (tools_of(name, self.call) or {name: tool}).values()
        ]

    def _callees(self, row: Row, number: int) -> list[Callee]:
        """What a text to a row may call, by its number among those to the row."""
        found: list[Callee] = []
        for name, role in self._tools.items():
            if isinstance(role.tool, PolicyTool):
                found += self._wrapping(name, role, role.tool, row, number)
                continue
            start = partial(role.tool.open, caller_of(name, self.node, row, self.call, number))
            words = role.section
            found.append(Callee(name=name, section=words, answers=name, words=words, open=start))
        return found

    def _wrapping(
        self, name: str, role: ToolRole, tool: PolicyTool, row: Row, number: int
    ) -> list[Callee]:
        """A policy as a tool: called as the tools that it wraps, or by itself."""
        text, words = f"{self.node}:{row.id}.{number}", role.section
        inner = tools_of(name, self.call)
        if not inner:
            start = partial(PolicySession, tool, None, self.call, text)
            return [Callee(name=name, section=words, answers=name, words=words, open=start)]
        found = []
        for own, wrapped in inner.items():
            assert not isinstance(wrapped.tool, PolicyTool)
            caller = caller_of(own, self.node, row, self.call, number)
            start = partial(_wrapped_session, tool, wrapped, caller, self.call, text)
            section = wrapped.section
            found.append(Callee(name=own, section=section, answers=name, words=words, open=start))
        return found


def _wrapped_session(
    tool: PolicyTool, role: ToolRole, caller: Caller, call: Call, text: str
) -> PolicySession:
    assert not isinstance(role.tool, PolicyTool)
    wrapped = Wrapped(section=role.section, session=role.tool.open(caller))
    return PolicySession(tool, wrapped, call, text)


def tools_of(node: str, call: Call) -> dict[str, ToolRole]:
    """Tools that a writer may call, or that a tool wraps, in the order of their edges."""
    edges = call.context.spec.graph.edges_into(node, "tools")
    found = {edge.source.node: call.callees[edge.source.node] for edge in edges}
    return {name: role for name, role in found.items() if isinstance(role, ToolRole)}


def caller_of(tool: str, node: str, row: Row, call: Call, number: int = 0) -> Caller:
    """A text to a row, as a tool sees it."""
    names = (call.context.seed, tool, node, call.salt, call.step, row.id)
    columns = {name: value for name, value in row.columns.items() if not _is_inner(value)}
    return Caller(
        columns=columns,
        seed=derive_seed(*names, number),
        shared_seed=derive_seed(*names),
    )


def _is_inner(value: Any) -> bool:
    return not isinstance(value, str | int | float | bool | list | tuple | dict | None)


def with_openings(rows: Sequence[Row], node: str, call: Call) -> list[Row]:
    """Rows whose prompt is what the writer's environment says of them, where it has one.

    Raises:
        UserCodeError: it says nothing of a row.
    """
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
