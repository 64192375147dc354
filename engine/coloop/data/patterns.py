"""The user's regular expressions, with a time limit.

A pattern that backtracks endlessly on some completion would block the run; here it raises
PatternTimeout. The syntax is that of Python's `re` (the default of the package `regex`).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import regex  # type: ignore[import-untyped]

from coloop.spec.regexes import why_too_large

TIMEOUT_SECONDS: Final = 2.0
"""Time limit of one pattern on one text."""
LONGEST_SHOWN: Final = 200


class PatternProblem(ValueError):
    """A pattern that is not a regular expression."""


class PatternTimeout(ValueError):
    """A pattern that did not finish on a text in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The text of a group of a match, and its offset."""

    text: str
    start: int


class Pattern:
    def __init__(self, source: str) -> None:
        self.source = source
        try:
            if (too_large := why_too_large(source)) is not None:
                raise ValueError(too_large)
            self._compiled = regex.compile(source)
        except (regex.error, ValueError, RecursionError, OverflowError) as error:
            shown = source if len(source) <= LONGEST_SHOWN else f"{source[:LONGEST_SHOWN]}..."
            raise PatternProblem(f"{shown!r} is not a regular expression: {error}") from None

    @property
    def groups(self) -> int:
        return int(self._compiled.groups)

    def is_in(self, text: str) -> bool:
        return next(self._found(text), None) is not None

    def matches(self, text: str) -> list[str]:
        """For each match, its first group that matched, else the whole match."""
        return [parts[0].text for parts in self.parts(text)]

    def parts(self, text: str) -> list[tuple[Part, ...]]:
        """For each match, its groups that matched; if there are none, the whole match."""
        return [_parts(match) for match in self._found(text)]

    def last(self, text: str) -> str | None:
        match = self.last_match(text)
        return None if match is None else _parts(match)[0].text

    def last_match(self, text: str) -> Any:
        """The last `regex` match; None if there is none."""
        return next(iter(deque(self._found(text), maxlen=1)), None)

    def _found(self, text: str) -> Iterator[Any]:
        try:
            yield from self._compiled.finditer(text, timeout=TIMEOUT_SECONDS)
        except TimeoutError:
            raise PatternTimeout(
                f"the pattern {self.source!r} takes more than {TIMEOUT_SECONDS:g} seconds on a "
                f"text of {len(text)} characters; avoid repeats inside repeats"
            ) from None


def _parts(match: Any) -> tuple[Part, ...]:
    parts = [
        Part(text=str(text), start=match.start(number))
        for number, text in enumerate(match.groups(), 1)
        if text is not None
    ]
    return tuple(parts) or (Part(text=str(match.group(0)), start=match.start()),)


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """Compile a pattern; cached."""
    return Pattern(source)
