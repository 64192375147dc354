"""Filter rules on literal rows."""

import random
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from coloop.data.filtering import Decision, FilterRow, decide, resampled, spare_wanted
from coloop.errors import DataError, UserCodeError
from coloop.sandbox.process import Sandbox
from coloop.spec.shaping import PerGroup, Resample, Rule

RULES: TypeAdapter[Any] = TypeAdapter(Rule)


def decided(rows: list[FilterRow], *rules: dict[str, Any], **options: Any) -> Decision:
    section = PerGroup.model_validate(options.pop("per_group")) if "per_group" in options else None
    return decide(
        rows,
        [RULES.validate_python(rule) for rule in rules],
        section,
        node="sift",
        **options,
    )


def kept(rows: list[FilterRow], *rules: dict[str, Any], **options: Any) -> list[int]:
    return list(decided(rows, *rules, **options).kept)


def scored(*scores: float | None, group: str = "g") -> list[FilterRow]:
    return [FilterRow(score=score, group=group) for score in scores]


def test_without_rules_everything_stays() -> None:
    assert kept(scored(1.0, None)) == [0, 1]


def test_score_bounds_are_inclusive_and_none_fails() -> None:
    rows = scored(0.0, 0.5, 1.0, None)

    assert kept(rows, {"rule": "score", "min": 0.5}) == [1, 2]
    assert kept(rows, {"rule": "score", "max": 0.5}) == [0, 1]
    assert kept(rows, {"rule": "score", "min": 0.5, "max": 0.5}) == [1]
    assert kept(rows, {"rule": "score"}) == [0, 1, 2]


def test_a_rule_may_look_at_another_scorer() -> None:
    rows = [FilterRow(score=1.0, by={"judge": 0.2}), FilterRow(score=0.0, by={"judge": 0.9})]

    assert kept(rows, {"rule": "score", "of": "judge", "min": 0.5}) == [1]


def test_a_scorer_that_does_not_come_in_is_named() -> None:
    rows = [FilterRow(score=1.0, by={"judge": 0.2})]

    with pytest.raises(DataError, match=r"sift: keep\.0: no score of `exact` arrives at port `by`"):
        kept(rows, {"rule": "score", "of": "exact", "min": 0.5})


def test_scores_at_steps_are_told() -> None:
    with pytest.raises(DataError, match="connect the scorer's `scores`"):
        kept([FilterRow(score={0: 1.0})], {"rule": "score", "min": 0.0})


@pytest.mark.parametrize(
    ("scores", "rule", "stays"),
    [
        ((1.0, 0.0, 0.0, 0.0), {"min": 0.25, "max": 0.75}, True),
        ((1.0, 0.0, 0.0, 0.0), {"min": 0.25, "max": 0.75, "open": True}, False),
        ((1.0, 1.0, 1.0, 1.0), {"min": 0.0, "max": 1.0}, True),
        ((1.0, 1.0, 1.0, 1.0), {"min": 0.0, "max": 1.0, "open": True}, False),
        ((0.0, 0.0), {"min": 0.0, "max": 1.0, "open": True}, False),
        ((0.6, 0.0), {"min": 0.5, "right_at": 0.5}, True),
        ((0.6, 0.0), {"min": 0.5}, False),
        ((1.0, None, None), {"min": 1.0}, True),
        ((None, None), {"min": 0.0}, False),
    ],
)
def test_accuracy_band_keeps_or_cuts_whole_groups(
    scores: tuple[float | None, ...], rule: dict[str, Any], stays: bool
) -> None:
    rows = scored(*scores)

    assert kept(rows, {"rule": "accuracy_band", **rule}) == (
        list(range(len(rows))) if stays else []
    )


def test_nonzero_variance_cuts_groups_of_equal_scores() -> None:
    rows = scored(1.0, 1.0, group="a") + scored(1.0, 0.0, group="b") + scored(1.0, None, group="c")

    assert kept(rows, {"rule": "nonzero_variance"}) == [2, 3]


