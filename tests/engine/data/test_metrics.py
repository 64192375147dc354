"""Metrics of evaluations on literal numbers."""

from itertools import combinations

import pytest

from coloop.data.contests import Game
from coloop.data.metrics import (
    Group,
    accuracy,
    agreement,
    best_of_k,
    brier,
    calibration,
    class_recall,
    false_negative_rate,
    false_positive_rate,
    label_accuracy,
    majority_at_k,
    majority_ratio,
    measure,
    pair_accuracy,
    pass_at,
    pass_at_k,
    preferred,
    rank_correlation,
    read_metric,
    score,
    step_f1,
    swap_consistency,
    tokens,
    weighted_majority_at_k,
)


def graded(*scores: float | None) -> Group:
    return Group(scores=scores)


def test_accuracy_counts_scores_from_a_bound_on() -> None:
    groups = [graded(1.0, 0.5, None), graded(0.0)]

    assert accuracy(groups) == pytest.approx(1 / 3)
    assert accuracy(groups, right_at=0.5) == pytest.approx(2 / 3)
    assert accuracy([graded(None)]) is None
    assert accuracy([]) is None


def test_score_and_tokens_are_means() -> None:
    assert score([graded(1.0, None), graded(0.5, 0.0)]) == 0.5
    assert tokens([Group(lengths=[2, 4]), Group(lengths=[6])]) == 4.0


@pytest.mark.parametrize(
    ("samples", "right", "k", "value"),
    [
        (1, 1, 1, 1.0),
        (4, 1, 1, 0.25),
        # 1 - C(2, 2) / C(4, 2)
        (4, 2, 2, 1 - 1 / 6),
        # 1 - C(7, 5) / C(10, 5) = 1 - 21 / 252
        (10, 3, 5, 1 - 21 / 252),
        (8, 0, 8, 0.0),
        (8, 1, 8, 1.0),
    ],
)
def test_pass_at_k_on_literal_numbers(samples: int, right: int, k: int, value: float) -> None:
    assert pass_at(samples, right, k) == pytest.approx(value)


def test_pass_at_k_is_the_share_of_draws_with_a_right_one() -> None:
    outcomes = [1, 0, 0, 1, 0, 0]
    draws = list(combinations(outcomes, 3))

    assert pass_at(6, 2, 3) == pytest.approx(sum(any(draw) for draw in draws) / len(draws))


def test_pass_at_k_wants_as_many_samples() -> None:
    with pytest.raises(ValueError, match="pass@8 needs at least 8 samples, found 4"):
        pass_at(4, 1, 8)
    assert pass_at_k([graded(1.0)], 2) is None
    assert pass_at_k([graded(1.0, 0.0), graded(0.0, 0.0), graded(1.0)], 2) == 0.5


def voted(answers: str, scores: str, selectors: tuple[float | None, ...] = ()) -> Group:
    return Group(answers=list(answers), scores=[float(s) for s in scores], selectors=selectors)


def test_the_majority_is_right_or_not() -> None:
    assert majority_at_k([voted("aab", "110")], 3) == 1.0
    assert majority_at_k([voted("abb", "100")], 3) == 0.0
    assert majority_at_k([voted("abb", "100")], 1) == 1.0


def test_ties_of_a_vote_go_to_the_first_seen() -> None:
    assert majority_at_k([voted("ba", "10")], 2) == 1.0
    assert majority_at_k([voted("ab", "01")], 2) == 0.0


def test_unreadable_answers_do_not_vote() -> None:
    group = Group(answers=["", "", "a"], scores=[0.0, 0.0, 1.0])

    assert majority_at_k([group], 3) == 1.0
    assert majority_at_k([Group(answers=["", ""], scores=[0.0, 0.0])], 2) is None


def test_weighted_votes() -> None:
    group = voted("aab", "001", (0.2, 0.2, 0.9))

    assert weighted_majority_at_k([group], 3) == 1.0
    assert weighted_majority_at_k([group], 2) == 0.0


