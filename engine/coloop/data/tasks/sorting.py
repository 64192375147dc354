"""Sorting: `sort 5 2 9:` is answered by `2 5 9`; of letters likewise."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.tasks.base import Part, Problem, Stratum, Task, decode, each_of
from coloop.spec.tasks import SortingTask

SYMBOLS: Final[Mapping[str, str]] = {
    "digits": "0123456789",
    "letters": "abcdefghijklmnopqrstuvwxyz",
}


def _strata(parameters: SortingTask) -> Sequence[Stratum]:
    return [_stratum(length, SYMBOLS[parameters.symbols]) for length in each_of(parameters.length)]


def _stratum(length: int, symbols: str) -> Stratum:
    def problem(index: int) -> Problem:
        shown = [symbols[place] for place in decode(index, [len(symbols)] * length)]
        answer = " ".join(sorted(shown))
        columns = {"prompt": f"sort {' '.join(shown)}:", "answer": answer, "target": answer}
        return Problem(key=answer, columns=columns)

    return Stratum(size=len(symbols) ** length, problem=problem)


QUESTION: Final = re.compile(r"sort ([a-z\d ]+):")


def check_sorting(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion lists the symbols in order."""
    gold = columns.get("answer")
    if not isinstance(gold, str):
        found = QUESTION.search(str(columns.get("prompt", "")))
        if found is None:
            return None
        gold = " ".join(sorted(found.group(1).split()))
    return float(says(completion, gold))


SORTING: Final = Task(
    name="sorting",
    help="Put digits or letters in order.",
    parameters=SortingTask,
    main=Part(
        help="Some symbols and the same in order.",
        columns=("prompt", "answer", "target"),
        strata=_strata,
    ),
    check=check_sorting,
)
