"""Matrices of cases of which `make test` runs what differs most; the rest is `slow`.

Where all cases of a test are alike, `@pytest.mark.sample(count)` runs so many of them, spread over
all.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def also(*values: Any, id: str | None = None) -> Any:
    """One more case of a matrix, left to `make test-slow`: what it would find, another of its
    cases or a smaller test finds as well, most of the time."""
    return pytest.param(*values, marks=pytest.mark.slow, id=id)


def some(names: Iterable[Any], *, kept: Iterable[Any]) -> list[Any]:
    """Cases by name, in their order; those that are not kept are `slow`."""
    every, first = list(names), list(kept)
    assert set(first) <= set(every)
    return [name if name in first else also(name) for name in every]


def halved(every: Sequence[Any], *, first: int) -> list[Any]:
    """Each second case of a sweep; the others are `slow`.

    Args:
        first: place of the first that is not; sweeps that begin elsewhere see the others.
    """
    return some(every, kept=every[first::2])
