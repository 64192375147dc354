"""Pairings on literal rows."""

import math
from typing import Any

import pytest

from coloop.data.pairing import (
    Pairing,
    PairRow,
    pair_directly,
    pair_rows,
    relabel,
    side_of,
    sigmoid,
)
from coloop.errors import DataError
from coloop.spec.shaping import SideColumns, SoftLabels


def rows(*scores: float | None, group: str = "g") -> list[PairRow]:
    return [
        PairRow(columns={"completion": f"{group}{place}"}, score=score, group=group)
        for place, score in enumerate(scores)
    ]


def paired(given: list[PairRow], method: str, **options: Any) -> Pairing:
    return pair_rows(given, method, **{"has_scores": True, **options})


def places(pairing: Pairing) -> list[tuple[int, int]]:
    return [(pair.chosen, pair.rejected) for pair in pairing.pairs]


def test_best_against_worst_of_each_group() -> None:
    given = rows(0.5, 1.0, 0.0, 0.2) + rows(0.1, 0.9, group="h")

    pairing = paired(given, "best_worst")

    assert places(pairing) == [(1, 2), (5, 4)]
    assert [pair.margin for pair in pairing.pairs] == [1.0, pytest.approx(0.8)]


def test_equal_scores_are_ties_dropped_and_counted() -> None:
    assert paired(rows(0.5, 0.5), "best_worst").ties == 1
    assert places(paired(rows(0.5, 0.5), "best_worst")) == []
    assert places(paired(rows(0.5, 0.5), "best_worst", drop_ties=False)) == [(0, 1)]


def test_rows_without_a_score_stand_in_no_pair() -> None:
    assert places(paired(rows(None, 1.0, 0.0, None), "best_worst")) == [(1, 2)]
    assert places(paired(rows(None, 1.0), "best_worst")) == []


def test_every_two_with_the_better_one_chosen() -> None:
    pairing = paired(rows(0.0, 1.0, 0.5), "all")

    assert places(pairing) == [(1, 0), (2, 0), (1, 2)]


def test_every_two_without_scores_put_the_earlier_one_in_front() -> None:
    assert places(paired(rows(None, None, None), "all", has_scores=False)) == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]


def test_a_margin_asks_for_a_difference() -> None:
    assert places(paired(rows(0.0, 1.0, 0.5), "margin", margin=0.6)) == [(1, 0)]


def test_pairs_of_equal_texts_are_dropped_and_counted() -> None:
    given = [PairRow(columns={"completion": "same"}, score=score) for score in (0.0, 1.0)]

    pairing = paired(given, "all")

    assert pairing.pairs == ()
    assert pairing.equal_texts == 1


def test_soft_pairs_keep_the_preference_as_a_probability() -> None:
    pairing = paired(rows(0.0, 1.0), "all", soft=SoftLabels(scale=5.0))

    assert pairing.pairs[0].probability == pytest.approx(1 / (1 + math.exp(-5.0)))
    assert paired(rows(0.0, 1.0), "all", soft=True).pairs[0].probability == pytest.approx(
        1 / (1 + math.exp(-1.0))
    )
    assert paired(rows(0.0, 1.0), "all").pairs[0].probability is None


def test_a_sigmoid_never_overflows() -> None:
    assert sigmoid(-1000.0) == 0.0
    assert sigmoid(1000.0) == 1.0
    assert sigmoid(0.0) == 0.5


def test_a_side_brings_its_completion_or_its_target() -> None:
    assert side_of({"completion": "c", "target": "t"}, None) == "c"
    assert side_of({"target": "t"}, None) == "t"
    assert side_of({"completion": "c", "target": "t"}, "target") == "t"
    with pytest.raises(
        DataError, match=r"no text or chat in column `completion` or `target`.* prompt"
    ):
        side_of({"prompt": "p"}, None)


def test_direct_pairs_drop_equal_texts() -> None:
    sides = [
        ({"target": "gold"}, {"completion": "own"}),
        ({"target": "gold"}, {"completion": "gold"}),
    ]

    assert pair_directly(sides, SideColumns(chosen="target", rejected="completion")) == ([0], 1)


def test_relabelling_swaps_below_the_middle() -> None:
    labels = relabel([1.0, 0.2, 0.5, None])

    assert [(label.place, label.is_swapped) for label in labels] == [(0, False), (1, True)]
    assert [label.place for label in relabel([0.5], drop_ties=False)] == [0]


def test_relabelling_within_another_range() -> None:
    labels = relabel([-1.0, 1.0], low=-1.0, high=1.0)

    assert [label.is_swapped for label in labels] == [True, False]


def test_soft_relabelling_keeps_the_probability() -> None:
    labels = relabel([0.4, 0.6, None], soft=True)

    assert [(label.is_swapped, label.probability) for label in labels] == [
        (False, 0.4),
        (False, 0.6),
    ]
    assert relabel([0.0], low=-1.0, high=1.0, soft=True)[0].probability == 0.5
    # with a scale: sigmoid(3 * lead), the lead from -1 to 1; 0.75 leads by a half
    [scaled] = relabel([0.75], soft=SoftLabels(scale=3.0))
    assert scaled.probability == pytest.approx(1 / (1 + math.exp(-1.5)))


def test_a_side_may_be_a_chat_and_equals_its_text() -> None:
    answer = [{"role": "assistant", "content": "2"}]

    assert side_of({"target": answer}, None) == answer
    kept, equal = pair_directly(
        [({"target": answer}, {"completion": "2"}), ({"target": answer}, {"completion": "3"})]
    )
    assert (kept, equal) == ([1], 1)
