"""The built-in rewards on literal numbers."""

import math
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from coloop.data.rewards.builtin import BUILTINS, score_builtin
from coloop.data.rewards.scoring import ScoringRow
from coloop.data.tables import Score
from coloop.data.tasks import task_rows
from coloop.errors import DataError
from coloop.spec.builtins import BUILTIN_NAMES, SCORE_TO_SCORE, BuiltinSource

OPTIONS: TypeAdapter[Any] = TypeAdapter(BuiltinSource)


def scored(name: str, rows: list[ScoringRow], **options: Any) -> list[Score]:
    source = OPTIONS.validate_python({"type": "builtin", "name": name, **options})
    return score_builtin(source, rows, node="mine").scores


def written(completion: str, **columns: Any) -> ScoringRow:
    return ScoringRow(columns={"completion": completion, **columns})


def text_score(
    name: str, completion: str, *, given: dict[str, Any] | None = None, **options: Any
) -> Score:
    return scored(name, [written(completion, **(given or {}))], **options)[0]


def from_scores(**scores: Score) -> ScoringRow:
    return ScoringRow(scores=scores)


def test_the_registry_has_exactly_the_rewards_of_the_loop_language() -> None:
    assert set(BUILTINS) == set(BUILTIN_NAMES)
    assert {name for name, made in BUILTINS.items() if made.needs == "scores"} == SCORE_TO_SCORE
    assert len(get_args(get_args(BuiltinSource)[0])) == len(BUILTINS)


@pytest.mark.parametrize("name", sorted(set(BUILTIN_NAMES) - {"length", "overlong"}))
def test_no_rows_have_no_scores(name: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "format": {"shape": "sum"},
        "regex": {"pattern": "x"},
        "column": {"column": "x"},
        "weighted": {"weights": {"a": 1.0}},
        "agreement": {"columns": ["a", "b"]},
        "gate": {"value": "a", "by": "b", "min": 0.0},
    }

    assert scored(name, [], **options.get(name, {})) == []


def test_task_asks_the_checker_of_the_row() -> None:
    rows = task_rows("arithmetic", size=2)

    assert scored("task", [ScoringRow(columns={**rows[0], "completion": rows[0]["answer"]})]) == [
        1.0
    ]
    assert scored("task", [ScoringRow(columns={**rows[0], "completion": "x"})]) == [0.0]


def test_task_on_rows_without_a_task_is_told() -> None:
    with pytest.raises(DataError, match="mine, row 0: the reward `task` needs rows of"):
        scored("task", [written("1", answer="1")])


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        ("46", "46", 1.0),
        (" 46 \n", "46", 1.0),
        ("47", "46", 0.0),
        ("046", "46", 0.0),
        ("it is 46", "46", 0.0),
        ("12\n46", "46", 1.0),
        ("46\n12", "46", 0.0),
        ("70,000", "70000", 1.0),
        ("46", 46, 1.0),
        ("46", 46.0, 1.0),
        ("cat", ["dog", "cat"], 1.0),
        ("a\nb", "a\nb", 1.0),
        ("b", "a\nb", 0.0),
        ("46", None, None),
    ],
)
def test_exact_match_compares_texts(completion: str, answer: Any, score: Score) -> None:
    assert text_score("exact_match", completion, given={"answer": answer}) == score


def test_exact_match_of_another_column() -> None:
    assert text_score("exact_match", "x", given={"gold": "x"}, column="gold") == 1.0


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("<answer>46</answer>", 1.0),
        ("<answer>1</answer> no: <answer> 46 </answer>", 1.0),
        ("<answer>46</answer><answer>1</answer>", 0.0),
        ("46", 0.0),
    ],
)
def test_exact_match_extracts_the_last_match(completion: str, score: Score) -> None:
    pattern = "<answer>(.*?)</answer>"

    assert text_score("exact_match", completion, given={"answer": "46"}, extract=pattern) == score


