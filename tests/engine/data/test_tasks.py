"""The procedural tasks: gold answers pass their checkers, and splits never share a problem."""

import string
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest

from coloop.data.tasks import (
    TASKS,
    check_row,
    check_row_steps,
    part_of,
    task_rows,
)
from coloop.data.tasks.base import TaskProblem, TooFewProblems, permuted, split_of
from coloop.spec import tasks as spec_tasks
from coloop.spec.tasks import TASK_COLUMNS

PRINTABLE = set(string.printable) - set("\t\r\x0b\x0c")

HERE = {
    name: task
    for name, task in TASKS.items()
    if name != "reasoning_gym" or find_spec("reasoning_gym") is not None
}
"""Tasks whose package is installed."""
TABLES = [(name, part) for name, task in HERE.items() for part in (None, *task.parts)]


def rows_of_table(name: str, part: str | None, **parameters: Any) -> list[dict[str, Any]]:
    return task_rows(name, **({"part": part} if part else {}), **parameters)


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return []


def test_the_registry_has_exactly_the_tasks_of_the_loop_language() -> None:
    classes = get_args(get_args(spec_tasks.TaskSource)[0])
    named = {get_args(cls.model_fields["task"].annotation)[0]: cls for cls in classes}

    assert {name: task.parameters for name, task in TASKS.items()} == named
    assert all(task.name == name for name, task in TASKS.items())


def test_every_part_that_the_language_names_can_be_drawn() -> None:
    for name, task in TASKS.items():
        annotation = task.parameters.model_fields.get("part")
        named: set[str] = set()
        for option in get_args(annotation.annotation) if annotation else ():
            named.update(get_args(option))
        assert named == set(task.parts), name


@pytest.mark.parametrize(("name", "part"), TABLES)
def test_rows_have_the_columns_that_the_task_declares(name: str, part: str | None) -> None:
    rows = rows_of_table(name, part, size=20)

    for row in rows:
        assert set(row) == {*TASK_COLUMNS[name, part], "task"}


@pytest.mark.parametrize(("name", "part"), TABLES)
def test_texts_are_printable_ascii(name: str, part: str | None) -> None:
    for row in rows_of_table(name, part, size=50):
        for value in row.values():
            for text in texts_in(value):
                assert set(text) <= PRINTABLE, text


@pytest.mark.parametrize(("name", "part"), TABLES)
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(
    name: str, part: str | None
) -> None:
    first = rows_of_table(name, part, size=40)

    assert rows_of_table(name, part, size=40) == first
    assert rows_of_table(name, part, size=40, seed=1) != first


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "part"), [(n, p) for n, p in TABLES if (n, p) != ("knowledge", "documents")]
)
def test_train_and_test_share_no_row_whatever_the_seed(name: str, part: str | None) -> None:
    train = rows_of_table(name, part, split="train", seed=0)
    test = rows_of_table(name, part, split="test", seed=3)

    assert {repr(sorted(row.items())) for row in train}.isdisjoint(
        repr(sorted(row.items())) for row in test
    )


@pytest.mark.parametrize("name", sorted(HERE))
def test_every_problem_lies_in_the_split_of_its_key(name: str) -> None:
    task = TASKS[name]
    parameters = task.parameters.model_validate({"type": "task", "task": name})
    keys: dict[str, set[str]] = {"train": set(), "test": set()}

    for stratum in part_of(task, None).strata(parameters):
        for index in range(min(stratum.size, 400)):
            problem = stratum.problem(index)
            if problem is not None:
                keys[split_of(name, problem.key)].add(problem.key)

    assert keys["train"]
    assert keys["train"].isdisjoint(keys["test"])


@pytest.mark.parametrize("name", sorted(HERE))
def test_a_fifth_of_the_problems_is_held_out(name: str) -> None:
    test = sum(split_of(name, f"problem {number}") == "test" for number in range(5000))

    assert 0.17 < test / 5000 < 0.23


@pytest.mark.parametrize(
    "name",
    ["arithmetic", "countdown", "sorting", "last_letter", "knights", "counting", "two_halves"],
)
def test_the_gold_target_is_right_and_another_rows_target_is_not(name: str) -> None:
    rows = task_rows(name, size=200)
    others = {row["target"]: row for row in rows}

    for row in rows:
        assert check_row(row, row["target"]) == 1.0
        assert check_row(row, f"  {row['target']}\n") == 1.0
        assert check_row(row, "") == 0.0
        wrong = next(text for text in others if text != row["target"])
        if name not in ("countdown", "last_letter"):
            assert check_row(row, wrong) == 0.0


