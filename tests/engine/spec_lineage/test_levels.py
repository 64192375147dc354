"""The algebra of levels: what stands above, below and beside what."""

import itertools
import pickle

import pytest

from coloop.spec.levels import Level, align, born, gathered, join_levels, joined
from coloop.spec.lineage import Relation, ancestors, common_ancestor, match, relate, relate_pair

PROBLEMS = born("problems")
LEFT, RIGHT = born("left", PROBLEMS), born("right", PROBLEMS)
JUDGE = born("judge", LEFT)
BOTH = joined((LEFT, RIGHT))
VOICE = born("voice", BOTH)
PAIR = born("pairs", LEFT, LEFT)
OTHER = born("other")


@pytest.mark.parametrize(
    ("receiver", "scored", "relation"),
    [
        (LEFT, LEFT, Relation.SAME),
        (JUDGE, LEFT, Relation.DOWN),
        (JUDGE, PROBLEMS, Relation.DOWN),
        (LEFT, JUDGE, Relation.UP),
        (PROBLEMS, VOICE, Relation.UP),
        (LEFT, PAIR, Relation.UP),
        (LEFT, RIGHT, Relation.SIDE),
        (RIGHT, JUDGE, Relation.SIDE),
        (LEFT, OTHER, Relation.NONE),
        (VOICE, LEFT, Relation.DOWN),
    ],
)
def test_a_level_stands_somewhere_to_another(
    receiver: Level, scored: Level, relation: Relation
) -> None:
    assert relate_pair(receiver, scored) is relation


def test_nothing_rises_where_some_receivers_are_the_scored_rows() -> None:
    assert relate(frozenset({LEFT}), frozenset({LEFT, RIGHT})) is Relation.SAME
    assert relate(frozenset({LEFT, RIGHT}), frozenset({JUDGE})) is Relation.UP
    assert relate(frozenset(), frozenset({LEFT})) is Relation.NONE


def test_a_receiver_takes_the_scores_of_its_nearest_kin() -> None:
    relation, scored = match(RIGHT, frozenset({LEFT, RIGHT, JUDGE}))

    assert (relation, scored) == (Relation.SAME, frozenset({RIGHT}))
    assert match(OTHER, frozenset({LEFT})) == (Relation.NONE, frozenset())


def test_the_nearest_common_ancestor_may_be_one_of_the_two() -> None:
    assert common_ancestor(JUDGE, RIGHT) == PROBLEMS
    assert common_ancestor(JUDGE, LEFT) == LEFT
    assert common_ancestor(VOICE, JUDGE) == LEFT
    assert common_ancestor(LEFT, OTHER) is None


def test_ancestors_know_the_shortest_way_down() -> None:
    assert ancestors(VOICE) == {VOICE: 0, BOTH: 1, LEFT: 2, RIGHT: 2, PROBLEMS: 3}


def test_a_join_of_lines_is_the_lowest_of_them() -> None:
    assert join_levels([PROBLEMS, LEFT]) == LEFT
    assert join_levels([LEFT, PROBLEMS, JUDGE]) == JUDGE
    assert join_levels([LEFT, RIGHT]) == BOTH
    assert join_levels([LEFT, RIGHT, VOICE]) == VOICE


def test_a_join_is_the_same_in_whatever_order() -> None:
    assert join_levels([LEFT, RIGHT]) == join_levels([RIGHT, LEFT])
    assert join_levels([JUDGE, RIGHT, PROBLEMS]) == join_levels([RIGHT, PROBLEMS, JUDGE])
    assert joined((LEFT, RIGHT)) != joined((RIGHT, LEFT))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_tables_that_were_put_together_meet_alike_in_whatever_order(order: tuple[int, ...]) -> None:
    tables = [frozenset({LEFT, RIGHT}), frozenset({JUDGE}), frozenset({PROBLEMS})]

    met, apart = align([tables[place] for place in order])

    assert (len(met), apart) == (1, None)
    assert set(met[0]) == {LEFT, JUDGE, PROBLEMS}


def test_tables_meet_in_their_nearest_kin_only() -> None:
    left_judge, right_judge = born("judge", LEFT), born("judge", RIGHT)

    met, apart = align([frozenset({left_judge, right_judge}), frozenset({LEFT, RIGHT})])

    assert set(met) == {(left_judge, LEFT), (right_judge, RIGHT)}
    assert apart is None


def test_a_table_of_one_role_takes_its_own_part_of_a_mixed_one() -> None:
    met, _ = align([frozenset({LEFT}), frozenset({LEFT, RIGHT})])

    assert met == ((LEFT, LEFT),)


def test_tables_of_different_origin_are_apart() -> None:
    met, apart = align([frozenset({LEFT}), frozenset({RIGHT}), frozenset({OTHER})])

    assert (met, apart) == ((), (0, 2))


def test_gathered_rows_are_children_of_all_their_members() -> None:
    group = gathered("problems", (LEFT,))

    assert relate_pair(PROBLEMS, group) is Relation.UP
    assert relate_pair(group, LEFT) is Relation.DOWN
    assert group != LEFT


def test_equal_levels_are_one_object_also_after_a_journey() -> None:
    assert born("voice", joined((LEFT, RIGHT))) is VOICE
    assert pickle.loads(pickle.dumps(VOICE)) is VOICE


def test_a_deep_lineage_with_many_joins_costs_no_time() -> None:
    here = PROBLEMS
    for step in range(60):
        here = joined((born(f"a{step}", here), born(f"b{step}", here)))

    assert relate_pair(here, PROBLEMS) is Relation.DOWN
    assert len(ancestors(here)) == 1 + 60 * 3
