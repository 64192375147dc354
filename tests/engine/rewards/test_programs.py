"""Code by tests: programs run apart, and cannot say themselves what is right."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from coloop.data.rewards.builtin import score_builtin
from coloop.data.rewards.program_tests import program_of, read_tests, wanted_by
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.tables import Score
from coloop.errors import DataError
from coloop.spec.builtins import BuiltinSource

ADD = "def add(a, b):\n    return a + b\n"
SUM = ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]


CHECK = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(0, 0) == 0\n"


def judged(rows: list[dict[str, Any]], *, on_error: Any = "stop", **options: Any) -> Any:
    source: Any = TypeAdapter(BuiltinSource).validate_python(
        {"type": "builtin", "name": "code_tests", **options}
    )
    given = [ScoringRow(columns=row) for row in rows]
    return score_builtin(source, given, node="mine", on_error=on_error)


def scored(rows: list[tuple[str, Any]], *, on_error: Any = "stop", **options: Any) -> list[Score]:
    given = [{"completion": text, "tests": tests} for text, tests in rows]
    return judged(given, on_error=on_error, **options).scores


def test_programs_pass_or_fail_their_tests() -> None:
    rows: list[tuple[str, Any]] = [
        (ADD, SUM),
        (f"Here it is:\n```python\n{ADD}```\nIt adds.", SUM),
        (ADD.replace("+", "-"), SUM),
        ("def add(a, b) return", SUM),
        ("no code", SUM),
        ("", SUM),
        ("def add(a, b):\n    return 3\n", SUM),
        (ADD, "assert add(1, 2) == 3\nassert add([1], [2]) == [1, 2]"),
        (ADD, ["x = add(1, 2)\nassert x > 2"]),
        (ADD, ["x = add(1, 2)\nassert x > 3"]),
        ("a, b = map(int, input().split())\nprint(a + b)", [{"input": "1 2", "output": "3\n"}]),
        ("print(4)", [{"input": "1 2", "output": "3\n"}]),
        (ADD, None),
    ]

    expected = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, None]
    assert scored(rows) == expected


def test_a_column_that_holds_json_is_read_as_what_it_says() -> None:
    add, wrong = ADD, ADD.replace("+", "-")
    reads = "a, b = map(int, input().split())\nprint(a + b)"
    rows: list[tuple[str, Any]] = [
        (add, '["assert add(1, 2) == 3"]'),
        (wrong, '["assert add(1, 2) == 3"]'),
        ("garbage = 1", '["assert add(1, 2) == 3"]'),
        (reads, '[{"input": "1 2", "output": "3"}]'),
        ("garbage = 1", '[{"input": "1 2", "output": "3"}]'),
        (reads, '{"input": "1 2", "output": "3"}'),
        (reads, ['{"input": "1 2", "output": "4"}']),
        (add, '"assert add(1, 2) == 3"'),
    ]

    assert scored(rows) == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]


def test_a_comparison_that_stands_alone_is_tested() -> None:
    rows: list[tuple[str, Any]] = [
        (ADD, ["add(1, 2) == 3"]),
        (ADD, ["add(1, 2) == 4"]),
        (ADD, ["x = add(1, 2)\nx > 3"]),
        (ADD, ["not add(1, 2)"]),
    ]

    assert scored(rows) == [1.0, 0.0, 0.0, 0.0]


def test_a_check_is_called_with_what_the_row_says_or_the_only_function() -> None:
    helped = "def plus(a, b):\n    return a + b\ndef add(a, b):\n    return plus(a, b)\n"
    row = {"tests": CHECK, "entry_point": "add"}
    method = "class Sums:\n    def add(self, a, b):\n        return a + b\n"
    rows: list[dict[str, Any]] = [
        {**row, "completion": ADD},
        {**row, "completion": ADD.replace("+", "-")},
        {**row, "completion": helped},
        {**row, "completion": method, "entry_point": "Sums().add"},
        {**row, "completion": "garbage = 1"},
        {"tests": CHECK, "completion": ADD.replace("add", "anything")},
        {"tests": CHECK, "completion": ADD.replace("+", "*")},
        {"tests": CHECK, "completion": "garbage = 1"},
        {"tests": CHECK + "check(add)", "completion": ADD},
        {"tests": CHECK + "check(add)", "completion": ADD.replace("+", "-")},
    ]

    expected = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    assert judged(rows).scores == expected
    with pytest.raises(DataError, match="mine, row 0: column `entry_point` must be the name"):
        judged([{**rows[0], "entry_point": "add("}])


def test_a_check_of_one_of_several_functions_is_told_and_ends_no_run() -> None:
    several = f"{ADD}def twice(a):\n    return add(a, a)\n"

    found = judged([{"tests": CHECK, "completion": several}])

    assert found.scores == [None]
    assert "add a column `entry_point`" in found.failures[0].message


def test_a_graded_program_earns_the_share_of_its_tests() -> None:
    assert scored([("def add(a, b):\n    return 3\n", SUM)], graded=True) == [0.5]


def test_a_program_that_cheats_passes_no_test_whose_answer_it_cannot_read() -> None:
    always_equal = (
        "class Same:\n    def __eq__(self, other):\n        return True\n"
        "def add(a, b):\n    return Same()\n"
    )
    ends = "import os, sys\ndef add(a, b):\n    os._exit(0)\n"
    looks = (
        "import sys\ndef add(a, b):\n    frame = sys._getframe(1)\n    return next((value for "
        "value in frame.f_globals.values() if value == 3), None)\n"
    )
    exits = "raise SystemExit(0)"

    assert scored([(text, SUM[:1]) for text in (always_equal, ends, looks, exits)]) == [0.0] * 4


@pytest.mark.slow
def test_a_program_that_never_ends_or_takes_all_memory_fails_alone() -> None:
    endless = "def add(a, b):\n    while True: pass\n"
    sleeping = "import time\ndef add(a, b):\n    time.sleep(1000)\n"
    large = "def add(a, b):\n    return len(bytearray(10**10))\n"
    rows: list[tuple[str, Any]] = [(text, SUM) for text in (endless, sleeping, large, ADD)]

    # A loop is stopped by its computing time, a sleeper by the clock: four times as long.
    assert scored(rows, timeout_seconds=0.4, memory_mib=256)[:3] == [0.0, 0.0, 0.0]
    assert scored(rows[-1:]) == [1.0]


def test_what_one_test_leaves_behind_helps_no_other() -> None:
    counting = "n = 0\ndef add(a, b):\n    global n\n    n += 1\n    return n + 2\n"

    assert scored([(counting, ["assert add(1, 2) == 3", "assert add(1, 2) == 4"])]) == [0.0]


@pytest.mark.parametrize(
    ("tests", "what"),
    [
        ([], "must be a list of tests"),
        (3, "must be a list of tests"),
        ([3], "has `input` and `output`"),
        ([{"input": "1"}], "has `input` and `output`"),
        (["assert add(1"], "is not valid Python"),
        (["assert " + "-" * 100_000 + "1"], "is nested too deeply"),
        ([f"assert add({'+'.join(['1'] * 900)}, 1) == 901"], "is nested too deeply"),
        (["# nothing"], "is empty"),
        ("[]", "must be a list of tests"),
        ("3", "passes whatever the program does"),
        (["assert True, add(1, 2)"], "passes whatever the program does"),
        (["print(3)"], "passes whatever the program does"),
        (["import math", "x = 3"], "passes whatever the program does"),
        (["import math"], "passes whatever the program does"),
        (["assert True, 'x'"], "passes whatever the program does"),
        (["assert 1 == 1"], "passes whatever the program does"),
        (["def test_add():\n    assert add(1, 2) == 3"], "passes whatever the program does"),
        (["def check(a, b):\n    assert a == b"], "passes whatever the program does"),
        ("def check(candidate):\n    print(1)", "passes whatever the program does"),
        (["assert (add(1, 2) == 5, 'bad')"], "a tuple is true"),
    ],
)
def test_tests_that_are_none_are_told(tests: Any, what: str) -> None:
    with pytest.raises(DataError, match=f"mine, row 1: column `tests`.*{what}"):
        scored([(ADD, SUM), (ADD, tests)])
    assert scored([(ADD, tests)], on_error="skip_row") == [None]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        (["import math", "assert add(1, 2) == math.floor(3.5)"], [1.0, 0.0]),
        (["from solution import add", "assert add(1, 2) == 3"], [1.0, 0.0]),
        (["", "three = 3", "assert add(1, 2) == three"], [1.0, 0.0]),
        (["import math", "assert add(math.floor(1.5), 2) == 3"], [1.0, 0.0]),
        ("import sys\nif add(1, 2) != 3: sys.exit(1)", [1.0, 0.0]),
        ("try:\n    add(1)\n    raise ValueError\nexcept TypeError:\n    pass", [1.0, 1.0]),
        ("add(1, 2)", [1.0, 1.0]),
        ("add(1)", [0.0, 0.0]),
        ("def check(candidate):\n    candidate(1)", [0.0, 0.0]),
    ],
)
def test_helpers_run_before_each_test_that_can_fail(tests: Any, expected: list[Score]) -> None:
    wrong = "def add(a, b):\n    return 4\n"

    assert scored([(ADD, tests), (wrong, tests)]) == expected


def test_what_wants_an_error_is_a_test_and_a_helper_is_none() -> None:
    raises = "import pytest\nwith pytest.raises(ValueError):\n    add(1)"

    assert [test.kind for test in read_tests(raises, "tests")] == ["statement"]
    [test] = read_tests(["import math", "assert add(1, 2) == 3"], "tests")
    assert (test.kind, test.text, test.before) == ("call", "add(1, 2)", "import math")


def test_a_run_that_stops_ends_its_programs() -> None:
    def stops() -> None:
        raise KeyboardInterrupt

    source: Any = TypeAdapter(BuiltinSource).validate_python(
        {"type": "builtin", "name": "code_tests", "timeout_seconds": 600}
    )
    endless = "def add(a, b):\n    while True: pass\n"
    rows = [ScoringRow(columns={"completion": endless, "tests": SUM})]

    with pytest.raises(KeyboardInterrupt):
        score_builtin(source, rows, node="mine", tick=stops)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("x = 1", "x = 1"),
        ("a\n```py\nx\n```\nb\n```\ny\n```", "y\n"),
        ("```python\nx = 1", "x = 1"),
        ("use `f` here", "use `f` here"),
    ],
)
def test_the_program_is_the_last_block_of_code(text: str, program: str) -> None:
    assert program_of(text) == program


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "behind",
    [
        "Output:\n```\n4\n```",
        "```text\nadd = no\n```",
        "It gives\n```\nThe sum is 4.\n```",
        "Use it so:\n```python\nprint(add(1, 2))\n```",
        "```python\ndef other(): pass\n```",
        "```bash\npython add.py\n```",
    ],
)
def test_what_stands_behind_the_program_is_not_the_program(behind: str) -> None:
    text = f"Here:\n```python\n{ADD}```\n{behind}"

    assert program_of(text, wanted_by(read_tests(SUM, "tests"), None)) == ADD
    assert scored([(text, SUM)]) == [1.0]


def test_the_last_program_that_defines_what_tests_call_is_taken() -> None:
    text = f"```python\n{ADD.replace('+', '-')}```\nNo:\n```python\n{ADD}```"
    main = "```python\nprint(3)\n```\nOutput:\n```\n3\n```"

    assert scored([(text, SUM), (main, [{"input": "", "output": "3"}])]) == [1.0, 1.0]


def test_asserted_values_stay_with_the_judge() -> None:
    [call, other] = read_tests(["assert f(1) == [2, 3]", "assert f(1) == g(2)"], "tests")

    assert (call.kind, call.text, call.expected) == ("call", "f(1)", [2, 3])
    assert (other.kind, other.text) == ("statement", "assert f(1) == g(2)")
