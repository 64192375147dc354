"""The tool `reverser`."""

from collections.abc import Mapping

from coloop.data.tools.protocol import Answered, Caller, Forgetful, Tick
from coloop.spec.nodes import ToolNode


class Reverser:
    """Answers a text with the same backwards."""

    def __init__(self, section: ToolNode) -> None:
        del section  # it has no settings

    def open(self, caller: Caller) -> "ReverserSession":
        del caller
        return ReverserSession()

    def close(self) -> None: ...


class ReverserSession(Forgetful):
    """A text that may call it."""

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        return Answered(value=arguments["text"][::-1])
