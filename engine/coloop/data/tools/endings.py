"""Where a call can end: literal texts with which every match of a pattern ends.

    <search>(?P<query>.*?)</search>   </search>
    (yes|no)[.!]                      . !
    ask: (?P<query>.*)                nothing: such a call is read where the text ends

A policy stops there as soon as it has written one out, so that a call is answered at once.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as reader  # type: ignore[attr-defined]
from typing import Any, Final

MOST: Final = 16
"""Texts of a pattern; one with more is read where the text ends."""


@lru_cache(maxsize=256)
def endings_of(pattern: str) -> frozenset[str]:
    """The literal ends of a pattern; none where some match ends with something else."""
    try:
        tree = reader.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return frozenset()
    if tree.state.flags & re.IGNORECASE:
        return frozenset()
    found = _ends(list(tree))
    is_known = found is not None and 0 < len(found) <= MOST and "" not in found
    return found if found is not None and is_known else frozenset()


def _ends(parts: Sequence[Any]) -> frozenset[str] | None:
    """Ends of a sequence, as long as they are literal; None where nothing is known."""
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
        return _union([_ends(list(branch)) for branch in given[1]])
    if kind is codes.IN:
        literals = [chr(value) for code, value in given if code is codes.LITERAL]
        return frozenset(literals) if len(literals) == len(given) else None
    if kind in (codes.MAX_REPEAT, codes.MIN_REPEAT) and given[0] > 0:
        return _ends(list(given[2]))
    return None


def _union(found: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    known = [one for one in found if one is not None]
    return frozenset().union(*known) if len(known) == len(found) else None