def test_extract_reads_the_gold_of_gsm8k_too() -> None:
    given = {"answer": "16-3-4 = 9\nShe makes 9*2=18\n#### 1,018"}
    pattern = r"#### (-?[0-9.,]+)"

    assert text_score("exact_match", "so #### 1018", given=given, extract=pattern) == 1.0
    assert text_score("exact_match", "so #### 18", given=given, extract=pattern) == 0.0
    assert text_score("exact_match", "so 1018", given=given, extract=pattern) == 0.0


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("0.5", "1/2"),
        (r"\boxed{\frac{1}{2}}", "0.5"),
        (r"so $\boxed{\dfrac{3}{4}}$.", "3/4"),
        (r"\frac{\frac{1}{2}}{2}", "1/4"),
        (r"2\sqrt{2}", "2.828427125"),
        (r"\sqrt{16}", "4"),
        (r"3\pi", "9.42477796"),
        ("1 1/2", "1.5"),
        (r"50\%", "50"),
        (r"\boxed{18\text{ dollars}}", "18"),
        (r"\boxed{18 dollars}", "18"),
        ("$1,234.50$", "1234.5"),
        ("x = 7", "7"),
        ("3 + 4 = 7", "7"),
        ("it costs 5-3 coins, so 2", "2"),
        ("the change is -3.5 degrees", "-3.5"),
        ("12\n-5", "-5"),
        ("she makes $18 a day", "... 9*2=18\n#### 18"),
        ("(1, 2)", "(1,2)"),
        ("2^{10}", "1024"),
        (r"\text{yes}", "yes"),
        (r"\boxed{x+1}", "x + 1"),
        ("10", 10),
    ],
)
def test_math_equal_finds_equal_answers(completion: str, answer: Any) -> None:
    assert text_score("math_equal", completion, given={"answer": answer}) == 1.0


@pytest.mark.slow
def test_math_equal_refuses_other_answers() -> None:
    pairs = [
        ("0.51", "1/2"),
        ("(1, 2)", "(2, 1)"),
        ("(1, 2)", "(1, 2, 3)"),
        ("", "0"),
        ("cat", "dog"),
        (r"\boxed{7} no, \boxed{8}", "7"),
        ("1/0", "1"),
        ("__import__('os').system('x')", "0"),
        ("9^9^9^9", "1"),
        ("(" * 1000, "1"),
        ("x" * 2000, "1"),
    ]
    rows = [written(completion, answer=answer) for completion, answer in pairs]

    assert scored("math_equal", rows) == [0.0] * len(pairs)


def test_math_equal_has_a_tolerance() -> None:
    given = {"answer": "3.14159"}

    assert text_score("math_equal", "3.1416", given=given) == 0.0
    assert text_score("math_equal", "3.1416", given=given, tolerance=1e-3) == 1.0


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("B", 1.0),
        ("the answer is (B).", 1.0),
        ("A or B", 0.0),
        ("B or A", 0.0),
        ("Bob", 0.0),
        ("The answer is B. I am sure.", 1.0),
        ("Answer: B. A is a distractor", 1.0),
        ("ANSWER = B, never C", 1.0),
        ("B, I think", 1.0),
        ("B. I'm sure", 1.0),
        ("The answer is: I think B", 1.0),
        ("First I took A. The answer is A. No, the answer is B.", 1.0),
        ("The answer is not A, it is B", 1.0),
        ("Answer: A. B is a distractor", 0.0),
        ("The answer is I.", 0.0),
        ("I am sure.", 0.0),
        ("b", 1.0),
        ("(b)", 1.0),
        ("I compare A and C.\n**B**", 1.0),
        ("The answer is (b).", 1.0),
        ("the answer is b", 1.0),
        ("The answer is option b because of it", 1.0),
        ("The answer is a bit hard: B", 1.0),
        ("The answer is a.", 0.0),
        (r"so \boxed{\text{B}}. A was near", 1.0),
        ("The correct option is B because A is wrong", 1.0),
        ("B is the answer; D is not", 1.0),
        ("(B) is correct, A is not", 1.0),
        ("It is not A, so B", 1.0),
        ("I look at each option: A is too small, so I take B", 1.0),
        ("A is wrong. B", 1.0),
        ("The answer is A or B.", 0.0),
        ("The answer is B or A.", 0.0),
        ("The answer is (b) or (c).", 0.0),
        ("The answer is B, C", 0.0),
        ("The answer is B and maybe C", 0.0),
        ("A B C D", 0.0),
        ("D C B A B", 0.0),
        ("A. C. D. B.", 0.0),
        (r"\boxed{A, B}", 0.0),
        ("The answer is B or B", 1.0),
        ("The answer is (B) A large cat", 1.0),
        ("The answer is B) A cat", 1.0),
        ("Answer: B) E. coli", 1.0),
        ("Answer: B) I and II", 1.0),
        ("The answer is B) A, B and C", 1.0),
        ("The answer is B, C is wrong", 1.0),
        ("The answer is (B), (C) is wrong", 1.0),
        ("The answer is B, and I am sure", 1.0),
        ("answer: B (A is too small)", 1.0),
        ("answer: B, A is too large", 1.0),
        (r"\boxed{B) A large cat}", 1.0),
        ("B. A large cat", 1.0),
        ("The answer is (B), (C)", 0.0),
        ("The answer is B/C", 0.0),
        ("The answer is B, C and D", 0.0),
        ("The answer is B and C are right", 0.0),
        ("The answer is **B** or **C**", 0.0),
        ("The answer is B or C depending on it", 0.0),
    ],
)
def test_choice_is_the_option_behind_the_answer_or_the_last(completion: str, score: Score) -> None:
    assert text_score("choice", completion, given={"answer": "B"}) == score