def test_best_of_k_goes_by_the_selector() -> None:
    group = voted("abc", "010", (0.5, 0.9, None))

    assert best_of_k([group], 3) == 1.0
    assert best_of_k([group], 1) == 0.0
    assert best_of_k([voted("ab", "10", (0.5, 0.5))], 2) == 1.0
    assert best_of_k([voted("ab", "10", (None, None))], 2) is None


def test_pair_accuracy_compares_samples_of_one_problem() -> None:
    groups = [
        Group(scores=[0.9, 0.1, 0.5], labels=[1.0, 0.0, 0.0]),
        Group(scores=[0.2, 0.8], labels=[1.0, 0.0]),
        Group(scores=[0.5, 0.5], labels=[1.0, 0.0]),
        Group(scores=[0.5, None], labels=[1.0, 0.0]),
    ]

    # 2 right, 1 wrong, 1 tie
    assert pair_accuracy(groups) == pytest.approx(2.5 / 4)
    assert pair_accuracy([Group(scores=[1.0, 0.0], labels=[1.0, 1.0])]) is None


def test_preferred_pairs_speak_for_chosen() -> None:
    assert preferred([0.9, 0.1, 0.5, None]) == pytest.approx(0.5)
    assert preferred([0.3, -0.2], middle=0.0) == 0.5


def test_calibration_is_the_gap_between_promise_and_truth() -> None:
    group = Group(scores=[0.95, 0.95, 0.05, 0.05], labels=[1.0, 0.0, 0.0, 0.0])

    # bins at 0.95: |0.95 - 0.5|, at 0.05: |0.05 - 0|, half of the samples each
    assert calibration([group]) == pytest.approx(0.5 * 0.45 + 0.5 * 0.05)
    assert calibration([Group(scores=[1.0], labels=[1.0])]) == 0.0


def test_class_recall_is_that_of_the_worse_class() -> None:
    group = Group(scores=[1.0, 0.0, 0.0, 1.0], labels=[1.0, 1.0, 0.0, 0.0])
    worse = Group(scores=[0.0, 0.0], labels=[0.0, 0.0])

    assert class_recall([group, worse]) == {"right": 0.5, "wrong": 0.75}
    assert class_recall([]) == {}


def test_errors_of_a_verifier_are_counted_by_what_is_true() -> None:
    scores, labels = [0.9, 0.2, 0.6, 0.1, None, 0.9], [1.0, 1.0, 0.0, 0.0, 0.0, None]
    groups = [Group(scores=scores, labels=labels)]

    # of two right ones one is called wrong, of two wrong ones one right; None takes no part
    assert false_negative_rate(groups, right_at=0.5) == 0.5
    assert false_positive_rate(groups, right_at=0.5) == 0.5
    assert agreement(groups, right_at=0.5) == 0.5
    assert false_positive_rate([Group(scores=[1.0], labels=[1.0])]) is None
    assert agreement([Group(scores=[1.0, 0.0], labels=[1.0, 0.0])]) == 1.0


def test_the_brier_score_is_the_mean_squared_gap() -> None:
    # (0.1² + 0.8² + 0.5²) / 3
    assert brier(
        [Group(scores=[0.9, 0.8], labels=[1.0, 0.0]), Group(scores=[0.5], labels=[1.0])]
    ) == (pytest.approx(0.3))
    assert brier([Group(scores=[None], labels=[1.0])]) is None


@pytest.mark.parametrize("score", [-0.1, 1.1, 6.0])
def test_scores_that_are_no_probabilities_have_no_calibration(score: float) -> None:
    group = Group(scores=[0.5, score], labels=[1.0, 0.0])

    assert calibration([group]) is None
    assert brier([group]) is None


