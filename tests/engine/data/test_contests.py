"""Win rates and ratings on literal numbers, and against a slow search for the likeliest ratings."""

import math
import random
from itertools import permutations

import pytest

from coloop.data.contests import Game, elo_ratings, result_of, win_rates


def games(*results: tuple[str, str, float]) -> list[Game]:
    return [Game(first=one, second=other, result=result) for one, other, result in results]


def test_a_win_rate_counts_a_draw_as_half() -> None:
    played = games(("a", "b", 1.0), ("b", "a", 0.5), ("a", "b", 0.0), ("a", "b", 1.0))

    # a: 1 + 0.5 + 0 + 1 of four
    assert win_rates(played) == {"a": 0.625, "b": 0.375}
    assert win_rates([]) == {}
    assert [result_of(lead) for lead in (0.2, 0.0, -3.0)] == [1.0, 0.5, 0.0]


def test_ratings_of_two_follow_their_share_of_wins() -> None:
    played = games(*[("a", "b", 1.0)] * 3, ("a", "b", 0.0))

    # with one draw added a wins 3.5 of 5: 400 · log10(3.5 / 1.5) = 147.19 points ahead
    ratings = elo_ratings(played)
    assert ratings["a"] - ratings["b"] == pytest.approx(147.19, abs=0.01)
    assert (ratings["a"] + ratings["b"]) / 2 == pytest.approx(1000.0)


def test_who_never_lost_has_a_rating_too() -> None:
    # 4.5 of 5: 400 · log10(9)
    ratings = elo_ratings(games(*[("a", "b", 1.0)] * 4))

    assert ratings["a"] - ratings["b"] == pytest.approx(400 * math.log10(9), abs=0.01)
    assert elo_ratings([]) == {}


def likelihood(ratings: dict[str, float], played: list[Game]) -> float:
    """Log of how likely these results are, with a draw between every two that met."""
    met = {tuple(sorted((game.first, game.second))) for game in played}
    draws = [Game(first=one, second=other, result=0.5) for one, other in met]
    total = 0.0
    for game in [*played, *draws]:
        wins = 1 / (1 + 10 ** ((ratings[game.second] - ratings[game.first]) / 400))
        total += game.result * math.log(wins) + (1 - game.result) * math.log(1 - wins)
    return total


@pytest.mark.parametrize("seed", range(3))
def test_no_other_ratings_are_likelier(seed: int) -> None:
    chance = random.Random(seed)
    pairs = [*permutations("abcd", 2)]
    played = games(*((*chance.choice(pairs), chance.choice([0.0, 0.5, 1.0])) for _ in range(25)))
    ratings = elo_ratings(played)
    best = likelihood(ratings, played)

    for player in ratings:
        for step in (-2.0, -0.1, 0.1, 2.0):
            assert likelihood({**ratings, player: ratings[player] + step}, played) < best


def test_the_order_of_games_changes_no_rating() -> None:
    played = games(("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 0.5), ("a", "c", 1.0))

    forth, back = elo_ratings(played), elo_ratings(played[::-1])

    assert forth == pytest.approx(back, abs=1e-6)
