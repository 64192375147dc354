"""The task `knights`: knights tell the truth, knaves lie; find out who is which.

    A: B is a knave. B: A and B are the same. A, B:        knave knight

Every puzzle has exactly one solution. Statements are tuples: ("is", person, is_knight),
("and" | "or", (person, is_knight), (person, is_knight)), ("same" | "differ", person, person).
"""

import itertools
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from coloop.data.answers import in_tags, last_line
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    answer_checker,
    decode,
    decode_selection,
    question,
    strata_over,
)
from coloop.spec.tasks import KnightsTask

NAMES: Final = tuple("ABCDEFGHIJKL")

Statement = tuple[Any, ...]


@lru_cache(maxsize=8)
def statements(speaker: int, people: int) -> tuple[Statement, ...]:
    """All statements that a speaker can make; simple ones (`is`) are about others."""
    pairs = list(itertools.combinations(range(people), 2))
    simple = [("is", p, v) for p in range(people) if p != speaker for v in (True, False)]
    both = [
        (joint, (p, v), (q, w))
        for joint in ("and", "or")
        for p, q in pairs
        for v, w in itertools.product((True, False), repeat=2)
    ]
    alike = [(word, p, q) for word in ("same", "differ") for p, q in pairs]
    return (*simple, *both, *alike)


def is_true(statement: Statement, kinds: Sequence[bool]) -> bool:
    match statement:
        case ("is", p, v):
            return bool(kinds[p] == v)
        case ("and", (p, v), (q, w)):
            return bool(kinds[p] == v and kinds[q] == w)
        case ("or", (p, v), (q, w)):
            return bool(kinds[p] == v or kinds[q] == w)
        case ("same", p, q):
            return bool(kinds[p] == kinds[q])
        case (_, p, q):
            return bool(kinds[p] != kinds[q])
    raise AssertionError(statement)


def solve(puzzle: Sequence[Statement]) -> tuple[bool, ...] | None:
    """The unique solution; None if there is none or more than one."""
    solution: tuple[bool, ...] | None = None
    for kinds in itertools.product((True, False), repeat=len(puzzle)):
        if all(is_true(statement, kinds) == kinds[p] for p, statement in enumerate(puzzle)):
            if solution is not None:
                return None
            solution = kinds
    return solution


def _stratum(people: int) -> Stratum:
    bases = [len(statements(person, people)) for person in range(people)]
    puzzles = math.prod(bases)

    def problem(index: int) -> Problem | None:
        names_index, puzzle_index = divmod(index, puzzles)
        spoken = enumerate(decode(puzzle_index, bases))
        puzzle = [statements(person, people)[number] for person, number in spoken]
        kinds = solve(puzzle)
        if kinds is None:
            return None
        names = decode_selection(names_index, NAMES, people)
        answer = " ".join("knight" if kind else "knave" for kind in kinds)
        return question(_canonical(puzzle), _prompt(puzzle, names), answer)

    return Stratum(size=puzzles * math.perm(len(NAMES), people), problem=problem)


def _prompt(puzzle: Sequence[Statement], names: Sequence[str]) -> str:
    spoken = zip(names, puzzle, strict=True)
    lines = " ".join(f"{name}: {_worded(statement, names)}." for name, statement in spoken)
    return f"{lines} {', '.join(names)}:"


def _worded(statement: Statement, names: Sequence[str]) -> str:
    match statement:
        case ("is", p, v):
            return _atom(names[p], v)
        case ("and" | "or" as joint, (p, v), (q, w)):
            return f"{_atom(names[p], v)} {joint} {_atom(names[q], w)}"
        case ("same", p, q):
            return f"{names[p]} and {names[q]} are the same"
        case (_, p, q):
            return f"{names[p]} and {names[q]} differ"
    raise AssertionError(statement)


def _atom(name: str, is_knight: bool) -> str:
    return f"{name} is a {'knight' if is_knight else 'knave'}"


def _canonical(puzzle: Sequence[Statement]) -> str:
    """A key that is equal for puzzles that differ only in the order of the people."""
    people = range(len(puzzle))
    return min(
        repr([_renamed(puzzle[old], new_of) for old in sorted(people, key=new_of.__getitem__)])
        for new_of in itertools.permutations(people)
    )


def _renamed(statement: Statement, new_of: Sequence[int]) -> Statement:
    match statement:
        case ("is", p, v):
            return ("is", new_of[p], v)
        case ("and" | "or" as joint, (p, v), (q, w)):
            return (joint, *sorted(((new_of[p], v), (new_of[q], w))))
        case (word, p, q):
            return (word, *sorted((new_of[p], new_of[q])))
    raise AssertionError(statement)


def _names_kinds(completion: str, gold: str) -> bool:
    """Whether the last `<answer>`, or without one the last line, names the kinds in order."""
    tagged = list(in_tags(completion, "answer"))
    answer = tagged[-1] if tagged else last_line(completion)
    return re.findall(r"[a-z]+", answer.lower()) == gold.split()


KNIGHTS: Final = Task(
    name="knights",
    parameters=KnightsTask,
    main=Part(strata=strata_over("people", _stratum)),
    check=answer_checker(agrees=_names_kinds),
)
