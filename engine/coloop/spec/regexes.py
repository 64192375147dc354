"""Static checks of a regular expression: its size with counted repeats written out, as the library
that applies it does, and whether one of its groups can match a number."""

import re
from collections.abc import Iterable, Iterator
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

LARGEST_PATTERN: Final = 1_000_000
"""Maximum parts of a pattern with repeats written out: 2 seconds and 300 MiB to compile."""
MOST_DIGITS: Final = 9

COUNT: Final = re.compile(r"(.?)\{\s*(\d+)", re.DOTALL)
"""A repeat, and what stands before it."""
BEHIND_GROUPS: Final = ")}?*+"
"""Characters after which a repeat applies to a whole group."""


def why_too_large(pattern: str) -> str | None:
    """Why a pattern is too large to be compiled; None if it is not.

    An upper bound: repeats of groups multiply everything, so that nothing can hide one.
    """
    parts, times = len(pattern), 1
    for before, digits in COUNT.findall(pattern):
        count = int(digits) if len(digits) <= MOST_DIGITS else LARGEST_PATTERN
        if not before or before.isspace() or before in BEHIND_GROUPS:
            times = min(times * max(count, 1), LARGEST_PATTERN)
        else:
            parts += count
    if parts * times <= LARGEST_PATTERN:
        return None
    return (
        f"with its repeats written out it has more than {LARGEST_PATTERN:,} parts; "
        "repeat groups less often, or without a lower bound (`{,1000}`, `*`)"
    )


READ_OTHERWISE: Final = re.compile(r"\[\^?\[|\[:|--|&&|~~|\|\||\{(?!\d*,?\d*\})")
"""Syntax that `regex`, which applies patterns, may read differently from `re`, which parses them
here: nested sets (`[[:digit:]]`), of which `re` also warns, and fuzzy matches (`{e<=1}`)."""
NO_DIGIT: Final = frozenset(
    {op.CATEGORY_NOT_DIGIT, op.CATEGORY_SPACE, op.CATEGORY_NOT_WORD, op.CATEGORY_LINEBREAK}
)
"""Character categories without digits."""


def says_no_number(pattern: str) -> bool:
    """Whether a pattern has groups and none of them can match a digit.

    False if that cannot be decided, or if a match without any group may contain a digit.
    """
    if READ_OTHERWISE.search(pattern):
        return False
    try:
        parsed = [*parser.parse(pattern)]
    except (re.error, ValueError, OverflowError, RecursionError):
        return False
    groups = [*_groups(parsed)]
    if not groups or any(map(_may_be_digit, groups)):
        return False
    return _has_a_group(parsed) or not _may_be_digit(parsed)


def _groups(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Contents of every group, nested ones and lookarounds included."""
    for kind, value in items:
        if kind is op.SUBPATTERN and value[0] is not None:
            yield [*value[-1]]
        looked_at = [value[1]] if kind is op.ASSERT else []
        for inner in [*_parts(kind, value), *looked_at]:
            yield from _groups(inner)


def _has_a_group(items: Iterable[Any]) -> bool:
    return any(_is_with_group(kind, value) for kind, value in items)


def _is_with_group(kind: Any, value: Any) -> bool:
    if kind is op.SUBPATTERN and value[0] is not None:
        return True
    if kind is op.BRANCH:
        return all(map(_has_a_group, value[1]))
    is_optional = kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT) and value[0] == 0
    if is_optional or kind is op.GROUPREF_EXISTS:
        return False
    return any(map(_has_a_group, _parts(kind, value)))


def _parts(kind: Any, value: Any) -> list[Any]:
    """Subpatterns of a parsed piece that consume text."""
    if kind is op.SUBPATTERN or kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [value[-1]] if kind is op.SUBPATTERN or value[1] else []
    if kind is op.ATOMIC_GROUP:
        return [value]
    if kind is op.BRANCH:
        return [*value[1]]
    return [part for part in value[1:] if part] if kind is op.GROUPREF_EXISTS else []


def _may_be_digit(items: Iterable[Any]) -> bool:
    return any(
        _is_digit(kind, value) or any(map(_may_be_digit, _parts(kind, value)))
        for kind, value in items
    )


def _is_digit(kind: Any, value: Any) -> bool:
    if kind is op.LITERAL:
        return chr(value).isdecimal()
    if kind is op.RANGE:
        return bool(value[1] >= ord("0") and (value[0] <= ord("9") or value[1] > 127))
    if kind is op.CATEGORY:
        return value not in NO_DIGIT
    if kind is op.IN:
        return value[0][0] is op.NEGATE or any(_is_digit(*part) for part in value)
    return kind in (op.ANY, op.NOT_LITERAL, op.GROUPREF)
