"""Measures taken before an operator, a format or a method of a text is carried out.

Each refuses by `LimitReached` what would write or look through too much.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from coloop.data.templates.budget import (
    LARGEST_LIST,
    LARGEST_NUMBER_BITS,
    LARGEST_TEXT,
    VIEWS,
    LimitReached,
    extent,
    too_long,
    too_many,
    written,
)

LARGEST_SEARCH: Final = 100_000_000
"""Most pairs of characters that a search from the end, or a strip, may look at."""

LARGEST_OFFSET: Final = 10**18
LONGEST_WIDTH: Final = 4
"""Most digits of a width or a precision in `%`."""

CONVERSION: Final = re.compile(
    r"%(?:\((?P<name>[^()]*)\))?[-#0 +]*(?P<width>\*|\d*)"
    r"(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)",
    re.DOTALL,
)
STRING_METHODS: Final = frozenset(
    """
    capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit
    islower isnumeric isspace istitle isupper join ljust lower lstrip partition removeprefix
    removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith
    strip swapcase title upper zfill
    """.split()  # noqa: SIM905
)
PROBING_METHODS: Final = frozenset({"count", "endswith", "find", "index", "startswith"})
"""Those that may look into a text of any length, since they write nothing."""
FROM_THE_END: Final = frozenset({"rfind", "rindex", "rpartition", "rsplit"})
STRIPS: Final = frozenset({"lstrip", "rstrip", "strip"})
PADS: Final = frozenset({"center", "ljust", "rjust", "zfill"})


def measure_operation(operator: str, left: Any, right: Any) -> None:
    match operator, left, right:
        case "*", (str() | list() | tuple()), int():
            _measure_repeat(left, right)
        case "*", int(), (str() | list() | tuple()):
            _measure_repeat(right, left)
        case "**", (int() | float()), (int() | float()):
            if abs(right) > LARGEST_NUMBER_BITS or _bits(left) * abs(right) > LARGEST_NUMBER_BITS:
                raise LimitReached(f"a power has more than {LARGEST_NUMBER_BITS} bits")
        case "*", int(), int():
            if _bits(left) + _bits(right) > LARGEST_NUMBER_BITS:
                raise LimitReached(f"a product has more than {LARGEST_NUMBER_BITS} bits")
        case "%", str(), _:
            measure_format(left, right)
        case "-", _, _ if type(left) in VIEWS or type(right) in VIEWS:
            raise TypeError(
                "the keys of a dict do not support `-`; `reject('in', ...)` removes some"
            )
        case "+", str(), str():
            _check_length(len(left) + len(right))
        case "+", (list() | tuple()), (list() | tuple()):
            if len(left) + len(right) > LARGEST_LIST:
                raise too_many()


def _measure_repeat(value: str | list[Any] | tuple[Any, ...], times: int) -> None:
    size = len(value) * max(0, times)
    if isinstance(value, str):
        _check_length(size)
    elif size > LARGEST_LIST:
        raise too_many()


def _bits(number: float) -> int:
    return int(abs(number)).bit_length() if abs(number) < 2.0**1000 else 1000


def measure_format(text: str, values: Any) -> None:
    """Before `text % values`: its literal characters, widths, and what the values write."""
    size, is_written_whole = len(text), not isinstance(values, Mapping)
    for found in CONVERSION.finditer(text):
        for digits in (found["width"], found["precision"] or ""):
            if found["kind"] == "(" or digits == "*" or len(digits) > LONGEST_WIDTH:
                raise LimitReached(
                    f"the width in {found[0][:40]!r} is not a number of up to {LONGEST_WIDTH} "
                    "digits"
                )
            size += int(digits or 0)
        if found["name"] is None:
            is_written_whole = True
        elif isinstance(values, Mapping):
            size += extent(values.get(found["name"]), LARGEST_TEXT)
        _check_length(size)
    if is_written_whole:
        _check_length(size + extent(values, LARGEST_TEXT))


def measure_method(name: str, owner: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if len(owner) > LARGEST_TEXT and name not in PROBING_METHODS:
        raise too_long(len(owner))
    values = [*args, *kwargs.values()]
    for value in values:
        if isinstance(value, int) and abs(value) > LARGEST_OFFSET:
            raise LimitReached("a position or a width is too large")
    first = values[0] if values else None
    if name in PADS and isinstance(first, int):
        _check_length(first)
    elif name == "replace" and len(values) >= 2:
        measure_replace(owner, values[0], values[1])
    elif (name in FROM_THE_END or name in STRIPS) and isinstance(first, str):
        measure_search(owner, first)


def measure_search(text: str, wanted: str) -> None:
    """Before a search from the end, whose worst case looks at every pair of characters."""
    if len(text) * len(wanted) > LARGEST_SEARCH:
        raise LimitReached(
            f"a search for {len(wanted):,} characters in {len(text):,} is too long; "
            "search from the start, or in a part of the text"
        )


def measure_replace(text: Any, old: Any, new: Any) -> None:
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return
    if len(new) > len(old):
        _check_length(len(text) + text.count(old) * (len(new) - len(old)))


def measure_indent(text: str, width: object) -> None:
    if isinstance(width, int):
        _check_length(width)
    deep = len(width) if isinstance(width, str) else width if isinstance(width, int) else 0
    if deep > 0 and len(text) * deep > LARGEST_TEXT:
        _check_length(len(text) + len(text.splitlines()) * deep)


def joined(values: Iterable[Any], separator: str, write: Callable[[Any], str] = written) -> str:
    """The values written one after another; stops as soon as they are too long."""
    parts: list[str] = []
    size = -len(separator)
    for value in values:
        part = value if type(value) is str else write(value)
        size += len(part) + len(separator)
        if size > LARGEST_TEXT:
            raise too_long(size)
        parts.append(part)
    return separator.join(parts)


def _check_length(size: int) -> None:
    if size > LARGEST_TEXT:
        raise too_long(size)
