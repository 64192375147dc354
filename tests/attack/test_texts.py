"""Texts that a model may write, long and of odd shapes: every built-in reward and every task's
checker scores them soon, and none raises. Patterns of a loop that would become large are none."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from coloop.data.patterns import PatternProblem, pattern
from coloop.data.rewards.builtin import judge_of, score_builtin
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.tasks import TASKS, check_row, task_rows
from coloop.data.template import column_of
from coloop.spec.builtins import BuiltinSource
from coloop.spec.regexes import why_too_large
from coloop.spec.shaping import ParseJson, ParseTag
from coloop.validate.texts import compiled

pytestmark = pytest.mark.attack

SIZE = 60_000
"""Characters: more than most models write at once."""
SECONDS = 1.0
"""Of computing for one text. What takes the square of the length takes many."""

OPENINGS = (
    *("\\boxed{", "\\boxed", "\\frac{", "\\frac{1}{", "\\sqrt{", "\\text{", "\\text ", "\\", "{"),
    *("^{", "^ ", "^ {", "(", "[", "[{", '{"a":', '{"a": [', '"', '{"', "<think>", "<answer>"),
    *("<question>", "<a>", "</a>", "<a", "####", "=", "~", "$", "% ", "-", "+", "1+", "1,", "1 "),
    *("1/", "1 2/", "1 a ", "9", "0.", ".", "2(", "(1)", "pi", "9!", "9^", "×", "−", "\n", " "),
    *("\t\n", "A", "A ", "a ", "a, ", "step 1: right\n", "final: ", "\x00", "é", "\U0001f600"),
)
TEXTS = {
    **{repr(one): one * (SIZE // len(one)) for one in OPENINGS},
    "a step of many digits": f"step {'9' * SIZE}: right\nfinal: correct",
    "a power of many digits": f"\\boxed{{9^{{{'9' * 400}}}}}",
    "powers of powers": "\\boxed{9^{9^{9^{9^{9}}}}}",
    "a root of many digits": f"\\sqrt{{{'9' * 900}}}",
    "a small number": "\\boxed{1e-999999999}",
    "a large number": "1e999999999",
    "a sum without an end": "1 + " * (SIZE // 4) + "=",
    "spaces in the middle": f"^{' ' * SIZE}x",
    "a unit after spaces": f"1{' ' * SIZE}x1",
    "JSON that breaks at its end": f'{{"a": "{"x" * SIZE}',
    "deep JSON": "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "numbers of JSON": f'{{"a": {"9" * SIZE}}}',
}
OPTIONS: TypeAdapter[Any] = TypeAdapter(BuiltinSource)
SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
REWARDS: list[dict[str, Any]] = [
    {"name": "exact_match"},
    {"name": "math_equal"},
    {"name": "choice"},
    *(
        {"name": "format", "shape": shape, "graded": True}
        for shape in ("sum", "number", "boxed", "tags", "verdict_per_step", "question_tag")
    ),
    {"name": "regex", "pattern": "([0-9]+)", "scale": [0, 9]},
    {"name": "json_schema", "column": "schema"},
    {"name": "ngram_repetition"},
    {"name": "language"},
]


def slow(score: Callable[[str], object]) -> list[str]:
    """Names of the texts that take too long, twice: once it may be a collection of garbage."""

    def seconds(text: str) -> float:
        began = time.thread_time()
        score(text)
        return time.thread_time() - began

    return [
        name for name, text in TEXTS.items() if seconds(text) > SECONDS and seconds(text) > SECONDS
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize("options", REWARDS, ids=lambda one: one.get("shape") or one["name"])
def test_no_text_holds_a_builtin_reward(
    options: dict[str, Any], record_property: Callable[[str, object], None]
) -> None:
    source = OPTIONS.validate_python({"type": "builtin", **options})
    answer = "B" if options["name"] == "choice" else "46"
    columns = {"answer": answer, "schema": SCHEMA}
    judge = judge_of(source, "")

    def score(text: str) -> object:
        rows = [ScoringRow(columns={**columns, "completion": text})]
        return score_builtin(source, rows, node="", judge=judge)

    try:
        assert slow(score) == []
    finally:
        if judge is not None:
            judge.close()
    record_property("tried", len(TEXTS))


@pytest.mark.parametrize("task", sorted(TASKS.keys() - {"reasoning_gym"}))  # scored in a sandbox
def test_no_text_holds_the_checker_of_a_task(
    task: str, record_property: Callable[[str, object], None]
) -> None:
    row = task_rows(task, size=1)[0]

    assert slow(lambda text: check_row(row, text)) == []
    record_property("tried", len(TEXTS))


@pytest.mark.parametrize(
    "rule", [ParseJson(json="a", all=True), ParseTag(tag="a", all=True)], ids=["json", "tag"]
)
def test_no_text_holds_what_is_read_of_it(
    rule: ParseJson | ParseTag, record_property: Callable[[str, object], None]
) -> None:
    assert slow(lambda text: column_of(text, rule)) == []
    record_property("tried", len(TEXTS))


@pytest.mark.parametrize(
    "source",
    [
        "(?:ab){9999999}",
        "(?:(?:a{999}){999}){999}",
        "((((((((((a{5}){5}){5}){5}){5}){5}){5}){5}){5}){5})",
        "(?:a|b){99999999,}",
        "(?:a{1000}b){1000,2000}",
        "(?x)(?:a{1000}) {1000} {1000}",
        "(?x)(?:a{1000})#[\n{9999}",
        "(?#[)(?:a{1000}){1000}(?#])",
        "(?:[)]a{1000}){1000}{9}",
        "(" * 3000 + ")" * 3000,
        "a{" + "9" * 5000 + "}",
    ],
    ids=lambda one: one[:30],
)
def test_a_pattern_that_would_become_large_is_refused(source: str) -> None:
    with pytest.raises(PatternProblem):
        pattern(source)
    assert why_too_large(source) or isinstance(compiled(source), str)


@pytest.mark.parametrize(
    "source",
    [
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        r".{100}.{100}.{100}",
        r"(?:\S+\s+){0,10000}",
        r"(?:step \d{1,4}: (right|wrong)\n){5,50}",
    ],
)
def test_a_pattern_that_counts_is_read(source: str) -> None:
    pattern(source)
    assert why_too_large(source) is None
    assert isinstance(compiled(source), re.Pattern)
