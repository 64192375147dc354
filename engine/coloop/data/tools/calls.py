"""Finds calls of a tool in a text, and renders its answers.

A call is a match of the pattern `call`, in which `.` also matches newlines; its named groups are
the arguments. Without a pattern, as for environments, the whole turn is the call.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as reader  # type: ignore[attr-defined]
from typing import Any, Final

from coloop.data.patterns import PatternProblem, PatternTimeout, pattern
from coloop.data.templates.environment import RenderProblem, render_text
from coloop.data.tools.protocol import ToolFailure
from coloop.spec.nodes import ToolNode
from coloop.spec.tools import ARGUMENTS, OWN_CALLS

CUT: Final = "... (cut)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    tool: str
    text: str
    end: int
    """End offset in the searched text."""
    arguments: Mapping[str, str]


def pattern_of(section: ToolNode) -> str | None:
    """The pattern of a tool's calls; None if the whole turn is the call."""
    return section.call or OWN_CALLS.get(section.type)


def pauses_of(section: ToolNode) -> frozenset[str]:
    """Texts at which generation pauses, because a call may end with them; empty if calls are only
    looked for at the end of a turn."""
    written = pattern_of(section)
    return frozenset() if written is None else endings_of(written)


def call_in(text: str, tool: str, section: ToolNode) -> ToolCall | None:
    """The last call of a tool in a text; raises ToolFailure if the search fails."""
    written = pattern_of(section)
    if written is None:
        return ToolCall(tool=tool, text=text, end=len(text), arguments={"text": text})
    try:
        match = pattern(f"(?s:{written})").last_match(text)
    except (PatternProblem, PatternTimeout) as problem:
        raise ToolFailure(str(problem)) from None
    if match is None:
        return None
    arguments = {name: value or "" for name, value in match.groupdict().items()}
    argument = ARGUMENTS.get(section.type)
    if argument is not None:
        arguments.setdefault(argument, match[0])
    return ToolCall(tool=tool, text=match[0], end=match.end(), arguments=arguments)


def worded(value: Any, arguments: Mapping[str, str], section: ToolNode) -> str:
    """The text of an answer for the policy; raises ToolFailure if `result` cannot be rendered."""
    if isinstance(value, str):
        value = limited(value, section.output_bytes)
    if section.result is None:
        return value if isinstance(value, str) else str(value)
    try:
        return render_text(section.result, {**arguments, "value": value})
    except RenderProblem as problem:
        raise ToolFailure(f"the answer cannot be written: {problem}") from None


def limited(text: str, most_bytes: int) -> str:
    """The text cut to `most_bytes`, with a note if it was cut."""
    written = text.encode("utf-8", "replace")
    if len(written) <= most_bytes:
        return written.decode("utf-8")
    return written[:most_bytes].decode("utf-8", "ignore") + CUT


# Where a call may end: literal texts with which every match of a pattern ends.
#
#     <search>(?P<query>.*?)</search>   </search>
#     (yes|no)[.!]                      . !
#     ask: (?P<query>.*)                none: such a call is found at the end of the turn
#
# Generation pauses as soon as one of them is complete, so that a call is answered at once.

MOST: Final = 16
"""Maximum endings of a pattern; with more, calls are looked for at the end of a turn."""


@lru_cache(maxsize=256)
def endings_of(pattern: str) -> frozenset[str]:
    """The texts with which every match of a pattern ends; empty if a match may end otherwise."""
    try:
        tree = reader.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return frozenset()
    if tree.state.flags & re.IGNORECASE:
        return frozenset()
    ends = _ends(list(tree)) or frozenset()
    return ends if len(ends) <= MOST and "" not in ends else frozenset()


def _ends(parts: Sequence[Any]) -> frozenset[str] | None:
    """The literal endings of a parsed pattern; None if it may end otherwise."""
    tail = ""
    for kind, given in reversed(parts):
        if kind is codes.LITERAL:
            tail = chr(given) + tail
            continue
        if tail:
            return frozenset({tail})
        return _ends_of_one(kind, given)
    return frozenset({tail}) if tail else None


def _ends_of_one(kind: Any, given: Any) -> frozenset[str] | None:
    if kind is codes.SUBPATTERN:
        return None if given[1] & re.IGNORECASE else _ends(list(given[3]))
    if kind is codes.BRANCH:
        branches = [_ends(list(branch)) for branch in given[1]]
        known = [ends for ends in branches if ends is not None]
        return frozenset().union(*known) if len(known) == len(branches) else None
    if kind is codes.IN:
        literals = [chr(value) for code, value in given if code is codes.LITERAL]
        return frozenset(literals) if len(literals) == len(given) else None
    if kind in (codes.MAX_REPEAT, codes.MIN_REPEAT) and given[0] > 0:
        return _ends(list(given[2]))
    return None
