"""Regular expressions of the user, applied to text that a model wrote, with a deadline.

A pattern that backtracks without end on some completion would hold a whole run; here it ends in
PatternTimeout. Syntax is that of Python's `re` (the `regex` library's default behaviour).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import regex  # type: ignore[import-untyped]

from coloop.spec.regexes import why_too_large

TIMEOUT_SECONDS: Final = 2.0
"""Longest time for one pattern on one text."""
LONGEST_SHOWN: Final = 200


class PatternProblem(ValueError):
    """A pattern that is no regular expression."""


class PatternTimeout(ValueError):
    """A pattern that did not finish on a text in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a group of a pattern says of a text."""

    text: str
    start: int
    """Place in the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Where a pattern fits a text."""

    text: str
    end: int
    """Place after it."""
    groups: Mapping[str, str]
    """What its named groups say."""


class Pattern:
    """A compiled pattern whose every use has a deadline."""

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
        """Whether it matches somewhere."""
        try:
            return self._compiled.search(text, timeout=TIMEOUT_SECONDS) is not None
        except TimeoutError:
            raise self._late(text) from None

    def matches(self, text: str) -> list[str]:
        """What each match says: its first group that took part, or all of it."""
        try:
            return list(self._found(text))
        except TimeoutError:
            raise self._late(text) from None

    def parts(self, text: str) -> list[tuple[Part, ...]]:
        """Of each match the groups that took part, or all of it where there are none."""
        try:
            return [
                _parts(match) for match in self._compiled.finditer(text, timeout=TIMEOUT_SECONDS)
            ]
        except TimeoutError:
            raise self._late(text) from None

    def last(self, text: str) -> str | None:
        """What the last match says."""
        found = self.matches(text)
        return found[-1] if found else None

    def last_match(self, text: str) -> "Match | None":
        """The last match, with its named groups; those that took no part are empty."""
        try:
            matches = list(self._compiled.finditer(text, timeout=TIMEOUT_SECONDS))
        except TimeoutError:
            raise self._late(text) from None
        if not matches:
            return None
        found = matches[-1]
        groups = {name: value or "" for name, value in found.groupdict().items()}
        return Match(text=found.group(0), end=found.end(), groups=groups)

    def _found(self, text: str) -> Iterator[str]:
        for match in self._compiled.finditer(text, timeout=TIMEOUT_SECONDS):
            yield _said(match)

    def _late(self, text: str) -> PatternTimeout:
        return PatternTimeout(
            f"the pattern {self.source!r} takes more than {TIMEOUT_SECONDS:g} seconds on a text of "
            f"{len(text)} characters; avoid repeats inside repeats"
        )


def _parts(match: Any) -> tuple[Part, ...]:
    found = [
        Part(text=str(text), start=match.start(number))
        for number, text in enumerate(match.groups(), 1)
        if text is not None
    ]
    return tuple(found) or (Part(text=str(match.group(0)), start=match.start()),)


def _said(match: Any) -> str:
    groups = [group for group in match.groups() if group is not None]
    return str(groups[0]) if groups else str(match.group(0))


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """A pattern by its source, compiled once."""
    return Pattern(source)
