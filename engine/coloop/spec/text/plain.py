"""Plain data from elsewhere (the body of a request) under the limits that hold for text.

What is neither too deep nor too large, holds only values that YAML and JSON carry, finite numbers
and whole characters, may go on to validation. The walk uses a list, not the stack of Python.
"""

from __future__ import annotations

import math
import re
from typing import Any

from coloop.spec.text.reader import MAX_DEPTH, MAX_VALUES

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character: it cannot be written as UTF-8."""

Place = tuple[str | int, ...]


def find_unfit(data: Any) -> tuple[Place, str, str] | None:
    """The first value that cannot be read: its place, a code, a message."""
    return None if _is_fit(data) else _first_unfit(data)


def _is_fit(data: Any) -> bool:
    """Whether nothing is wrong, level by level, without places: what is right is read often."""
    level: list[Any] = [data]
    seen = 0
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if not all(isinstance(key, str) and key.isprintable() for key in value):
                    return False
                below += value.values()
            elif isinstance(value, (list, tuple)):
                below += value
            elif _unfit(value) is not None:
                return False
        seen += len(level)
        if not below or seen > MAX_VALUES:
            return seen <= MAX_VALUES
        level = below
    return False


def _first_unfit(data: Any) -> tuple[Place, str, str] | None:
    waiting: list[tuple[Any, Place]] = [(data, ())]
    seen = 0
    while waiting:
        value, place = waiting.pop()
        seen += 1
        if seen + len(waiting) > MAX_VALUES:
            return (), "yaml.too_many_values", f"the loop has more than {MAX_VALUES:,} values"
        if isinstance(value, (dict, list, tuple)) and len(place) >= MAX_DEPTH:
            return place[:3], "yaml.too_deep", f"values are nested more than {MAX_DEPTH} deep"
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    return place, "yaml.key", f"the key {key!r} is not a text"[:100]
                if SURROGATE.search(key):
                    return place, "yaml.character", "a key contains half of a character"
                waiting.append((item, (*place, key)))
        elif isinstance(value, (list, tuple)):
            waiting += [(item, (*place, index)) for index, item in enumerate(value)]
        else:
            found = _unfit(value)
            if found is not None:
                return place, *found
    return None


def _unfit(value: Any) -> tuple[str, str] | None:
    """Code and message for a single value that cannot be read."""
    match value:
        case None | bool():
            return None
        case str():
            is_whole = SURROGATE.search(value) is None
            return None if is_whole else ("yaml.character", "the text contains half of a character")
        case int():
            is_fit = -(2**63) < value < 2**63
            return None if is_fit else ("yaml.not_finite", "the number is too large")
        case float():
            is_fit = math.isfinite(value)
            return None if is_fit else ("yaml.not_finite", f"{value} is not a finite number")
    return "structure.wrong_type", f"a value of type {type(value).__name__} is not a plain value"