def test_rank_correlation_shares_ranks_of_ties() -> None:
    def correlation(scores: list[float], labels: list[float]) -> float | None:
        return rank_correlation([Group(scores=scores, labels=labels)])

    assert correlation([1.0, 2.0, 9.0], [0.1, 0.2, 0.3]) == pytest.approx(1.0)
    assert correlation([1.0, 2.0, 9.0], [0.3, 0.2, 0.1]) == pytest.approx(-1.0)
    # ranks 1.5 1.5 3 against 1 2 3: 1.5 / sqrt(1.5 * 2)
    assert correlation([1.0, 1.0, 2.0], [1.0, 2.0, 3.0]) == pytest.approx(1.5 / 3**0.5)
    assert correlation([1.0, 1.0], [1.0, 2.0]) is None


def test_majorities_without_grades() -> None:
    groups = [
        Group(answers=["a", "a", "b", ""], labels=[1.0, 1.0, 0.0, 0.0]),
        Group(answers=["c", "d"], labels=[0.5, 1.0]),
        Group(answers=["e", "e"], labels=[None, None]),
        Group(answers=["", ""], labels=[1.0, 1.0]),
    ]

    assert majority_ratio(groups) == (0.5 + 0.5 + 1.0) / 3
    assert label_accuracy(groups) == 0.5
    assert label_accuracy(groups, right_at=0.5) == 1.0
    assert label_accuracy(groups[2:]) is None


def test_names_of_metrics_are_taken_apart() -> None:
    assert (read_metric("pass@8").name, read_metric("pass@8").k) == ("pass", 8)
    assert (read_metric("accuracy").name, read_metric("accuracy").k) == ("accuracy", None)
    assert read_metric("pass@0").k is None


def test_measuring_by_name_says_what_could_not_be_had() -> None:
    groups = [voted("ab", "10"), voted("ab", "00")]

    measured = measure(["accuracy", "pass@2", "majority@2", "pass@4", "loss"], groups)

    assert measured.values == {"accuracy": 0.25, "pass@2": 0.5, "majority@2": 0.5}
    assert measured.missing == ("pass@4", "loss")


def test_class_recall_gives_both_classes_too() -> None:
    groups = [Group(scores=[1.0, 0.0], labels=[1.0, 0.0])]

    assert measure(["class_recall"], groups).values == {
        "class_recall": 1.0,
        "class_recall.right": 1.0,
        "class_recall.wrong": 1.0,
    }


def test_players_have_a_rate_and_a_rating_each_and_the_first_stands_for_all() -> None:
    won = [Game(first="new", second="old", result=result) for result in (1.0, 1.0, 0.5, 1.0)]

    values = measure(["win_rate", "elo"], [Group(games=won[:2]), Group(games=won[2:])]).values

    assert values["win_rate"] == values["win_rate.new"] == 0.875
    assert values["win_rate.old"] == 0.125
    # 4 of 5 with the draw that is added: 400 · log10(4) = 240.8 apart, around 1000
    assert values["elo"] == values["elo.new"] == pytest.approx(1120.4, abs=0.05)
    assert values["elo.old"] == pytest.approx(879.6, abs=0.05)
    assert measure(["elo", "win_rate"], [Group()]).missing == ("elo", "win_rate")


def test_pairs_that_were_judged_speak_for_their_better_side() -> None:
    assert pair_accuracy([Group(leads=[0.4, -0.1]), Group(leads=[0.0])]) == 0.5


def test_a_judge_is_consistent_where_both_orders_say_the_same() -> None:
    # the same side; the other side; a tie and a side; twice a tie
    orders = [(0.4, 0.1), (0.4, -0.1), (0.0, 0.2), (0.0, 0.0)]

    assert swap_consistency([Group(orders=orders)]) == 0.5
    assert swap_consistency([Group()]) is None


def test_step_f1_is_of_finding_wrong_steps() -> None:
    said = {0: 1.0, 1: -1.0, 2: -1.0}
    truth = {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0}  # one found, one falsely, one of which nothing is said

    assert step_f1([Group(steps=[(said, truth)])], right_at=0.001) == 0.5  # 2 / (2 + 1 + 1)
    assert step_f1([Group(steps=[({}, {0: 1.0})])]) is None
