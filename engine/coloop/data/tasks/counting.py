"""Counting: how often a letter stands in a word. `a in abcabba:` is answered by `3`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    decode,
    each_of,
)
from coloop.spec.tasks import CountingTask

ALPHABET: Final = "abcd"
"""Few letters, so that most stand in a word several times."""


def _strata(parameters: CountingTask) -> Sequence[Stratum]:
    return [_stratum(length) for length in each_of(parameters.length)]


def _stratum(length: int) -> Stratum:
    bases = [len(ALPHABET)] * (length + 1)

    def problem(index: int) -> Problem:
        wanted, *places = (ALPHABET[place] for place in decode(index, bases))
        word = "".join(places)
        answer = str(word.count(wanted))
        columns = {"prompt": f"{wanted} in {word}:", "answer": answer, "target": answer}
        return Problem(key=word, columns=columns)

    return Stratum(size=len(ALPHABET) ** (length + 1), problem=problem)


QUESTION: Final = re.compile(r"(\w) in (\w+):")


def check_counting(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion is the count."""
    gold = columns.get("answer")
    if not isinstance(gold, str):
        found = QUESTION.search(str(columns.get("prompt", "")))
        if found is None:
            return None
        gold = str(found.group(2).count(found.group(1)))
    return float(says(completion, gold))


COUNTING: Final = Task(
    name="counting",
    help="Count a letter in a word.",
    parameters=CountingTask,
    main=Part(
        help="A letter, a word, and the number of times it occurs.",
        columns=("prompt", "answer", "target"),
        strata=_strata,
    ),
    check=check_counting,
)
