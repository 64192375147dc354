"""Calculator: sums of several numbers whose steps a tool works out.

123+456+789=     <<123+456=579>><<579+789=1368>>#### 1368
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import without_thousands
from coloop.data.tasks.arithmetic import number_bounds
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    decode,
    each_of,
)
from coloop.spec.tasks import CalculatorTask

TERMS: Final = (2, 3)
"""How many numbers a sum has."""


def _strata(parameters: CalculatorTask, *, as_code: bool = False) -> Sequence[Stratum]:
    return [
        _stratum(digits, terms, as_code) for terms in TERMS for digits in each_of(parameters.digits)
    ]


def _trace_strata(parameters: CalculatorTask) -> Sequence[Stratum]:
    return _strata(parameters, as_code=True)


def _stratum(digits: int, terms: int, as_code: bool) -> Stratum:
    least, count = number_bounds(digits)

    def problem(index: int) -> Problem:
        numbers = [least + place for place in decode(index, [count] * terms)]
        question = "+".join(map(str, numbers))
        answer = str(sum(numbers))
        target = _trace(question, answer) if as_code else _worked(numbers)
        return Problem(
            key=" ".join(map(str, sorted(numbers))),
            columns={"prompt": f"{question}=", "answer": answer, "target": target},
        )

    return Stratum(size=count**terms, problem=problem)


def _worked(numbers: Sequence[int]) -> str:
    """Each step as a call of the calculator with its result, then the answer."""
    total, calls = numbers[0], []
    for number in numbers[1:]:
        calls.append(f"<<{total}+{number}={total + number}>>")
        total += number
    return f"{''.join(calls)}#### {total}"


def _trace(question: str, answer: str) -> str:
    return f"<code>print({question})</code><out>{answer}</out>[{answer}]"


NUMBER: Final = re.compile(r"-?\d+")


def check_calculator(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the last number of the completion is the sum."""
    gold = columns.get("answer")
    if not isinstance(gold, str):
        terms = re.fullmatch(r"\s*(\d+(?:\+\d+)+)=\s*", str(columns.get("prompt", "")))
        if terms is None:
            return None
        gold = str(sum(map(int, terms.group(1).split("+"))))
    numbers = NUMBER.findall(without_thousands(completion))
    return float(bool(numbers) and numbers[-1] == gold)


CALCULATOR: Final = Task(
    name="calculator",
    help="Sums of several numbers, worked out by calls of a calculator.",
    parameters=CalculatorTask,
    main=Part(
        help="A sum and its answer; the demonstration calls the calculator at each step.",
        columns=("prompt", "answer", "target"),
        strata=_strata,
    ),
    parts={
        "traces": Part(
            help="The same with a text to imitate that runs a line of Python.",
            columns=("prompt", "answer", "target"),
            strata=_trace_strata,
        )
    },
    check=check_calculator,
)
