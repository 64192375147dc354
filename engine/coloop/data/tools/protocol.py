"""The seam between a text that is being written and the tools that are called in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

Tick = Callable[[], None]
"""Called a few times a second by a tool at work; what it raises ends the work."""


class ToolFailure(Exception):
    """A call that gave no answer; the message is what the policy reads of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The text in which a tool is called."""

    columns: Mapping[str, Any]
    """Of the row to which it answers."""
    seed: int
    """Decides what the tool draws for this text."""
    shared_seed: int
    """The same for all texts that answer to the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    value: Any
    """What `result` sees under this name."""
    parts: tuple[str, ...] = ()
    """What it consists of, where it has several parts."""
    is_last: bool = False
    """The text ends here, and the policy reads nothing of it."""


class Session(Protocol):
    """A tool as one text sees it. Asked by one thread at a time."""

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        """Does what a call asks for.

        Raises:
            ToolFailure: what the policy did wrong, or why there is no answer.
        """
        ...

    def earned(self) -> Mapping[str, float]:
        """Columns that it adds to the row, under the tool's name."""
        ...

    def close(self) -> None:
        """The text is finished."""
        ...


class Tool(Protocol):
    """One tool of a run. Asked by several threads at a time."""

    def open(self, caller: Caller) -> Session:
        """What it remembers of a text; nothing is started for it before it is called."""
        ...

    def close(self) -> None:
        """Ends what it has started."""
        ...


class StatelessTool:
    """A tool that remembers nothing from call to call: it is the session of every text. A subclass
    has `answer`."""

    def open(self, caller: Caller) -> Self:
        return self

    def earned(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None: ...
