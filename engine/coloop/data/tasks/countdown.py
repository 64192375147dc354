"""Countdown: reach a goal from given numbers, each used once: `3 5 7 make 56:` by `(3+5)*7`."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from coloop.data.answers import in_tags, last_line
from coloop.data.expressions import NotArithmetic, read_expression
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    decode,
    each_of,
)
from coloop.spec.tasks import CountdownTask

GREATEST_GOAL: Final = 999


def _strata(parameters: CountdownTask) -> Sequence[Stratum]:
    return [
        _stratum(parameters, operations)
        for count in each_of(parameters.numbers)
        for operations in itertools.product(dict.fromkeys(parameters.operations), repeat=count - 1)
    ]


def _stratum(parameters: CountdownTask, operations: tuple[str, ...]) -> Stratum:
    count = len(operations) + 1
    bases = [parameters.maximum] * count + [count] * count

    def problem(index: int) -> Problem | None:
        digits = decode(index, bases)
        numbers = [digit + 1 for digit in digits[:count]]
        built = _built(numbers, operations)
        if built is None:
            return None
        text, goal = built
        if not 1 <= goal <= GREATEST_GOAL:
            return None
        shown = _shuffled(numbers, digits[count:])
        return Problem(
            key=f"{' '.join(map(str, sorted(numbers)))} > {goal}",
            columns={
                "prompt": f"{' '.join(map(str, shown))} make {goal}:",
                "answer": text,
                "target": text,
                "numbers": shown,
                "goal": goal,
            },
        )

    return Stratum(size=parameters.maximum**count * count**count, problem=problem)


def _shuffled(numbers: Sequence[int], places: Sequence[int]) -> list[int]:
    left = list(numbers)
    return [left.pop(place % len(left)) for place in places]


def _built(numbers: Sequence[int], operations: Sequence[str]) -> tuple[str, int] | None:
    """The expression that folds the numbers from the left, and its value where it stays whole."""
    text, value, is_sum = str(numbers[0]), numbers[0], False
    for number, operation in zip(numbers[1:], operations, strict=True):
        if operation == "*" and is_sum:
            text = f"({text})"
        match operation:
            case "+":
                value += number
            case "-":
                value -= number
            case _:
                value *= number
        if value < 0:
            return None
        text, is_sum = f"{text}{operation}{number}", operation in "+-"
    return text, value


QUESTION: Final = re.compile(r"([\d ]+) make (\d+):")


def check_countdown(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the expression uses every number once and gives the goal; `=goal` may follow."""
    question = _question(columns)
    if question is None:
        return None
    numbers, goal = question
    tagged = list(in_tags(completion, "answer"))
    left, equals, right = last_line(tagged[-1] if tagged else completion).partition("=")
    if equals and right.strip() != str(goal):
        return 0.0
    try:
        read = read_expression(left)
    except NotArithmetic:
        return 0.0
    is_right = read.value == goal and Counter(read.numbers) == Counter(map(Fraction, numbers))
    return float(is_right)


def _question(columns: Mapping[str, Any]) -> tuple[list[int], int] | None:
    numbers, goal = columns.get("numbers"), columns.get("goal")
    if isinstance(numbers, list) and isinstance(goal, int):
        return numbers, goal
    found = QUESTION.search(str(columns.get("prompt", "")))
    if found is None:
        return None
    return [int(number) for number in found.group(1).split()], int(found.group(2))


COUNTDOWN: Final = Task(
    name="countdown",
    help="Reach a target from given numbers with + - * /, using each number once.",
    parameters=CountdownTask,
    main=Part(
        help="The numbers and the goal, with one expression that reaches it.",
        columns=("prompt", "answer", "target", "numbers", "goal"),
        strata=_strata,
    ),
    check=check_countdown,
)
