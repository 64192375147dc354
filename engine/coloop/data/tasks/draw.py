"""Draws the rows of a split: a seeded walk through a part's numbered problems.

    numbers 0..n-1 of a stratum -- permuted by the seed -- problem(i) -- its split? -- new? -- row

The split of a problem depends on the task and the problem's key alone: a fifth of all is `test`.
Knows nothing of files or nodes. Same arguments, same rows, on every machine.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import Any, Final

from coloop.data.tasks.base import Part, Split, Stratum, TaskProblem
from coloop.spec import plugin_records as spec_tasks

TEST_SHARE: Final = 5
"""One key in this many belongs to the test split."""

DEFAULT_SIZE: Final[dict[str, int]] = {"train": 4096, "test": 1024}
"""Rows of a split where `size` is not given, or as many as exist."""

LARGEST_SIZE: Final = 1_000_000

ATTEMPTS_PER_ROW: Final = 2_000
"""Numbers looked at for each row before the search gives up."""


class TooFewProblems(TaskProblem):
    """`size` asks for more different problems than the split has."""


def stable_hash(text: str) -> int:
    """64 bits that depend on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def split_of(task: str, key: str) -> Split:
    """The split that a problem belongs to, for all time."""
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
    """Different rows of one split.

    With a `size` exactly as many, or TooFewProblems; without, up to DEFAULT_SIZE.
    """
    if size is not None and not 1 <= size <= LARGEST_SIZE:
        raise TaskProblem(f"size wants 1 to {LARGEST_SIZE:,}, found {size:,}", field="size")
    wanted = DEFAULT_SIZE[split] if size is None else size
    rows: list[dict[str, Any]] = []
    seen: set[int] = set()
    for columns in _candidates(task, part, parameters, split, seed, wanted):
        print_of_row = stable_hash(repr(sorted(columns.items())))
        if print_of_row in seen:
            continue
        seen.add(print_of_row)
        rows.append(columns)
        if len(rows) == wanted:
            return rows
    if size is None and rows:
        return rows
    raise TooFewProblems(
        f"task {task} has {len(rows):,} different rows in its {split} split with these parameters, "
        f"size asks for {wanted:,}; lower `size`, or widen the parameters",
        field="size",
    )


def _candidates(
    task: str, part: Part, parameters: spec_tasks.Task, split: Split, seed: int, wanted: int
) -> Iterator[dict[str, Any]]:
    rng = random.Random(stable_hash(f"{task}|{split}|{seed}"))
    strata = [stratum for stratum in part.strata(parameters) if stratum.size > 0]
    walks = [_walk(stratum, rng.getrandbits(64)) for stratum in strata]
    attempts = max(200_000, ATTEMPTS_PER_ROW * wanted)
    while walks and attempts > 0:
        place = rng.randrange(len(walks))
        for problem in walks[place]:
            attempts -= 1
            if problem is not None and (not part.is_split or split_of(task, problem.key) == split):
                yield {**problem.columns, "task": problem.columns.get("task", task)}
                break
            if attempts <= 0:
                break
        else:
            del walks[place]


def _walk(stratum: Stratum, key: int) -> Iterator[Any]:
    for position in range(stratum.size):
        yield stratum.problem(permuted(position, stratum.size, key))


def permuted(position: int, size: int, key: int) -> int:
    """Where a keyed permutation of 0..size-1 sends a position (a Feistel network)."""
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
