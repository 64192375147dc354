"""`math_equal` on answers in which a number stands with something that changes it."""

from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

from coloop.data.rewards.builtin import score_builtin
from coloop.data.rewards.judging import LibraryJudge
from coloop.data.rewards.math_text import are_equal, final_answer
from coloop.data.rewards.scoring import ScoringRow
from coloop.spec.builtins import BuiltinSource


@pytest.fixture(scope="module")
def library() -> Iterator[LibraryJudge]:
    judge = LibraryJudge("mathematics", "mine", library="math-verify")
    yield judge
    judge.close()


def scores(pairs: list[tuple[str, str]], judge: LibraryJudge, **options: float) -> dict[str, float]:
    """By what is said and what is right."""
    source = TypeAdapter[BuiltinSource](BuiltinSource).validate_python(
        {"type": "builtin", "name": "math_equal", **options}
    )
    rows = [
        ScoringRow(columns={"completion": f"\\boxed{{{said}}}", "answer": gold})
        for said, gold in pairs
    ]
    found = score_builtin(source, rows, node="mine", judge=judge)
    assert found.failures == ()
    return dict(zip((f"{said} | {gold}" for said, gold in pairs), found.scores, strict=True))


EQUAL = [
    (r"1\frac{1}{2}", "1.5"),
    (r"\frac{9}{4}", r"2\frac{1}{4}"),
    (r"2\frac14", "9/4"),
    (r"-2\frac{1}{3}", "-7/3"),
    ("-2 1/3", r"-2\frac{1}{3}"),
    (r"3\frac{1}{2}\pi", r"\frac{7\pi}{2}"),
    ("6 million", "6000000"),
    (r"6\text{ million}", "6,000,000"),
    ("1.5 million dollars", "1500000"),
    ("1.23e5", "123000"),
    ("5e-3", "0.005"),
    (r"1.5\times10^{8}", "150000000"),
    (r"12\text{ cm}^2", "12"),
    (r"12 \text{ m/s}^{2}", "12"),
    (r"2\pi\text{ cm}", r"2\pi"),
    ("3 square feet", "3"),
    (r"12\text{ units squared}", "12"),
    (r"5\text{ more apples}", "5"),
    ("18 sheets of paper", "18"),
    (r"\text{The answer is }18", "18"),
    (r"3\text{ or }4", "3,4"),
    ("1 000", "1000"),
    (r"\(1,234\)", "1234"),
    ("(1,234)", r"\left(1,234\right)"),
    ("2516", "2516_8"),
    ("2516_{8}", "2516_8"),
    (r"2\sqrt{2}", r"\sqrt{8}"),
    ("1/3", r"\frac{2}{6}"),
    ("0.3333333", "1/3"),
    ("0.6666666", "2/3"),
    ("3.14159265", r"\pi"),
    ("1.2345678e7", "12345678"),
    ("12345679", "12345678.5"),
    ("1000000.0", "1000000"),
    ("5 or more", "5 or more"),
    ("5 apples are left", "5"),
    ("5 left over", "5"),
    ("5 is the answer", "5"),
    ("4 wrong answers", "4"),
    ("7 negative numbers", "7"),
    ("100 base units", "100"),
    ("6 plus signs", "6"),
    ("3 invalid tickets", "3"),
    ("20 above average students", "20"),
    ("The answer is 5", "5"),
    ("it is 5", "5"),
    ("There are 5 apples", "5"),
]
OTHER = [
    (r"1\frac{1}{2}", "1/2"),
    (r"\frac{1}{2}", r"2\frac{1}{4}"),
    ("1 1/2", "11/2"),
    ("123456788", "123456789"),
    ("1000001", "1000000"),
    ("987654321012", "987654321000"),
    ("123456788.0", "123456789"),
    ("123456788.5", "123456789"),
    ("12345678.5", "12345679"),
    ("1.2345678e7", "12345679"),
    ("333333.5", "1000001/3"),
    ("1000001/3", "1000000/3"),
    (r"\neq 6", "6"),
    (r"x \ne 6", "6"),
    ("x != 6", "6"),
    (r"\leq 6", "6"),
    ("x >= 6", "6"),
    (r"5\text{ is wrong}", "5"),
    (r"\text{not }5", "5"),
    ("5 or more", "5"),
    (r"5\text{ or more}", "5"),
    ("6 million", "6"),
    (r"2\text{ hundred thousand}", "2"),
    ("5 squared", "5"),
    (r"5\text{ squared}", "5"),
    (r"5\text{ or fewer}", "5"),
    (r"\text{more than }5", "5"),
    ("5 x", "5"),
    ("5 i", "5"),
    ("(1,234)", "1234"),
    ("4 2", "42"),
    ("4 2", "6"),
    ("101_2", "101"),
    ("2516_7", "2516_8"),
    (r"12\text{ cm}^2", "144"),
    ("1.23e5", "5"),
    (r"\text{over }5", "5"),
    ("above 5", "5"),
    ("5 or above", "5"),
    ("12 over 5", "12"),
    ("negative 5", "5"),
    ("5 plus 3", "5"),
    ("101 base two", "101"),
    ("5 wrong", "5"),
    ("5 is 7", "5"),
    ("5 is 7", "7"),
    ("5 degrees below zero", "5"),
]


@pytest.mark.slow
def test_answers_that_are_the_same_are_paid(library: LibraryJudge) -> None:
    assert [one for one, score in scores(EQUAL, library).items() if score != 1.0] == []


def test_what_changes_a_number_is_no_unit_of_it(library: LibraryJudge) -> None:
    assert [one for one, score in scores(OTHER, library).items() if score != 0.0] == []


def test_whole_numbers_have_no_tolerance_and_decimals_have(library: LibraryJudge) -> None:
    pairs = [
        ("101", "100"),
        ("100", "100.5"),
        ("100.5", "100"),
        ("3e8", "2.998e8"),
        ("22/7", r"\pi"),
    ]

    assert [*scores(pairs, library, tolerance=0.01).values()] == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert are_equal(r"\sqrt{2}", "1.41421356", tolerance=1e-6) is True


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1.23e5", "1.23e5"),
        ("so it is 1e3.", "1e3"),
        ("it costs 6 million dollars", "6 million"),
        (r"that is about 1.5 \times 10^8 km", r"1.5 \times 10^8"),
        ("she met 6 millionaires", "6"),
        ("room 3e", "3"),
        ("(1,234)", "(1,234)"),
        ("it weighs 2 1/2, so 12", "12"),
    ],
)
def test_the_last_number_is_taken_whole(text: str, answer: str) -> None:
    assert final_answer(text) == answer
