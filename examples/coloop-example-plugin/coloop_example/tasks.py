"""The rows of the task `backwards`, and its checker."""

import string
from collections.abc import Mapping, Sequence
from typing import Any

from coloop.data.tasks.base import Part, Problem, Stratum, Task, decode, each_of, question
from coloop_example.records import BackwardsTask

LETTERS = string.ascii_lowercase


def _strata(parameters: BackwardsTask) -> Sequence[Stratum]:
    return [_stratum(length) for length in each_of(parameters.length)]


def _stratum(length: int) -> Stratum:
    def problem(index: int) -> Problem:
        word = "".join(LETTERS[place] for place in decode(index, [len(LETTERS)] * length))
        return question(word, f"{word}:", word[::-1])

    return Stratum(size=len(LETTERS) ** length, problem=problem)


def _check(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion is the word backwards."""
    return float(completion.strip() == columns["answer"])


BACKWARDS = Task(
    name="backwards",
    parameters=BackwardsTask,
    main=Part(strata=_strata),
    check=_check,
)
