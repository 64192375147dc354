"""The tasks `arithmetic`, `calculator`, `two_halves` and `countdown`.

12+34=              46                  the digits in natural or reversed order
123+456+789=        <<123+456=579>><<579+789=1368>>#### 1368
27+38               65                  one agent writes the 6, another the 5
3 5 7 make 56:      (3+5)*7             each number once
"""

import itertools
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

from coloop.data.answers import in_tags, last_line, without_thousands
from coloop.data.expressions import NotArithmetic, read_expression
from coloop.data.tasks.base import (
    Part,
    Problem,
    Stratum,
    Task,
    answer_checker,
    decode,
    each_of,
    question,
    stable_hash,
    strata_over,
)
from coloop.spec.tasks import ArithmeticTask, CalculatorTask, CountdownTask, TwoHalvesTask

REVERSED_TASK: Final = "arithmetic?reverse"
"""Value of the column `task` for rows with reversed answers; the checker reads it."""


def number_bounds(digits: int) -> tuple[int, int]:
    """The smallest number with this many digits, and how many such numbers there are."""
    return (0, 10) if digits == 1 else (10 ** (digits - 1), 9 * 10 ** (digits - 1))


def _sums(parameters: ArithmeticTask) -> Sequence[Stratum]:
    return [
        _sum(parameters, digits, operations)
        for operands in each_of(parameters.operands)
        for digits in each_of(parameters.digits)
        for operations in itertools.product(
            dict.fromkeys(parameters.operations), repeat=operands - 1
        )
    ]


def _sum(parameters: ArithmeticTask, digits: int, operations: tuple[str, ...]) -> Stratum:
    least, count = number_bounds(digits)
    bases = [count] * (len(operations) + 1)

    def problem(index: int) -> Problem:
        numbers = [least + offset for offset in decode(index, bases)]
        signs = (*operations, "")
        expression = "".join(f"{a}{sign}" for a, sign in zip(numbers, signs, strict=True))
        answer = written(read_expression(expression).value.numerator, reverse=parameters.reverse)
        more = {"task": REVERSED_TASK} if parameters.reverse else {}
        return question(_key(numbers, operations), f"{expression}=", answer, **more)

    return Stratum(size=count ** len(bases), problem=problem)


def _key(numbers: Sequence[int], operations: tuple[str, ...]) -> str:
    """The key of a problem; sums and products have the same in any order."""
    alike = set(operations) in ({"+"}, {"*"})
    ordered = sorted(numbers) if alike else numbers
    return " ".join(map(str, itertools.chain(ordered, operations)))


def written(value: int, *, reverse: bool) -> str:
    """The digits of an answer, reversed on request; the sign stays in front."""
    digits = str(abs(value))
    return ("-" if value < 0 else "") + (digits[::-1] if reverse else digits)


QUESTION: Final = re.compile(r"([-+*/(). \d]+)=\s*$")


def _worked_out(columns: Mapping[str, Any]) -> str | None:
    prompt = QUESTION.search(str(columns.get("prompt", "")))
    if prompt is None:
        return None
    try:
        value = read_expression(prompt[1]).value
    except NotArithmetic:
        return None
    if value.denominator != 1:
        return None
    return written(value.numerator, reverse=columns.get("task") == REVERSED_TASK)


def _judged(parameters: ArithmeticTask) -> Sequence[Stratum]:
    """The problems of `_sums`, each with a right and with a wrong `completion` and its label."""
    return [Stratum(size=2 * inner.size, problem=_judge(inner)) for inner in _sums(parameters)]


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
    """The answer with one digit changed, deterministically by key."""
    rng = random.Random(stable_hash(key))
    index = rng.choice([index for index, symbol in enumerate(answer) if symbol.isdigit()])
    digit = rng.choice([d for d in "0123456789" if d != answer[index]])
    return answer[:index] + digit + answer[index + 1 :]


ARITHMETIC: Final = Task(
    name="arithmetic",
    parameters=ArithmeticTask,
    main=Part(strata=_sums),
    parts={"judged": Part(strata=_judged)},
    check=answer_checker(_worked_out),
)

TERMS: Final = (2, 3)


def _long_sums(parameters: CalculatorTask, *, as_code: bool = False) -> Sequence[Stratum]:
    return [
        _long_sum(digits, terms, as_code)
        for terms in TERMS
        for digits in each_of(parameters.digits)
    ]


