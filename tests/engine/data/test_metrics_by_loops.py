"""Metrics of evaluations against slow loops that follow their definitions, on random groups."""

import random
from itertools import combinations

import pytest

from coloop.data.metrics import (
    Group,
    agreement,
    best_of_k,
    brier,
    calibration,
    false_negative_rate,
    false_positive_rate,
    majority_at_k,
    pair_accuracy,
    pass_at_k,
    rank_correlation,
    step_f1,
    weighted_majority_at_k,
)

SEEDS = range(4)
RIGHT = 0.5


def groups_of(seed: int) -> list[Group]:
    """Problems with up to seven samples; now and then nothing is said of one."""
    chance = random.Random(seed)

    def number() -> float | None:
        return None if chance.random() < 0.1 else round(chance.random(), 2)

    def group() -> Group:
        size = chance.randint(0, 7)
        return Group(
            scores=[number() for _ in range(size)],
            labels=[number() for _ in range(size)],
            selectors=[number() for _ in range(size)],
            answers=[chance.choice(["a", "b", "c", ""]) for _ in range(size)],
            steps=[
                (
                    {
                        place: chance.choice([0.0, 1.0])
                        for place in range(3)
                        if chance.random() < 0.8
                    },
                    {place: chance.choice([0.0, 1.0]) for place in range(3)},
                )
                for _ in range(size)
            ],
        )

    return [group() for _ in range(12)]


def both(groups: list[Group]) -> list[tuple[float, float]]:
    return [
        (score, label)
        for group in groups
        for score, label in zip(group.scores, group.labels, strict=True)
        if score is not None and label is not None
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_errors_agreement_and_brier_by_counting(seed: int) -> None:
    groups = groups_of(seed)
    said = both(groups)
    counts = {(a, b): 0 for a in (True, False) for b in (True, False)}
    for score, label in said:
        counts[score >= RIGHT, label >= RIGHT] += 1

    wrong, right = counts[True, False] + counts[False, False], counts[True, True]
    right += counts[False, True]
    assert false_positive_rate(groups, right_at=RIGHT) == pytest.approx(counts[True, False] / wrong)
    assert false_negative_rate(groups, right_at=RIGHT) == pytest.approx(counts[False, True] / right)
    same = counts[True, True] + counts[False, False]
    assert agreement(groups, right_at=RIGHT) == pytest.approx(same / len(said))
    assert brier(groups) == pytest.approx(sum((s - label) ** 2 for s, label in said) / len(said))


@pytest.mark.parametrize("seed", SEEDS)
def test_calibration_bin_by_bin(seed: int) -> None:
    said = both(groups_of(seed))
    error = 0.0
    for place in range(10):
        low, high = place / 10, (place + 1) / 10
        inside = [(s, t) for s, t in said if low <= s < high or (place == 9 and s == 1.0)]
        if inside:
            mean = sum(s for s, _ in inside) / len(inside)
            share = sum(t for _, t in inside) / len(inside)
            error += len(inside) / len(said) * abs(mean - share)

    assert calibration(groups_of(seed)) == pytest.approx(error)


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_of_one_problem_two_by_two(seed: int) -> None:
    won = []
    for group in groups_of(seed):
        for (s, label), (other, other_label) in combinations(both([group]), 2):
            if label > other_label:
                won.append(1.0 if s > other else 0.5 if s == other else 0.0)
            if label < other_label:
                won.append(1.0 if s < other else 0.5 if s == other else 0.0)

    assert pair_accuracy(groups_of(seed)) == pytest.approx(sum(won) / len(won))


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_counted_one_by_one(seed: int) -> None:
    said = both(groups_of(seed))

    def rank(values: list[float], value: float) -> float:
        return sum(one < value for one in values) + (sum(one == value for one in values) + 1) / 2

    columns = [[s for s, _ in said], [label for _, label in said]]
    left, right = ([rank(values, value) for value in values] for values in columns)
    middle = (len(said) + 1) / 2
    top = sum((a - middle) * (b - middle) for a, b in zip(left, right, strict=True))
    bottom = sum((a - middle) ** 2 for a in left) * sum((b - middle) ** 2 for b in right)

    assert rank_correlation(groups_of(seed)) == pytest.approx(top / bottom**0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_chances_over_all_draws_of_k(seed: int) -> None:
    groups = groups_of(seed)
    shares = []
    for group in groups:
        graded = [score for score in group.scores if score is not None]
        draws = [*combinations(graded, 3)]
        if draws:
            shares.append(sum(any(s >= RIGHT for s in draw) for draw in draws) / len(draws))

    assert pass_at_k(groups, 3, right_at=RIGHT) == pytest.approx(sum(shares) / len(shares))


def chosen_by(groups: list[Group], worth: str, k: int) -> float:
    """Share of problems whose chosen text is right: the first of the greatest worth."""
    found = []
    for group in groups:
        best, place = None, None
        for one in range(min(k, len(group.scores))):
            value: float | None
            if worth == "selector":
                value = group.selectors[one]
            else:
                alike = [n for n in range(min(k, len(group.scores))) if same(group, n, one)]
                weights = [1.0 if worth == "votes" else group.selectors[n] or 0.0 for n in alike]
                value = sum(weights) if group.answers[one] else None
            if value is not None and (best is None or value > best + 1e-12):
                best, place = value, one
        grade = None if place is None else group.scores[place]
        if grade is not None:
            found.append(float(grade >= RIGHT))
    return sum(found) / len(found)


def same(group: Group, one: int, other: int) -> bool:
    return group.answers[one] == group.answers[other]


@pytest.mark.parametrize("seed", SEEDS)
def test_texts_are_chosen_one_by_one(seed: int) -> None:
    groups = groups_of(seed)

    assert best_of_k(groups, 4, right_at=RIGHT) == chosen_by(groups, "selector", 4)
    assert majority_at_k(groups, 4, right_at=RIGHT) == chosen_by(groups, "votes", 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_steps_found_one_by_one(seed: int) -> None:
    groups = groups_of(seed)
    pairs = [steps for group in groups for steps in group.steps]
    wrong = {
        (n, place) for n, (_, truth) in enumerate(pairs) for place in truth if truth[place] < 1
    }
    called = {(n, place) for n, (said, _) in enumerate(pairs) for place in said if said[place] < 1}
    precision, recall = len(wrong & called) / len(called), len(wrong & called) / len(wrong)

    assert step_f1(groups) == pytest.approx(2 * precision * recall / (precision + recall))


@pytest.mark.parametrize("seed", SEEDS)
def test_votes_that_weigh_one_by_one(seed: int) -> None:
    groups = groups_of(seed)

    found = weighted_majority_at_k(groups, 5, right_at=RIGHT)

    assert found == pytest.approx(chosen_by(groups, "weights", 5), abs=1e-9)
