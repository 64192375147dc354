"""What a procedural task is: numbered problems, and a checker for answers to them.

A part of a task numbers its problems from 0: `Stratum.problem(i)` builds problem i, or says None
where the number stands for no valid problem. Drawing (draw.py) walks these numbers in a seeded
order; so nothing is generated twice, and the size of a split is known. The parameters themselves
are defined by the loop language (`coloop.spec.tasks`).

Invariants:
- `Problem.key` names the problem itself, whatever the wording, the seed or the parameters. The
  split is a function of the key alone: no two datasets of one task share a problem across splits.
- Every text is printable ASCII plus newline: a character tokenizer can read it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from coloop.spec import plugin_records as spec_tasks

Split = Literal["train", "test"]

Checker = Callable[[Mapping[str, Any], str], float | None]
"""Grade of a completion for a row: 1 right, 0 wrong, between for graded tasks, None: cannot say."""

StepChecker = Callable[[Mapping[str, Any], Sequence[str]], list[float | None]]
"""Grades of a completion's steps, one each."""


class TaskProblem(ValueError):
    """A task, part or parameter that does not exist or does not fit; `field` names it."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


def each_of(value: int | tuple[int, int]) -> range:
    """The whole numbers that a range parameter stands for, both ends included."""
    first, last = (value, value) if isinstance(value, int) else value
    return range(first, last + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem, and the columns of its row."""

    key: str
    """The problem itself in a canonical form: reordered sums have one key."""
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Problems of one difficulty, numbered. Rows are drawn from all strata of a part alike."""

    size: int
    problem: Callable[[int], Problem | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One table of a task."""

    help: str
    columns: tuple[str, ...]
    """Every row has exactly these, and `task`."""
    strata: Callable[[Any], Sequence[Stratum]]
    is_split: bool = True
    """False for tables that belong to both splits (documents)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of the library."""

    name: str
    help: str
    parameters: type[spec_tasks.Task]
    """The section of the loop language that names its parameters."""
    main: Part
    check: Checker
    parts: Mapping[str, Part] = field(default_factory=dict)
    """Further tables, by the name that `part` takes."""
    check_steps: StepChecker | None = None


def decode(index: int, bases: Sequence[int]) -> list[int]:
    """Digits of a number in mixed bases, least significant first; a bijection."""
    digits = []
    for base in bases:
        index, digit = divmod(index, base)
        digits.append(digit)
    return digits


def decode_selection(index: int, pool: Sequence[Any], count: int) -> list[Any]:
    """The index-th ordered selection of `count` different things out of a pool."""
    left = list(pool)
    chosen = []
    for _ in range(count):
        index, place = divmod(index, len(left))
        chosen.append(left.pop(place))
    return chosen


def count_selections(pool: int, count: int) -> int:
    """How many ordered selections there are."""
    total = 1
    for used in range(count):
        total *= pool - used
    return total