@pytest.mark.parametrize(
    ("completion", "score"),
    [("I", 1.0), ("(I)", 1.0), ("The answer is I.", 1.0), ("I think H", 0.0), ("I am sure", 0.0)],
)
def test_an_i_is_an_option_where_it_stands_as_one(completion: str, score: Score) -> None:
    assert text_score("choice", completion, given={"answer": "I"}) == score


@pytest.mark.parametrize("gold", ["C", "c", "(C)", "C.", "C) Paris", ["A", "C"]])
def test_the_right_option_may_stand_with_its_text(gold: Any) -> None:
    assert text_score("choice", "The answer is C.", given={"answer": gold}) == 1.0
    assert text_score("choice", "The answer is B.", given={"answer": gold}) == 0.0


@pytest.mark.parametrize("gold", ["2", 2, "Paris", "A or B", ""])
def test_a_right_option_that_is_none_is_told(gold: Any) -> None:
    with pytest.raises(DataError, match="mine, row 0: choice: column `answer` must be the letter"):
        text_score("choice", "The answer is C.", given={"answer": gold})


def test_choice_by_a_pattern() -> None:
    given = {"answer": "tie"}
    assert text_score("choice", "so: tie", given=given, extract=r"so: (A|B|tie)") == 1.0
    assert text_score("choice", "[[a]] B", given={"answer": "A"}, extract=r"\[\[(\w)\]\]") == 1.0


def test_format_pays_right_or_wrong() -> None:
    options = {"pattern": r"^\d+$", "right": 1.0, "wrong": -1.0}

    assert text_score("format", "12", **options) == 1.0
    assert text_score("format", "12a", **options) == -1.0


@pytest.mark.parametrize(
    ("shape", "completion", "is_right", "graded"),
    [
        ("sum", "12+30=", True, 1.0),
        ("sum", "1 + 2 + 3", True, 1.0),
        ("sum", "12", False, 0.0),
        ("number", " -3.5 ", True, 1.0),
        ("number", "three", False, 0.0),
        ("boxed", r"so \boxed{3}", True, 1.0),
        ("boxed", r"so \boxed{3", False, 0.5),
        ("boxed", "3", False, 0.0),
        ("boxed", r"so \boxed{ }", False, 0.5),
        ("tags", "<think>a\nb</think>\n<answer>c</answer>", True, 1.0),
        ("tags", "<think>a</think><answer>c", False, 0.75),
        ("tags", "x <think>a</think><answer>c</answer>", False, 0.75),
        ("tags", "<answer>c</answer>", False, 0.5),
        ("tags", "c", False, 0.0),
        ("tags", "<think> </think><answer>c</answer>", False, 0.75),
        ("tags", "<think>a</think><answer>\n</answer>", False, 0.75),
        ("tags", "</answer>c<answer></think>a<think>", False, 0.25),
        ("tags", "<answer>c</answer><think>a</think>", False, 0.5),
        ("verdict_per_step", "step 1: right\nstep 2: wrong\nfinal: incorrect", True, 1.0),
        ("verdict_per_step", "step 1: right\nfinal: correct", True, 1.0),
        ("verdict_per_step", "step 1: right\nstep 3: wrong\nfinal: correct", False, 2 / 3),
        ("verdict_per_step", "step 1: right", False, 0.5),
        ("verdict_per_step", "final: correct", False, 0.5),
        ("verdict_per_step", "", False, 0.0),
        ("question_tag", "<question>why?</question>", True, 1.0),
        ("question_tag", "<question>why?", False, 0.5),
        ("question_tag", "<question></question>", False, 0.0),
        ("question_tag", "<question> </question>", False, 0.0),
        ("question_tag", "<question>why?</question></question>", False, 0.0),
        ("question_tag", "why?", False, 0.0),
    ],
)
def test_named_shapes(shape: str, completion: str, is_right: bool, graded: float) -> None:
    assert text_score("format", completion, shape=shape) == float(is_right)
    assert text_score("format", completion, shape=shape, graded=True) == pytest.approx(graded)


