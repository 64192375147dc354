"""Two halves of one answer for two agents: `27+38` is 65; one writes the 6, the other the 5.

The agent of the first half needs the carry of the second. Answers have an even number of digits,
with a zero in front where needed, so that the halves are equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.tasks.arithmetic import number_bounds
from coloop.data.tasks.base import Part, Problem, Stratum, Task, decode, each_of
from coloop.spec.tasks import TwoHalvesTask


def _strata(parameters: TwoHalvesTask) -> Sequence[Stratum]:
    return [_stratum(digits) for digits in each_of(parameters.digits)]


def _stratum(digits: int) -> Stratum:
    least, count = number_bounds(digits)
    width = digits + digits % 2

    def problem(index: int) -> Problem | None:
        left, right = (least + place for place in decode(index, [count, count]))
        answer = str(left + right).zfill(width)
        if len(answer) > width:
            return None
        return Problem(
            key=" ".join(map(str, sorted((left, right)))),
            columns={
                "prompt": f"{left}+{right}",
                "answer": answer,
                "target": answer,
                "first_half": answer[: width // 2],
                "second_half": answer[width // 2 :],
            },
        )

    return Stratum(size=count * count, problem=problem)


def check_two_halves(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where both halves together are the answer."""
    gold = columns.get("answer")
    return float(says(completion, gold)) if isinstance(gold, str) else None


TWO_HALVES: Final = Task(
    name="two_halves",
    help="A sum whose answer is written by two agents, half of the digits each.",
    parameters=TwoHalvesTask,
    main=Part(
        help="A sum, its answer, and the answer's two halves.",
        columns=("prompt", "answer", "target", "first_half", "second_half"),
        strata=_strata,
    ),
    check=check_two_halves,
)