@pytest.mark.parametrize("name", ["proof", "calculator", "knowledge", "preference"])
def test_checkers_of_the_further_tasks_accept_their_targets(name: str) -> None:
    rows = rows_of_table(name, "instructions" if name == "preference" else None, size=200)

    assert [check_row(row, row["target"]) for row in rows] == [1.0] * 200


def test_sums_in_another_order_are_one_problem() -> None:
    train = {row["prompt"] for row in task_rows("arithmetic", digits=1)}
    test = {row["prompt"] for row in task_rows("arithmetic", digits=1, split="test")}

    def turned(prompt: str) -> str:
        left, right = prompt.rstrip("=").split("+")
        return f"{right}+{left}="

    assert {turned(prompt) for prompt in train} == train
    assert {turned(prompt) for prompt in test} == test
    assert len(train | test) == 100


def test_the_capacity_is_named_when_size_asks_for_more() -> None:
    with pytest.raises(TooFewProblems, match=r"87 different rows in its train split.*5,000"):
        task_rows("arithmetic", digits=1, size=5000)


def test_without_a_size_a_small_split_is_given_whole() -> None:
    assert len(task_rows("arithmetic", digits=1)) == 87
    assert len(task_rows("arithmetic", digits=1, split="test")) == 13


def test_a_part_that_a_task_lacks_names_those_it_has() -> None:
    with pytest.raises(TaskProblem, match="no part 'traces'; its parts: judged"):
        part_of(TASKS["arithmetic"], "traces")


def test_numbers_have_the_asked_digits_and_all_lengths_alike() -> None:
    rows = task_rows("arithmetic", digits=(1, 3), size=600)
    lengths = [len(row["prompt"].split("+")[0]) for row in rows]

    assert {len(part) for row in rows for part in row["prompt"].rstrip("=").split("+")} == {1, 2, 3}
    assert lengths.count(3) < 300


def test_reversed_answers_put_the_least_significant_digit_first() -> None:
    row = next(
        row
        for row in task_rows("arithmetic", digits=2, reverse=True, size=200)
        if row["answer"] != row["answer"][::-1]
    )
    left, right = row["prompt"].rstrip("=").split("+")

    assert row["answer"] == str(int(left) + int(right))[::-1]
    assert check_row(row, row["answer"]) == 1.0
    assert check_row(row, row["answer"][::-1]) == 0.0


def test_products_and_differences_of_several_numbers_follow_precedence() -> None:
    rows = task_rows("arithmetic", digits=1, operations=("+", "-", "*"), operands=3, size=300)

    for row in rows:
        assert eval(row["prompt"].rstrip("=")) == int(row["answer"])


def test_a_question_that_a_model_made_up_is_worked_out() -> None:
    made_up = {"prompt": "12+30=", "task": "arithmetic"}

    assert check_row(made_up, "42") == 1.0
    assert check_row(made_up, "41") == 0.0
    assert check_row({**made_up, "task": "arithmetic?reverse"}, "24") == 1.0
    assert check_row({"prompt": "hello", "task": "arithmetic"}, "42") is None


def test_judged_answers_are_half_right_and_labelled() -> None:
    rows = task_rows("arithmetic", part="judged", size=400)

    assert 120 < sum(row["label"] for row in rows) < 280
    for row in rows:
        assert (row["completion"] == row["answer"]) is bool(row["label"])


@pytest.mark.parametrize(
    ("completion", "grade"),
    [
        ("(3+5)*7", 1.0),
        ("7*(5+3)", 1.0),
        ("(3+5)*7=56", 1.0),
        ("let me see\n(3+5)*7", 1.0),
        ("<answer>(3+5)*7</answer>", 1.0),
        ("(3+5)*7=57", 0.0),
        ("8*7", 0.0),
        ("3*5*7", 0.0),
        ("56", 0.0),
        ("(3+5)*7*7/7", 0.0),
        ("(3+5", 0.0),
        ("3/0+5+7", 0.0),
        ("__import__('os')", 0.0),
        ("", 0.0),
    ],
)
def test_countdown_wants_every_number_once(completion: str, grade: float) -> None:
    row = {"prompt": "3 5 7 make 56:", "numbers": [3, 5, 7], "goal": 56, "task": "countdown"}

    assert check_row(row, completion) == grade
    assert check_row({"prompt": row["prompt"], "task": "countdown"}, completion) == grade


