"""The interface of tools: `Tool`, its `Session` for one text, and results of calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

Tick = Callable[[], None]
"""Called a few times a second while a tool runs; if it raises, the call is cancelled."""


class ToolFailure(Exception):
    """A call failed; the message is for the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The text from which a tool is called."""

    columns: Mapping[str, Any]
    """Columns of its row."""
    seed: int
    """Seed for this text."""
    shared_seed: int
    """Seed shared by all texts of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    value: Any
    """The result: a text, or a value for the template `result`."""
    parts: tuple[str, ...] = ()
    """The parts of the result, such as documents; empty if it has none."""
    is_last: bool = False
    """Whether the text ends here, without this answer."""


class Session(Protocol):
    """A tool's state for one text; used by one thread at a time."""

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        """Execute a call; raises ToolFailure with a message for the policy."""
        ...

    def earned(self) -> Mapping[str, float]:
        """Numbers for the row, such as rewards, by column."""
        ...

    def close(self) -> None: ...


class Tool(Protocol):
    """A tool of a run; used by several threads at a time."""

    def open(self, caller: Caller) -> Session:
        """A session for a text; starts no process before its first call."""
        ...

    def close(self) -> None: ...


class StatelessTool:
    """A tool without state: it is the session of every text. Subclasses implement `answer`."""

    def open(self, caller: Caller) -> Self:
        return self

    def earned(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None: ...
