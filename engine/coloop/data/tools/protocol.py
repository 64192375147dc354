"""The seam between a text that is being written and the tools that are called in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

Tick = Callable[[], None]
"""Called a few times a second by a running tool; an exception cancels it."""


class ToolFailure(Exception):
    """A failed call; the policy reads the message."""


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
    """The value that `result` sees."""
    parts: tuple[str, ...] = ()
    """Its parts, if it has several."""
    is_last: bool = False
    """The text ends here; the policy does not read the answer."""


class Session(Protocol):
    """A tool's state for one text; used by one thread at a time."""

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        """Carry out a call; raises ToolFailure with a message for the policy."""
        ...

    def earned(self) -> Mapping[str, float]:
        """Columns to add to the row, under the tool's name."""
        ...

    def close(self) -> None: ...


class Tool(Protocol):
    """One tool of a run; used by several threads at a time."""

    def open(self, caller: Caller) -> Session:
        """The session of a text; nothing is started before the first call."""
        ...

    def close(self) -> None: ...


class StatelessTool:
    """A tool without state: it is the session of every text. Subclasses implement `answer`."""

    def open(self, caller: Caller) -> Self:
        return self

    def earned(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None: ...