def test_last_letter_steps_are_checked_one_by_one() -> None:
    row = {"prompt": "apple tree sun:", "steps": ["e", "ee", "een"], "task": "last_letter"}

    assert check_row(row, "e\nee\neen") == 1.0
    assert check_row(row, "een") == 1.0
    assert check_row(row, "e\nee\neem") == 0.0
    assert check_row_steps(row, ["e", "ex", "een", "een"]) == [1.0, 0.0, 1.0, 0.0]


def test_steps_of_a_task_without_gold_steps_have_no_grade() -> None:
    assert check_row_steps({"task": "sorting"}, ["1", "2"]) == [None, None]


def test_knights_have_one_solution_and_name_it_in_order() -> None:
    row = {
        "prompt": "A: B is a knave. B: A and B are the same. A, B:",
        "answer": "knight knave",
        "task": "knights",
    }

    assert check_row(row, "knight knave") == 1.0
    assert check_row(row, "Knight, knave.") == 1.0
    assert check_row(row, "<think>x</think><answer>knight knave</answer>") == 1.0
    assert check_row(row, "knave knight") == 0.0
    assert check_row(row, "knight") == 0.0


def test_the_answer_of_a_knights_puzzle_follows_from_what_is_said() -> None:
    from itertools import product

    from coloop.data.tasks.knights import is_true, solve, statements

    for said in product(statements(0, 2), statements(1, 2)):
        fitting = [
            kinds
            for kinds in product((True, False), repeat=2)
            if all(is_true(s, kinds) == kinds[p] for p, s in enumerate(said))
        ]
        assert solve(said) == (fitting[0] if len(fitting) == 1 else None)


def test_both_halves_together_are_the_sum() -> None:
    for row in task_rows("two_halves", digits=2, size=300):
        left, right = row["prompt"].split("+")
        assert int(left) + int(right) == int(row["answer"])
        assert row["first_half"] + row["second_half"] == row["answer"]
        assert len(row["first_half"]) == len(row["second_half"]) == 1


def test_columns_of_two_halves_leave_the_names_of_the_agents_free() -> None:
    assert {"tens", "units", "both", "sums"}.isdisjoint(TASK_COLUMNS["two_halves", None])


def test_preferred_answers_are_perfect_and_rejected_ones_are_not() -> None:
    for row in task_rows("preference", size=300):
        assert check_row(row, row["chosen"]) == 1.0
        assert check_row(row, row["rejected"]) < 1.0


def test_noise_turns_a_share_of_the_preferences_round() -> None:
    rows = task_rows("preference", size=500, noise=0.3)

    turned = sum(check_row(row, row["chosen"]) != 1.0 for row in rows)

    assert 100 < turned < 200


def test_the_best_of_ranked_answers_is_named_from_one() -> None:
    for row in task_rows("preference", part="ranked", size=200):
        grades = [check_row(row, text) for text in row["responses"]]
        if len(grades) > 1:
            assert grades[row["best"] - 1] == max(grades) == 1.0
        assert 1 <= row["grade"] <= 10


def test_proofs_are_checked_step_by_step() -> None:
    row = {"prompt": "a, a>b, ab>c |- c", "task": "proof"}

    assert check_row(row, "b c") == 1.0
    assert check_row(row, "c") == 0.0
    assert check_row(row, "b") == 0.0
    assert check_row(row, "") == 0.0
    assert check_row({"prompt": "not a, b>c |- c", "task": "proof"}, "none") == 1.0
    assert check_row({"prompt": "not a, a>c |- c", "task": "proof"}, "none") == 0.0


def test_documents_answer_the_questions() -> None:
    documents = {
        row["title"]: row["text"] for row in task_rows("knowledge", part="documents", noise=2)
    }

    assert len(documents) == 3 * 64
    for row in task_rows("knowledge", hops=1, size=50):
        relation, _, name = row["prompt"].rstrip(":").partition(" of ")
        assert f"The {relation} of {name} is {row['answer']}." in documents[name]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_the_order_of_a_walk_is_a_permutation(size: int) -> None:
    assert sorted(permuted(place, size, 12345) for place in range(size)) == list(range(size))


@pytest.mark.slow
def test_tasks_load_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, coloop.data.template, coloop.data.sources, coloop.data.rewards.builtin; "
        "print([m for m in ('torch', 'transformers', 'ray') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "engine"},
        cwd=Path(__file__).resolve().parents[3],
    )

    assert done.stdout.strip() == "[]"