def test_group_mean_has_inclusive_bounds() -> None:
    rows = scored(-0.5, 0.1, group="a") + scored(-0.5, -0.4, group="b")

    assert kept(rows, {"rule": "group_mean", "min": -0.2}) == [0, 1]


def test_groups_may_be_made_of_columns() -> None:
    rows = [
        FilterRow(score=score, columns={"answer": answer})
        for score, answer in ((1.0, "a"), (0.0, "b"), (0.0, "a"), (0.0, "b"))
    ]

    assert kept(rows, {"rule": "nonzero_variance", "by": "answer"}) == [0, 2]


def test_length_counts_tokens_characters_or_items() -> None:
    rows = [
        FilterRow(columns={"completion": "abcdef", "length": 2, "list": [1, 2, 3]}),
        FilterRow(columns={"completion": "ab", "length": 5}),
        FilterRow(columns={}),
    ]

    assert kept(rows, {"rule": "length", "max": 2}) == [0]
    assert kept(rows, {"rule": "length", "column": "list", "min": 3}) == [0]
    assert (
        kept([FilterRow(columns={"q": "why"})], {"rule": "length", "column": "q", "min": 4}) == []
    )


def test_regex_looks_anywhere_in_a_column() -> None:
    rows = [FilterRow(columns={"question": text}) for text in ("what is 2?", "why")]
    rows.append(FilterRow(columns={}))

    assert kept(rows, {"rule": "regex", "column": "question", "pattern": r"\d"}) == [0]


def test_unique_keeps_the_first_of_each_value() -> None:
    values: list[Any] = ["a", "b", "a", None, ["x"], ["x"], 1, True]
    rows = [FilterRow(columns={"q": value}) for value in values]

    assert kept(rows, {"rule": "unique", "column": "q"}) == [0, 1, 4, 6, 7]


def test_python_keeps_rows_by_columns_and_scores() -> None:
    code = "def keep(question, judge, **columns): return len(question) > 2 and judge > 0.5"
    rows = [
        FilterRow(columns={"question": "why"}, by={"judge": 1.0}),
        FilterRow(columns={"question": "why"}, by={"judge": 0.0}),
        FilterRow(columns={"question": "no"}, by={"judge": 1.0}),
    ]
    with Sandbox(code, function="keep", node="sift") as runner:
        assert kept(rows, {"rule": "python", "code": code}, runners=[runner]) == [0]


def test_python_is_asked_only_about_what_the_rules_before_it_keep() -> None:
    code = "def keep(question, **columns): return question[0] == 'w'"
    rows = [FilterRow(columns={"question": text}) for text in (None, "", "why", "no")]
    rules = ({"rule": "length", "column": "question", "min": 1}, {"rule": "python", "code": code})
    with Sandbox(code, function="keep", node="sift") as runner:
        decision = decided(rows, *rules, runners=[None, runner])

    assert decision.kept == (2,)
    assert decision.cut_by == {"length": 2, "python": 1}


def test_python_that_fails_names_the_row() -> None:
    code = "def keep(n, **columns): return 1 / n > 0"
    with (
        Sandbox(code, function="keep", node="sift") as runner,
        pytest.raises(UserCodeError, match="sift, row 1: ZeroDivisionError"),
    ):
        kept(
            [FilterRow(columns={"n": 1}), FilterRow(columns={"n": 0})],
            {"rule": "python", "code": code},
            runners=[runner],
        )


def test_all_rules_look_at_the_table_as_it_came_in() -> None:
    rows = [
        FilterRow(score=score, columns={"q": q}, group="g")
        for score, q in ((0.0, "a"), (1.0, "a"), (1.0, "b"))
    ]

    decision = decided(
        rows,
        {"rule": "score", "min": 1.0},
        {"rule": "unique", "column": "q"},
        {"rule": "nonzero_variance"},
    )

    assert list(decision.kept) == [2]
    assert decision.cut_by == {"score": 1, "unique": 1, "nonzero_variance": 0}


