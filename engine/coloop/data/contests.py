"""Win rates, Elo ratings by the Bradley-Terry model, and majority votes.

A game has two players; its result is that of the first: 1 won, 0.5 drawn, 0 lost. The order of
games does not matter.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MEAN_RATING: Final = 1000.0
SCALE: Final = 400.0
"""Rating difference at which a player wins ten of eleven games."""
ROUNDS: Final = 10_000
CLOSE: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    first: str
    second: str
    result: float


def result_of(lead: float) -> float:
    """1 for a positive lead, 0 for a negative one, 0.5 for none."""
    return 0.5 if lead == 0 else float(lead > 0)


def win_rates(games: Sequence[Game]) -> dict[str, float]:
    """By player, in the order in which they appear, the share of games won; a draw is half a
    win."""
    won, played = defaultdict[str, float](float), defaultdict[str, int](int)
    for game in games:
        for player, result in ((game.first, game.result), (game.second, 1.0 - game.result)):
            won[player] += result
            played[player] += 1
    return {player: won[player] / count for player, count in played.items()}


def elo_ratings(games: Sequence[Game]) -> dict[str, float]:
    """Maximum-likelihood ratings by player, where the first player wins with probability
    1 / (1 + 10^((second − first) / 400)). The mean rating is 1000.

    One drawn game is added for any two players that met, so that a player who never lost has a
    finite rating.
    """
    met = {tuple(sorted((game.first, game.second))) for game in games}
    draws = [Game(first=first, second=second, result=0.5) for first, second in sorted(met)]
    won = _wins([*games, *draws])
    players = list(dict.fromkeys(name for game in games for name in (game.first, game.second)))
    strengths = dict.fromkeys(players, 1.0)
    for _ in range(ROUNDS):
        stronger = {player: _strength(player, won, strengths) for player in players}
        middle = math.exp(sum(map(math.log, stronger.values())) / len(players)) if players else 1
        stronger = {player: value / middle for player, value in stronger.items()}
        moved = max((abs(stronger[name] / strengths[name] - 1) for name in players), default=0.0)
        strengths = stronger
        if moved < CLOSE:
            break
    return {name: MEAN_RATING + SCALE * math.log10(value) for name, value in strengths.items()}


def _wins(games: Sequence[Game]) -> Mapping[str, Mapping[str, float]]:
    """Games won, by player and opponent."""
    won: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for game in games:
        won[game.first][game.second] += game.result
        won[game.second][game.first] += 1.0 - game.result
    return won


def _strength(
    player: str, won: Mapping[str, Mapping[str, float]], strengths: Mapping[str, float]
) -> float:
    """Hunter's update: wins / Σ games / (own + opponent's strength) (Annals of Statistics 32)."""
    against = won[player]
    games = {other: against[other] + won[other][player] for other in against}
    return sum(against.values()) / sum(
        count / (strengths[player] + strengths[other]) for other, count in games.items()
    )


def winner(answers: Sequence[str | None], weights: Sequence[float]) -> int | None:
    """Index of the first voter for the answer with the most weight; of equal ones, the first seen.
    Empty answers and None do not count; None if there are no others."""
    total: defaultdict[str, float] = defaultdict(float)
    first: dict[str, int] = {}
    for voter, (answer, weight) in enumerate(zip(answers, weights, strict=False)):
        if answer:
            total[answer] += weight
            first.setdefault(answer, voter)
    if not total:
        return None
    return first[max(total, key=lambda answer: (total[answer], -first[answer]))]
