"""How scores reach rows: down, up level by level, across, and the three values of delivery."""

import pytest

from coloop.data.tables import ABSENT, Table, attach, join_rows
from coloop.data.tables.row import Row, child_row, joined_row, root_row

ROOT = root_row("problems", "0.0", {"prompt": "p"})


def kids(node: str, parent: Row, count: int) -> list[Row]:
    return [child_row(node, parent, k, {}) for k in range(count)]


def scores(rows: list[Row], values: list[float | None]) -> Table:
    return Table(rows=tuple(rows), scores=dict(zip((r.id for r in rows), values, strict=True)))


def test_a_score_belongs_to_its_own_row() -> None:
    rows = kids("actor", ROOT, 2)

    delivery = attach(rows, scores(rows, [1.0, 0.0]))

    assert [delivery.get(row.id, ABSENT) for row in rows] == [1.0, 0.0]


def test_what_an_ancestor_has_is_broadcast() -> None:
    rows = kids("actor", ROOT, 3)

    delivery = attach(rows, scores([ROOT], [0.5]))

    assert [delivery.get(row.id, ABSENT) for row in rows] == [0.5, 0.5, 0.5]


def test_none_is_delivered_and_a_missing_row_is_not() -> None:
    rows = kids("actor", ROOT, 2)

    delivery = attach(rows, scores(rows[:1], [None]))

    assert delivery.get(rows[0].id, ABSENT) is None
    assert delivery.get(rows[1].id, ABSENT) is ABSENT


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("mean", 0.5), ("min", 0.0), ("max", 1.0), ("sum", 1.0), ("last", 1.0)],
)
def test_scores_rise_as_the_edge_says(aggregate: str, expected: float) -> None:
    answer = kids("actor", ROOT, 1)[0]
    verdicts = kids("judge", answer, 3)

    delivery = attach([answer], scores(verdicts, [0.0, None, 1.0]), aggregate=aggregate)  # type: ignore[arg-type]

    assert delivery.get(answer.id, ABSENT) == expected


def test_an_ancestor_without_any_score_gets_none() -> None:
    answers = kids("actor", ROOT, 2)
    verdicts = kids("judge", answers[0], 2)

    delivery = attach(answers, scores(verdicts, [1.0, 1.0]), aggregate="mean")

    assert delivery.get(answers[0].id, ABSENT) == 1.0
    assert delivery.get(answers[1].id, ABSENT) is None


def test_scores_rise_level_by_level() -> None:
    answers = kids("actor", ROOT, 2)
    verdicts = [*kids("judge", answers[0], 3), *kids("judge", answers[1], 1)]

    delivery = attach([ROOT], scores(verdicts, [0.0, 0.0, 0.0, 1.0]), aggregate="mean")

    assert delivery.get(ROOT.id, ABSENT) == 0.5  # mean of 0 and 1, not of 0, 0, 0, 1


def test_only_the_nearest_scored_descendants_count() -> None:
    answer = kids("actor", ROOT, 1)[0]
    verdict = kids("judge", answer, 1)[0]

    delivery = attach([ROOT], scores([answer, verdict], [1.0, 0.0]), aggregate="mean")

    assert delivery.get(ROOT.id, ABSENT) == 1.0


def test_a_joint_score_reaches_both_of_its_parents() -> None:
    tens, units = kids("tens", ROOT, 2), kids("units", ROOT, 2)
    both = list(join_rows([Table(rows=tuple(tens)), Table(rows=tuple(units))]))

    table = scores(both, [1.0, 0.0])

    for writer in (tens, units):
        delivery = attach(writer, table, aggregate="mean")
        assert [delivery.get(row.id, ABSENT) for row in writer] == [1.0, 0.0]


def test_a_score_crosses_to_another_branch_over_the_common_ancestor() -> None:
    proposals = [child_row("proposer", ROOT, k, {}) for k in range(2)]
    answers = [row for proposal in proposals for row in kids("solver", proposal, 2)]
    critics = [row for proposal in proposals for row in kids("critic", proposal, 1)]

    delivery = attach(
        critics, scores(answers, [1.0, 0.0, 1.0, 1.0]), aggregate="mean", via="proposer"
    )

    assert [delivery.get(row.id, ABSENT) for row in critics] == [0.5, 1.0]


def test_without_an_aggregate_nothing_rises() -> None:
    answer = kids("actor", ROOT, 1)[0]

    delivery = attach([answer], scores(kids("judge", answer, 2), [1.0, 1.0]))

    assert delivery.get(answer.id, ABSENT) is ABSENT


def test_a_score_of_a_pair_reaches_its_rejected_side_as_the_opposite() -> None:
    chosen, rejected = kids("actor", ROOT, 2)
    pair = joined_row([chosen, rejected], columns={"chosen": "a", "rejected": "b"})

    plain = attach([chosen, rejected], scores([pair], [0.8]), aggregate="mean")
    ranged = attach(
        [chosen, rejected],
        Table(rows=(pair,), scores={pair.id: 0.8}, score_range=(0.0, 1.0)),
        aggregate="mean",
    )

    assert [plain.get(chosen.id, ABSENT), plain.get(rejected.id, ABSENT)] == [0.8, -0.8]
    assert [ranged.get(chosen.id, ABSENT), ranged.get(rejected.id, ABSENT)] == [
        0.8,
        pytest.approx(0.2),
    ]


def test_scores_at_positions_stay_with_the_text_they_index() -> None:
    answer = kids("actor", ROOT, 1)[0]
    steps = scores([answer], [None])
    steps.scores[answer.id] = {1: 1.0}  # type: ignore[index]

    assert attach([answer], steps)[answer.id] == {1: 1.0}
    with pytest.raises(TypeError, match="reduce"):
        attach([ROOT], steps, aggregate="mean")