def test_a_graded_shape_pays_between_wrong_and_right() -> None:
    options = {"shape": "tags", "graded": True, "right": 1.0, "wrong": -1.0}

    assert text_score("format", "<answer>c</answer>", **options) == pytest.approx(0.0)


def test_a_pattern_that_backtracks_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coloop.data.patterns.TIMEOUT_SECONDS", 0.2)

    with pytest.raises(
        DataError, match=r"mine, row 0: format: the pattern .* more than 0\.2 seconds"
    ):
        text_score("format", "a" * 40 + "b", pattern=r"^(a|aa)+$")


def test_length_falls_from_one_to_zero() -> None:
    rows = [written("", length=n) for n in (0, 4, 12, 20, 30)]

    assert scored("length", rows, min=4, max=20) == [1.0, 1.0, 0.5, 0.0, 0.0]


def test_length_along_a_cosine() -> None:
    rows = [written("", length=n) for n in (4, 8, 12, 20)]

    # 0.5 (1 + cos(pi t)) at t = 0, 1/4, 1/2, 1
    assert scored("length", rows, min=4, max=20, shape="cosine") == pytest.approx(
        [1.0, 0.5 * (1 + math.sqrt(0.5)), 0.5, 0.0]
    )


def test_counting_tokens_without_their_number_is_told() -> None:
    with pytest.raises(DataError, match="rows have no column `length`"):
        scored("length", [written("abc")], max=3)


def test_overlong_is_the_penalty_of_dapo() -> None:
    rows = [written("", length=n) for n in (10, 12, 13, 14, 16)]

    # max 16, buffer 4: -(L - 12) / 4 from 12 tokens on
    assert scored("overlong", rows, max=16, buffer=4, factor=1.0) == [0.0, 0.0, -0.25, -0.5, -1.0]
    assert scored("overlong", rows[-1:], max=16, buffer=4, factor=0.5) == [-0.5]


@pytest.mark.parametrize(
    ("completion", "score"),
    [("score: 1", 0.0), ("2 then 10", 1.0), ("5.5", 0.5), ("12", 1.0), ("none", 0.5)],
)
def test_regex_reads_the_last_number_and_scales_it(completion: str, score: Score) -> None:
    options = {"pattern": r"(\d+(?:\.\d+)?)", "scale": [1, 10], "on_no_match": 0.5}

    assert text_score("regex", completion, **options) == score


def test_regex_without_a_group_is_one_or_the_score_of_no_match() -> None:
    assert text_score("regex", "well done", pattern="well") == 1.0
    assert text_score("regex", "done", pattern="well") == 0.0
    assert text_score("regex", "done", pattern="well", on_no_match=None) is None


def test_regex_without_a_scale_gives_the_number_as_read() -> None:
    assert text_score("regex", "grade -7", pattern=r"(-?\d+)") == -7.0


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("a b c d", 0.0),
        ("a b a b a b", -0.5),
        ("a a a a a", -2 / 3),
        ("a b", 0.0),
        ("", 0.0),
        ("a" * 62, -59 / 60),
        ("\u554a" * 62, -59 / 60),
        ("\u5979\u6bcf\u5929\u5356\u86cb", 0.0),
        ("\u0e01\u0e02" * 3, -0.5),
        ("!" * 62, -59 / 60),
        ("1+" * 31, -58 / 60),
        ("a-long-word-but-one a-long-word-but-one", 0.0),
        ("Donaudampfschifffahrtsgesellschaft", 0.0),
    ],
)
def test_ngram_repetition(completion: str, score: float) -> None:
    # "a b a b a b": 4 trigrams, 2 different; "a a a a a": 3 trigrams, 1 different
    assert text_score("ngram_repetition", completion, size=3) == pytest.approx(score)


def test_column_reads_numbers_lists_and_exact_names() -> None:
    rows = [ScoringRow(columns={"label": value}) for value in (1, True, "0.5", None, [1, None, 0])]

    assert scored("column", rows, column="label") == [1.0, 1.0, 0.5, None, {0: 1.0, 2: 0.0}]
    assert scored("column", [ScoringRow(columns={"desk.reward": 2.0})], column="desk.reward") == [
        2.0
    ]


