"""How a tool is called, and how its answer is worded: the texts of a tool node at work.

A call is what the pattern `call` matches; `.` matches line ends as well. Its named groups are the
arguments. An environment without a pattern is called by whatever the policy writes in a turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from coloop.data.patterns import PatternProblem, PatternTimeout, pattern
from coloop.data.templates.rendering import RenderProblem, render_text
from coloop.data.tools.endings import endings_of
from coloop.data.tools.protocol import ToolFailure
from coloop.spec.nodes import ToolNode
from coloop.spec.tools import ARGUMENTS, OWN_CALLS

CUT: Final = "... (cut)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that was found in a text."""

    tool: str
    text: str
    """As the policy wrote it."""
    end: int
    """Where it ends in what was looked at."""
    arguments: Mapping[str, str]


def pattern_of(section: ToolNode) -> str | None:
    """What a call looks like; None where all that is written in a turn is one."""
    return section.call or OWN_CALLS.get(section.type)


def pauses_of(section: ToolNode) -> frozenset[str]:
    """Texts with which every call ends; none where a call is read at the end of a turn."""
    written = pattern_of(section)
    return frozenset() if written is None else endings_of(written)


def call_in(text: str, tool: str, section: ToolNode) -> ToolCall | None:
    """The last call of a tool in a text.

    Raises:
        ToolFailure: the pattern cannot be searched for in this text.
    """
    written = pattern_of(section)
    if written is None:
        return ToolCall(tool=tool, text=text, end=len(text), arguments={"text": text})
    try:
        match = pattern(f"(?s:{written})").last_match(text)
    except (PatternProblem, PatternTimeout) as problem:
        raise ToolFailure(str(problem)) from None
    if match is None:
        return None
    arguments = dict(match.groups)
    argument = ARGUMENTS.get(section.type)
    if argument is not None:
        arguments.setdefault(argument, match.text)
    return ToolCall(tool=tool, text=match.text, end=match.end, arguments=arguments)


def worded(value: Any, arguments: Mapping[str, str], section: ToolNode) -> str:
    """What the policy reads of an answer to a call with these arguments.

    Raises:
        ToolFailure: `result` cannot hold it.
    """
    if isinstance(value, str):
        value = limited(value, section.output_bytes)
    if section.result is None:
        return value if isinstance(value, str) else str(value)
    try:
        return render_text(section.result, {**arguments, "value": value})
    except RenderProblem as problem:
        raise ToolFailure(f"the answer cannot be written: {problem}") from None


def limited(text: str, most_bytes: int) -> str:
    """A text of at most so many bytes, which says where it was cut."""
    written = text.encode("utf-8", "replace")
    if len(written) <= most_bytes:
        return written.decode("utf-8")
    return written[:most_bytes].decode("utf-8", "ignore") + CUT
