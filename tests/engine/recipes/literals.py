"""Which tests hold an algorithm to literal numbers, by what they do and not by what they say.

A test declares the algorithms whose numbers it has. What it holds is measured: the algorithm's own
advantages or loss are made one per cent larger, and the test has to fail. Where it does not, it
holds nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import pytest

from coloop.algorithms.recipes import RECIPES
from coloop.algorithms.recipes.protocol import LossOutput
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.spec.algorithms.registry import family_of

WRONG: Final = 1.01
METHODS: Final = {"advantage": "credit", "loss": "loss"}
"""By part of an algorithm, the method of its recipe."""

Test = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Literal:
    """A test of one algorithm, with what it is given."""

    algorithm: str
    test: Test
    given: tuple[str, ...] = ()
    golden: str = ""
    """The part whose numbers a framework's own function printed; empty: none."""

    def __str__(self) -> str:
        return "-".join((self.algorithm, self.test.__name__, *self.given))

    def holds(self, part: str, factor: float = WRONG) -> bool:
        """Whether it fails where that part of the algorithm is so many times what it is."""
        with scaled(self.algorithm, part, factor):
            try:
                self.test(*self.given)
            except AssertionError:
                return True
        return False


DECLARED: Final[list[Literal]] = []


def literal(*algorithms: str, golden: str = "") -> Callable[[Test], Test]:
    """Declares a test of literal numbers of these algorithms.

    Args:
        golden: `advantage` or `loss`, where the numbers are what a framework's function prints.
    """

    def declared(test: Test) -> Test:
        DECLARED.extend(Literal(one, test, golden=golden) for one in algorithms)
        return test

    return declared


def literals(
    names: Iterable[str], algorithm_of: Callable[[str], str] = str
) -> Callable[[Test], Test]:
    """Declares a test that takes one name of a table of literal numbers."""

    def declared(test: Test) -> Test:
        DECLARED.extend(Literal(family_of(algorithm_of(one)), test, (one,)) for one in names)
        return test

    return declared


def parts(algorithm: str) -> frozenset[str]:
    """What an algorithm has of its own."""
    return frozenset(
        part for part, method in METHODS.items() if hasattr(RECIPES[algorithm], method)
    )


@cache
def held(algorithm: str) -> frozenset[str]:
    """The parts of an algorithm that a declared test holds."""
    own = [one for one in DECLARED if one.algorithm == algorithm]
    return frozenset(part for part in parts(algorithm) if any(one.holds(part) for one in own))


@contextmanager
def scaled(algorithm: str, part: str, factor: float) -> Iterator[None]:
    """One part of one algorithm is so many times what it is; others of its recipe are not."""
    recipe, method = type(RECIPES[algorithm]), METHODS[part]
    true = getattr(recipe, method)

    def wrong(self: Any, *given: Any) -> Any:
        found = true(self, *given)
        return _times(found, factor) if self.name == algorithm else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe, method, wrong)
        yield


def _times(found: CreditBatch | LossOutput, factor: float) -> CreditBatch | LossOutput:
    if isinstance(found, LossOutput):
        return replace(found, total=found.total * factor)
    advantages = tuple(None if one is None else one * factor for one in found.advantages)
    return replace(found, advantages=advantages)