def test_column_that_holds_no_number_is_told() -> None:
    with pytest.raises(DataError, match="column `label` must be a number to be used as a score"):
        scored("column", [ScoringRow(columns={"label": "good"})], column="label")


def test_weighted_sums_the_scores_that_apply() -> None:
    rows = [from_scores(a=1.0, b=0.5), from_scores(a=None, b=0.5), from_scores(a=None, b=None)]

    assert scored("weighted", rows, weights={"a": 2.0, "b": -1.0}) == [1.5, -0.5, None]


def test_a_scorer_that_is_not_connected_is_named() -> None:
    with pytest.raises(DataError, match="no score of `c` arrives at port `scores`; available: a"):
        scored("weighted", [from_scores(a=1.0)], weights={"c": 1.0})


def test_one_minus_turns_numbers_and_steps() -> None:
    rows = [from_scores(a=0.25), from_scores(a=None), from_scores(a={0: 1.0, 3: 0.25})]

    assert scored("one_minus", rows) == [0.75, None, {0: 0.0, 3: 0.75}]


def test_band_pays_the_middle() -> None:
    rows = [from_scores(a=s) for s in (0.0, 0.25, 0.5, 1.0, 1.5)]

    assert scored("band", rows) == [0.0, 0.75, 1.0, 0.0, 0.0]
    # 4 (0.5 - 0.2) (0.6 - 0.5)
    assert scored("band", rows[2:3], low=0.2, high=0.6) == [pytest.approx(0.12)]


def test_margin_is_the_lead_over_the_siblings() -> None:
    rows = [
        ScoringRow(scores={"a": score}, group=group)
        for score, group in ((1.0, 1), (0.5, 1), (None, 1), (0.0, 1), (2.0, 2))
    ]

    assert scored("margin", rows) == [0.75, 0.0, None, -0.75, None]


def test_agreement_counts_none_as_disagreement() -> None:
    rows = [
        from_scores(a=1.0, b=1.0),
        from_scores(a=1.0, b=0.0),
        from_scores(a=None, b=None),
        from_scores(a=None, b=1.0),
    ]

    assert scored("agreement", rows, columns=["a", "b"]) == [1.0, 0.0, 0.0, 0.0]
    near = [from_scores(a=0.9, b=1.0)]
    assert scored("agreement", near, columns=["a", "b"], tolerance=0.2) == [1.0]


def test_agreement_over_steps_is_the_share_that_agrees() -> None:
    rows = [
        from_scores(a={0: 1.0, 1: 0.0}, b={0: 1.0, 1: 0.0}),
        from_scores(a={0: 1.0, 1: 0.0}, b={0: 1.0, 2: 0.0}),
        from_scores(a={}, b={}),
    ]

    assert scored("agreement", rows, columns=["a", "b"], over="steps") == [
        1.0,
        pytest.approx(1 / 3),
        0.0,
    ]


def test_a_gate_passes_one_score_where_another_is_in_bounds() -> None:
    rows = [
        from_scores(value=0.25, by=0.75),
        from_scores(value=0.25, by=0.7),
        from_scores(value=0.25, by=0.5),
        from_scores(value=0.25, by=None),
        from_scores(value=None, by=1.0),
    ]
    options = {"value": "value", "by": "by"}

    assert scored("gate", rows, min=0.7, **options) == [0.25, 0.25, None, None, None]
    assert scored("gate", rows, max=0.6, otherwise=1.0, **options) == [1.0, 1.0, 0.25, 1.0, 1.0]


def seeded_rows(*scores: Score) -> list[ScoringRow]:
    """Rows whose random order is that of the list."""
    return [ScoringRow(scores={"a": s}, seed=n, id=f"row {n}") for n, s in enumerate(scores)]


def test_other_rows_moves_each_score_to_the_next_row_of_a_random_order() -> None:
    assert scored("other_rows", seeded_rows(1.0, None, 0.0, 0.25)) == [0.0, None, 0.25, 1.0]
    assert scored("other_rows", seeded_rows(1.0)) == [1.0]
    assert scored("other_rows", []) == []


def test_other_rows_keeps_the_positions_of_steps() -> None:
    rows = seeded_rows({2: 1.0, 5: 2.0}, {1: 3.0}, None, {0: 4.0, 3: 5.0, 9: 6.0})

    # The largest row has three numbers: each moves by three places.
    assert scored("other_rows", rows) == [
        {2: 4.0, 5: 5.0},
        {1: 6.0},
        None,
        {0: 1.0, 3: 2.0, 9: 3.0},
    ]