def _long_sum(digits: int, terms: int, as_code: bool) -> Stratum:
    least, count = number_bounds(digits)

    def problem(index: int) -> Problem:
        numbers = [least + offset for offset in decode(index, [count] * terms)]
        expression = "+".join(map(str, numbers))
        answer = str(sum(numbers))
        target = _trace(expression, answer) if as_code else _with_calls(numbers)
        key = " ".join(map(str, sorted(numbers)))
        return question(key, f"{expression}=", answer, target=target)

    return Stratum(size=count**terms, problem=problem)


def _with_calls(numbers: Sequence[int]) -> str:
    """Each step as a calculator call with its result, then the answer."""
    total, calls = numbers[0], []
    for number in numbers[1:]:
        calls.append(f"<<{total}+{number}={total + number}>>")
        total += number
    return f"{''.join(calls)}#### {total}"


def _trace(expression: str, answer: str) -> str:
    return f"<code>print({expression})</code><out>{answer}</out>[{answer}]"


NUMBER: Final = re.compile(r"-?\d+")
TERMS_OF_SUM: Final = re.compile(r"\s*(\d+(?:\+\d+)+)=\s*")


def _added(columns: Mapping[str, Any]) -> str | None:
    prompt = TERMS_OF_SUM.fullmatch(str(columns.get("prompt", "")))
    return None if prompt is None else str(sum(map(int, prompt[1].split("+"))))


def _last_number_is(completion: str, gold: str) -> bool:
    return NUMBER.findall(without_thousands(completion))[-1:] == [gold]


CALCULATOR: Final = Task(
    name="calculator",
    parameters=CalculatorTask,
    main=Part(strata=_long_sums),
    parts={"traces": Part(strata=partial(_long_sums, as_code=True))},
    check=answer_checker(_added, _last_number_is),
)


def _halves(digits: int) -> Stratum:
    """Sums whose answer is zero-padded to an even number of digits and split in the middle."""
    least, count = number_bounds(digits)
    width = digits + digits % 2

    def problem(index: int) -> Problem | None:
        left, right = (least + offset for offset in decode(index, [count, count]))
        answer = str(left + right).zfill(width)
        if len(answer) > width:
            return None
        key = " ".join(map(str, sorted((left, right))))
        half = width // 2
        halves = {"first_half": answer[:half], "second_half": answer[half:]}
        return question(key, f"{left}+{right}", answer, **halves)

    return Stratum(size=count * count, problem=problem)


TWO_HALVES: Final = Task(
    name="two_halves",
    parameters=TwoHalvesTask,
    main=Part(strata=strata_over("digits", _halves)),
    check=answer_checker(),
)

GREATEST_GOAL: Final = 999


def _goals(parameters: CountdownTask) -> Sequence[Stratum]:
    return [
        _goal(parameters, operations)
        for count in each_of(parameters.numbers)
        for operations in itertools.product(dict.fromkeys(parameters.operations), repeat=count - 1)
    ]


def _goal(parameters: CountdownTask, operations: tuple[str, ...]) -> Stratum:
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
        key = f"{' '.join(map(str, sorted(numbers)))} > {goal}"
        prompt = f"{' '.join(map(str, shown))} make {goal}:"
        return question(key, prompt, text, numbers=shown, goal=goal)

    return Stratum(size=parameters.maximum**count * count**count, problem=problem)


def _shuffled(numbers: Sequence[int], picks: Sequence[int]) -> list[int]:
    left = list(numbers)
    return [left.pop(pick % len(left)) for pick in picks]


def _built(numbers: Sequence[int], operations: Sequence[str]) -> tuple[str, int] | None:
    """The expression, evaluated from left to right, and its value; None if an intermediate value is
    negative."""
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


GOAL: Final = re.compile(r"([\d ]+) make (\d+):")


def check_countdown(columns: Mapping[str, Any], completion: str) -> float | None:
    """1 if the expression uses every number once and equals the goal; `=goal` may follow."""
    asked = _question(columns)
    if asked is None:
        return None
    numbers, goal = asked
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
    prompt = GOAL.search(str(columns.get("prompt", "")))
    return None if prompt is None else ([*map(int, prompt[1].split())], int(prompt[2]))


COUNTDOWN: Final = Task(
    name="countdown",
    parameters=CountdownTask,
    main=Part(strata=_goals),
    check=check_countdown,
)
