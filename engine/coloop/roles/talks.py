"""Conversations of one draw of a writer: where its texts pause, and who answers each of them."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from coloop.data.sources import chat_problem
from coloop.errors import UserCodeError
from coloop.hosts.messages import Pause, Sampling, TurnEnd, Word
from coloop.roles.conversation import SILENT, Conversation, Told
from coloop.roles.protocol import Call
from coloop.roles.tool import ToolRole
from coloop.seeds import derive_seed
from coloop.spec.base import as_tuple
from coloop.spec.homes import rollout_of, turns_of
from coloop.tables import Row
from coloop.tools.calls import pauses_of
from coloop.tools.environment import EnvironmentTool
from coloop.tools.protocol import Caller, ToolFailure


class Asked(Protocol):
    """What a text is drawn to."""

    @property
    def row(self) -> Row: ...


class Talks:
    """See the module."""

    def __init__(
        self, node: str, call: Call, asks: Sequence[Asked], numbers: Sequence[int]
    ) -> None:
        """
        Args:
            asks: what texts are drawn to.
            numbers: of each, the number of its first text among those to the row.
        """
        self._node = node
        self._call = call
        self._asks = asks
        self._numbers = numbers
        spec = call.context.spec
        self._tools = tools_of(node, call)
        rollout, turns = rollout_of(spec, node), turns_of(spec, node)
        assert rollout is not None
        self._rollout, self._turns = rollout, turns
        self._open: dict[tuple[int, int], Conversation] = {}
        self._done: dict[tuple[int, int], Told] = {}
        self._lock = threading.Lock()

    @property
    def are_there(self) -> bool:
        """Whether texts are spoken to at all."""
        return self._turns is not None

    def sampling(self, sampling: Sampling) -> Sampling:
        """The same with the places where texts pause."""
        turns = self._turns
        if turns is None:
            return sampling
        pauses = {text for role in self._tools.values() for text in pauses_of(role.section)}
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
        sections = [role.section for role in self._tools.values()]
        if any(not pauses_of(section) for section in sections):
            ends |= {"end", "length"}
        if any(one.type == "environment" and one.call is None for one in sections):
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

    def told(self, place: int, k: int) -> Told:
        """What came of a text that is finished."""
        name = place, k
        with self._lock:
            conversation = self._open.pop(name, None)
        if conversation is not None:
            self._done[name] = conversation.told()
            conversation.close()
        return self._done.get(name, SILENT)

    def close(self) -> None:
        """Ends what was begun for texts that were not finished."""
        for conversation in self._open.values():
            conversation.close()
        self._open.clear()

    def _conversation(self, place: int, k: int) -> Conversation:
        with self._lock:
            if (place, k) not in self._open:
                assert self._turns is not None
                row, number = self._asks[place].row, self._numbers[place] + k
                callers = {tool: self._caller(tool, row, number) for tool in self._tools}
                self._open[place, k] = Conversation(
                    self._tools, self._turns, self._rollout, callers, self._call.tick
                )
            return self._open[place, k]

    def _caller(self, tool: str, row: Row, number: int) -> Caller:
        return caller_of(tool, self._node, row, self._call, number)


def tools_of(node: str, call: Call) -> dict[str, ToolRole]:
    """Tools that a writer may call, in the order of their edges."""
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
            world = role.tool
            return [_opened(row, tool, node, world, call) for row in rows]
    return list(rows)


def _opened(row: Row, tool: str, node: str, world: EnvironmentTool, call: Call) -> Row:
    try:
        prompt = world.prompt(caller_of(tool, node, row, call), call.tick)
    except ToolFailure as failure:
        raise UserCodeError(f"{tool}: `reset` of row {row.id}: {failure}", tool) from None
    wrong = None if isinstance(prompt, str) else chat_problem(prompt)
    if wrong is not None:
        raise UserCodeError(f"{tool}: `reset` of row {row.id} {wrong}, found {prompt!r:.80}", tool)
    return row.with_columns(tool, {"prompt": prompt})
