"""Procedural tasks: numbered problems, and a checker for answers to them.

Problems are numbered from 0: `Stratum.problem(i)` builds problem i, or returns None if there is no
valid problem of that number. `draw_rows` goes through the numbers in a seeded order, so it uses
none twice. The parameters of tasks are defined in `coloop.spec.tasks`.

Invariants:
- `Problem.key` identifies a problem, whatever its wording, seed or parameters. The split depends on
  task and key alone, so datasets of one task share no problem across splits.
- Texts are printable ASCII and newlines, which the character tokenizer can encode.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal

from coloop.data.answers import says
from coloop.spec import plugins as spec_tasks

Split = Literal["train", "test"]

Checker = Callable[[Mapping[str, Any], str], float | None]
"""Called with a row's columns and a completion; returns 1 for right, 0 for wrong, values in between
for graded tasks, None if the row has no checkable problem."""

StepChecker = Callable[[Mapping[str, Any], Sequence[str]], list[float | None]]
"""As `Checker`, for the steps of a completion; one grade per step."""


class TaskProblem(ValueError):
    """A task, part or parameter that does not exist or does not fit; `field` names it."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


def each_of(value: int | tuple[int, int]) -> range:
    """The integers of a range parameter, both ends included; a single number stands for itself."""
    first, last = (value, value) if isinstance(value, int) else value
    return range(first, last + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    key: str
    """Equal for equal problems, see above."""
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Numbered problems of one difficulty. Each stratum of a part is drawn from with equal
    probability."""

    size: int
    problem: Callable[[int], Problem | None]


def question(key: str, prompt: str, answer: str, **more: Any) -> Problem:
    """A problem with an answer, which is also its `target`; `more`: further columns, or another
    `target`."""
    columns = {"prompt": prompt, "answer": answer, "target": answer, **more}
    return Problem(key=key, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A table of a task. Every row has the columns that `spec.tasks.TASK_COLUMNS` names."""

    strata: Callable[[Any], Sequence[Stratum]]
    is_split: bool = True
    """False for tables that belong to both splits (documents)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    name: str
    parameters: type[spec_tasks.Task]
    main: Part
    check: Checker
    parts: Mapping[str, Part] = field(default_factory=dict)
    check_steps: StepChecker | None = None


def strata_over(
    parameter: str, make: Callable[[int], Stratum]
) -> Callable[[spec_tasks.Task], Sequence[Stratum]]:
    """One stratum per value of a range parameter."""
    return lambda parameters: [make(number) for number in each_of(getattr(parameters, parameter))]


def answer_checker(
    work_out: Callable[[Mapping[str, Any]], str | None] = lambda columns: None,
    agrees: Callable[[str, str], bool] = says,
) -> Checker:
    """A checker that returns 1 if the completion gives the answer of its row, else 0.

    Args:
        work_out: computes the answer for a row without one, such as a prompt that a model wrote;
            None if it is not a problem of the task.
        agrees: whether a completion (first) gives an answer (second).
    """

    def check(columns: Mapping[str, Any], completion: str) -> float | None:
        gold = columns.get("answer")
        if not isinstance(gold, str):
            gold = work_out(columns)
        return None if gold is None else float(agrees(completion, gold))

    return check


def decode(index: int, bases: Sequence[int]) -> list[int]:
    """Digits of an index in mixed bases, least significant first."""
    digits = []
    for base in bases:
        index, digit = divmod(index, base)
        digits.append(digit)
    return digits


def decode_selection(index: int, pool: Sequence[Any], count: int) -> list[Any]:
    """The index-th ordered selection of `count` distinct items of a pool."""
    left = list(pool)
    chosen = []
    for _ in range(count):
        index, position = divmod(index, len(left))
        chosen.append(left.pop(position))
    return chosen


# Draws the rows of a split, by a seeded permutation of the problem numbers.
#
#     numbers 0..n-1 of a stratum -- permuted by the seed -- problem(i) -- its split? -- new? -- row
#
# The split of a problem depends on task and key only; a fifth of all problems is `test`. The same
# arguments give the same rows on every machine.

TEST_SHARE: Final = 5
"""One in this many problems belongs to the test split."""

DEFAULT_SIZE: Final[dict[str, int]] = {"train": 4096, "test": 1024}
"""Maximum rows of a split without `size`."""

LARGEST_SIZE: Final = 1_000_000

ATTEMPTS_PER_ROW: Final = 2_000
"""Problem numbers tried per row before the search gives up."""

ATTEMPTS_PER_FIRST_ROW: Final = 6
"""The same where a few rows are wanted quickly."""


class TooFewProblems(TaskProblem):
    """`size` exceeds the number of distinct problems in the split."""


def stable_hash(text: str) -> int:
    """A 64-bit hash of the text, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def split_of(task: str, key: str) -> Split:
    """The split of a problem by its key."""
    return "test" if stable_hash(f"{task}|{key}") % TEST_SHARE == 0 else "train"


def draw_rows(
    task: str,
    part: Part,
    parameters: spec_tasks.Task,
    *,
    split: Split,
    size: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Distinct rows of one split: exactly `size`, or with None up to DEFAULT_SIZE. Raises
    TooFewProblems if there are fewer than `size`, or none."""
    if size is not None and not 1 <= size <= LARGEST_SIZE:
        raise TaskProblem(f"size must be from 1 to {LARGEST_SIZE:,}, found {size:,}", field="size")
    wanted = DEFAULT_SIZE[split] if size is None else size
    attempts = max(200_000, ATTEMPTS_PER_ROW * wanted)
    rows = list(islice(_distinct(task, part, parameters, split, seed, attempts), wanted))
    if len(rows) == wanted or (size is None and rows):
        return rows
    raise TooFewProblems(
        f"task {task} has {len(rows):,} different rows in its {split} split with these parameters, "
        f"but size is {wanted:,}; lower `size`, or widen the parameters",
        field="size",
    )


def first_rows(
    task: str, part: Part, parameters: spec_tasks.Task, *, split: Split, most: int, seed: int = 0
) -> list[dict[str, Any]]:
    """The first of these rows, at most `most`; fewer if there are not more, or if valid problems
    are rare."""
    attempts = ATTEMPTS_PER_FIRST_ROW * most
    return list(islice(_distinct(task, part, parameters, split, seed, attempts), most))


def _distinct(
    task: str, part: Part, parameters: spec_tasks.Task, split: Split, seed: int, attempts: int
) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    for columns in _candidates(task, part, parameters, split, seed, attempts):
        print_of_row = stable_hash(repr(sorted(columns.items())))
        if print_of_row not in seen:
            seen.add(print_of_row)
            yield columns


def _candidates(
    task: str, part: Part, parameters: spec_tasks.Task, split: Split, seed: int, attempts: int
) -> Iterator[dict[str, Any]]:
    rng = random.Random(stable_hash(f"{task}|{split}|{seed}"))
    strata = [stratum for stratum in part.strata(parameters) if stratum.size > 0]
    walks = [_walk(stratum, rng.getrandbits(64)) for stratum in strata]
    while walks and attempts > 0:
        chosen = rng.randrange(len(walks))
        for problem in walks[chosen]:
            attempts -= 1
            if problem is not None and (not part.is_split or split_of(task, problem.key) == split):
                yield {**problem.columns, "task": problem.columns.get("task", task)}
                break
            if attempts <= 0:
                break
        else:
            del walks[chosen]


def _walk(stratum: Stratum, key: int) -> Iterator[Any]:
    for position in range(stratum.size):
        yield stratum.problem(permuted(position, stratum.size, key))


def permuted(position: int, size: int, key: int) -> int:
    """The image of a position under a keyed permutation of 0..size-1, a Feistel network."""
    half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    value = position
    while True:
        left, right = value >> half, value & mask
        for turn in range(4):
            left, right = right, left ^ (_mixed(right + (turn << 40), key) & mask)
        value = (left << half) | right
        if value < size:
            return value


def _mixed(value: int, key: int) -> int:
    """SplitMix64 of a value under a key."""
    mixed = (value + key + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return mixed ^ (mixed >> 31)