def test_constant_and_coin_replace_every_number() -> None:
    rows = seeded_rows(1.0, None, {0: 1.0, 3: 0.0})

    assert scored("constant", rows, value=0.25) == [0.25, None, {0: 0.25, 3: 0.25}]
    assert scored("coin", rows, share=1.0) == [1.0, None, {0: 1.0, 3: 1.0}]
    assert scored("coin", rows, share=0.0, low=-1.0) == [-1.0, None, {0: -1.0, 3: -1.0}]
    drawn = [scored("coin", seeded_rows(1.0))[0] for _ in range(2)]
    assert drawn[0] == drawn[1]
    many = [ScoringRow(scores={"a": 0.0}, seed=n) for n in range(2000)]
    share = sum(float(one) for one in scored("coin", many, share=0.3) if not isinstance(one, dict))
    assert share / 2000 == pytest.approx(0.3, abs=0.04)


def test_first_takes_the_first_score_that_applies() -> None:
    rows = [from_scores(a=None, b=0.5), from_scores(a=0.0, b=0.5), from_scores(a=None, b=None)]

    assert scored("first", rows) == [0.5, 0.0, None]


def corner(earlier: float, own: float) -> list[ScoringRow]:
    return [
        ScoringRow(id="r1", scores={"exact": earlier}, round=1, conversation="c", writer="a"),
        ScoringRow(
            id="r2",
            scores={"exact": own},
            round=2,
            conversation="c",
            writer="a",
            ancestors=("p", "r1"),
        ),
    ]


@pytest.mark.parametrize(
    ("earlier", "own", "margin", "quality"),
    [
        # R + 0.5 (R - Q) and R + 0.5 (Q R - (1 - Q) (1 - R))
        (0.0, 0.0, 0.0, -0.5),
        (0.0, 1.0, 1.5, 1.0),
        (1.0, 0.0, -0.5, 0.0),
        (1.0, 1.0, 1.0, 1.5),
    ],
)
@pytest.mark.parametrize("source", ["ancestors", "all_roles"])
def test_turn_allocation_in_the_four_corners(
    earlier: float, own: float, margin: float, quality: float, source: str
) -> None:
    options = {"alpha": 0.5, "beta": 0.0, "earlier": source}
    rows = corner(earlier, own)

    assert scored("turn_allocation", rows, method="margin", **options) == [earlier, margin]
    assert scored("turn_allocation", rows, method="quality", **options) == [earlier, quality]


def test_turn_allocation_reads_all_roles_or_the_own_line() -> None:
    rows = [
        ScoringRow(id="a1", scores={"s": 1.0}, round=1, conversation="c", writer="a"),
        ScoringRow(id="b1", scores={"s": 0.0}, round=1, conversation="c", writer="b"),
        ScoringRow(
            id="a2", scores={"s": 1.0}, round=2, conversation="c", writer="a", ancestors=("a1",)
        ),
    ]
    options = {"method": "margin", "alpha": 0.5, "beta": 0.0}

    # own line: Q = 1, all roles: Q = 0.5
    assert scored("turn_allocation", rows, earlier="ancestors", **options) == [1.0, 0.0, 1.0]
    assert scored("turn_allocation", rows, earlier="all_roles", **options) == [1.0, 0.0, 1.25]


def test_turn_allocation_may_add_the_writers_outcome() -> None:
    rows = corner(0.0, 1.0)

    # 1 + 0.5 (1 - 0) + 0.5 * 1
    assert scored("turn_allocation", rows, method="margin", alpha=0.5, beta=0.5) == [0.0, 2.0]


def test_turn_allocation_leaves_unscored_turns_out() -> None:
    rows = corner(0.0, 1.0)
    rows[0] = ScoringRow(id="r1", scores={"exact": None}, conversation="c", writer="a")

    assert scored("turn_allocation", rows, beta=0.0) == [None, 1.0]


def test_scores_at_steps_where_one_number_is_wanted_are_told() -> None:
    with pytest.raises(DataError, match="connect the scorer's `scores`"):
        scored("weighted", [from_scores(a={0: 1.0})], weights={"a": 1.0})


@pytest.mark.parametrize(
    "name", ["exact_match", "math_equal", "choice", "ngram_repetition", "json_schema"]
)
def test_a_row_without_a_completion_has_no_score(name: str) -> None:
    assert scored(name, [ScoringRow(columns={"answer": "1"})]) == [None]
