"""Matrices of cases of which `make test` runs what differs most; the rest is `slow`."""

from collections.abc import Iterable
from typing import Any

import pytest

slow = pytest.mark.slow


def also(*values: Any, id: str | None = None) -> Any:
    """One more case of a matrix, left to `make test-slow`: what it would find, another of its
    cases or a smaller test finds as well, most of the time."""
    return pytest.param(*values, marks=slow, id=id)


def some(names: Iterable[Any], *, kept: Iterable[Any]) -> list[Any]:
    """Cases by name, in their order; those that are not kept are `slow`."""
    every, first = list(names), list(kept)
    assert set(first) <= set(every)
    return [name if name in first else also(name) for name in every]
