"""Arithmetic: `12+34=` is answered by `46`, the digits written in natural or reversed order."""

import itertools
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from coloop.data.answers import says
from coloop.data.expressions import NotArithmetic, read_expression
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    decode,
    each_of,
    stable_hash,
)
from coloop.spec.tasks import ArithmeticTask

REVERSED_TASK: Final = "arithmetic?reverse"
"""What the column `task` says where answers have reversed digits, so that the checker knows it."""


def number_bounds(digits: int) -> tuple[int, int]:
    """Least number of so many digits, and how many there are; 0 counts as having one digit."""
    return (0, 10) if digits == 1 else (10 ** (digits - 1), 9 * 10 ** (digits - 1))


def _strata(parameters: ArithmeticTask) -> Sequence[Stratum]:
    return [
        _stratum(parameters, digits, operations)
        for operands in each_of(parameters.operands)
        for digits in each_of(parameters.digits)
        for operations in itertools.product(
            dict.fromkeys(parameters.operations), repeat=operands - 1
        )
    ]


def _sequences(operations: Sequence[str], length: int) -> Iterable[tuple[str, ...]]:
    return itertools.product(dict.fromkeys(operations), repeat=length)


def _stratum(parameters: ArithmeticTask, digits: int, operations: tuple[str, ...]) -> Stratum:
    least, count = number_bounds(digits)
    bases = [count] * (len(operations) + 1)

    def problem(index: int) -> Problem:
        numbers = [least + place for place in decode(index, bases)]
        question = "".join(
            f"{number}{operation}"
            for number, operation in zip(numbers, (*operations, "="), strict=True)
        )
        answer = written(read_expression(question[:-1]).value.numerator, reverse=parameters.reverse)
        columns = {"prompt": question, "answer": answer, "target": answer}
        if parameters.reverse:
            columns["task"] = REVERSED_TASK
        return Problem(key=_key(numbers, operations), columns=columns)

    return Stratum(size=count ** len(bases), problem=problem)


def _key(numbers: Sequence[int], operations: tuple[str, ...]) -> str:
    """Sums and products in any order are one problem."""
    alike = set(operations) in ({"+"}, {"*"})
    ordered = sorted(numbers) if alike else numbers
    return " ".join(map(str, itertools.chain(ordered, operations)))


def written(value: int, *, reverse: bool) -> str:
    """An answer's digits, least significant first where asked; the sign stays in front."""
    digits = str(abs(value))
    return ("-" if value < 0 else "") + (digits[::-1] if reverse else digits)


QUESTION: Final = re.compile(r"([-+*/(). \d]+)=\s*$")


def check_arithmetic(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 where the completion is the answer; a question that a model made up is worked out."""
    gold = columns.get("answer")
    if not isinstance(gold, str):
        gold = _worked_out(str(columns.get("prompt", "")), str(columns.get("task", "")))
    return None if gold is None else float(says(completion, gold))


def _worked_out(prompt: str, task: str) -> str | None:
    question = QUESTION.search(prompt)
    if question is None:
        return None
    try:
        value = read_expression(question.group(1)).value
    except NotArithmetic:
        return None
    if value.denominator != 1:
        return None
    return written(value.numerator, reverse=task == REVERSED_TASK)


def _judged_strata(parameters: ArithmeticTask) -> Sequence[Stratum]:
    """The same problems with a right or a wrong answer and the truth about it."""
    return [Stratum(size=2 * inner.size, problem=_judge(inner)) for inner in _strata(parameters)]


def _judge(inner: Stratum) -> Any:
    def problem(index: int) -> Problem | None:
        plain = inner.problem(index // 2)
        if plain is None:
            return None
        label = index % 2
        answer = str(plain.columns["answer"])
        completion = answer if label else corrupted(answer, plain.key)
        columns = {**plain.columns, "completion": completion, "label": label}
        return Problem(key=plain.key, columns=columns)

    return problem


def corrupted(answer: str, key: str) -> str:
    """The answer with one digit changed, always the same for a key."""
    rng = random.Random(stable_hash(key))
    places = [place for place, symbol in enumerate(answer) if symbol.isdigit()]
    place = rng.choice(places)
    digit = rng.choice([d for d in "0123456789" if d != answer[place]])
    return answer[:place] + digit + answer[place + 1 :]


ARITHMETIC: Final = Task(
    name="arithmetic",
    help="Sums, differences and products of whole numbers: 12+34= is answered by 46.",
    parameters=ArithmeticTask,
    main=Part(
        help="A question, its answer, and both as a demonstration.",
        columns=("prompt", "answer", "target"),
        strata=_strata,
    ),
    parts={
        "judged": Part(
            help="A question with a completion, half of them wrong by one digit; label is 1 or 0.",
            columns=("prompt", "answer", "target", "completion", "label"),
            strata=_judged_strata,
        )
    },
    check=check_arithmetic,
)