def test_a_filter_may_keep_nothing() -> None:
    assert kept(scored(0.0, 0.0), {"rule": "score", "min": 1.0}) == []
    assert kept([], {"rule": "score", "min": 1.0}) == []


@pytest.mark.parametrize(
    ("pick", "places"),
    [("first", [0, 1, 5]), ("best", [1, 2, 5]), ("worst", [0, 3, 5]), ("longest", [2, 3, 5])],
)
def test_per_group_picks(pick: str, places: list[int]) -> None:
    values = [(0.1, 3), (0.9, 1), (0.8, 9), (0.0, 5), (None, 2)]
    rows = [
        FilterRow(score=score, columns={"completion": "x", "length": length}, group="a")
        for score, length in values
    ]
    rows.append(FilterRow(score=0.5, columns={"completion": "x", "length": 1}, group="b"))

    assert kept(rows, per_group={"max": 2, "pick": pick}) == places


def test_per_group_picks_at_random_but_alike_for_a_seed() -> None:
    drawn = random.Random(0)
    rows = [replace(row, seed=drawn.getrandbits(31)) for row in scored(*[0.0] * 20)]

    chosen = kept(rows, per_group={"max": 4})

    assert chosen == sorted(chosen)
    assert len(chosen) == 4
    assert chosen == kept(rows, per_group={"max": 4})
    assert chosen != [0, 1, 2, 3]
    turned = kept(rows[::-1], per_group={"max": 4})
    assert chosen == sorted(19 - place for place in turned)


def test_per_group_by_a_column_after_the_rules() -> None:
    rows = [
        FilterRow(score=score, columns={"answer": answer})
        for score, answer in ((0.0, "a"), (1.0, "a"), (1.0, "a"), (1.0, "b"))
    ]
    decision = decided(
        rows,
        {"rule": "score", "min": 1.0},
        per_group={"by": "answer", "max": 1, "pick": "first"},
    )

    assert list(decision.kept) == [1, 3]
    assert decision.cut_by == {"score": 1, "per_group": 1}


def test_spare_rows_fill_up_to_a_number_or_to_what_came_in() -> None:
    assert spare_wanted(kept=3, received=8, up_to=None) == 5
    assert spare_wanted(kept=3, received=8, up_to=4) == 1
    assert spare_wanted(kept=6, received=8, up_to=4) == 0


def counts(given: list[FilterRow], **options: Any) -> list[int]:
    return resampled(given, Resample.model_validate(options), rng=random.Random(0))


def test_resampling_weighs_by_the_power_of_the_score() -> None:
    drawn = counts(scored(0.0, 1.0, -2.0, None), rows=5000)

    assert drawn[0] == drawn[3] == 0
    assert sum(drawn) == 5000
    # 1^2 against 2^2
    assert drawn[2] / drawn[1] == pytest.approx(4.0, rel=0.15)
    plain = counts(scored(1.0, -2.0), rows=5000, exponent=1)
    assert plain[1] / plain[0] == pytest.approx(2.0, rel=0.15), "its size, not its sign"


def test_resampling_the_best_and_the_worst_of_a_group() -> None:
    rows = scored(0.0, 0.5, 1.0, group="a") + scored(0.2, 0.7, group="b")
    drawn = counts(rows, weight="max_min", rows=4000)

    assert drawn[1] == 0
    assert all(count > 800 for place, count in enumerate(drawn) if place != 1)


def test_resampling_the_best_four_times_as_often() -> None:
    drawn = counts(scored(0.0, 0.5, 1.0), weight="max_random", rows=6000)

    assert drawn[2] / drawn[0] == pytest.approx(4.0, rel=0.2)


def test_resampling_draws_as_many_rows_as_came_in() -> None:
    assert sum(counts(scored(0.0, 0.0, 0.0))) == 3
    assert counts(scored(None, None)) == [0, 0]
    assert counts([]) == []
