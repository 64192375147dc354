"""The tool `reverser`."""

from collections.abc import Mapping

from coloop.data.tools.protocol import Answered, StatelessTool, Tick
from coloop.spec.nodes import ToolNode


class Reverser(StatelessTool):
    """Answers a text with the same backwards."""

    def __init__(self, section: ToolNode) -> None:
        del section  # it has no settings

    def answer(self, arguments: Mapping[str, str], tick: Tick) -> Answered:
        del tick
        return Answered(value=arguments["text"][::-1])
