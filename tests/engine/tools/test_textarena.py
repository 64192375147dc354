"""Games of TextArena as environments. `make test-extras` has the package; elsewhere the tests that
need it are skipped."""

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coloop.data.tools.bridges import arena_code, instances, textarena_games
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.instances import UserEnvironment
from coloop.data.tools.protocol import Caller
from coloop.data.tools.turns import Turn, opening_of, turn_of
from coloop.errors import DataError
from coloop.spec.environment import TextArenaEnvironment

HAS_TEXTARENA = importlib.util.find_spec("textarena") is not None
Made = Callable[..., UserEnvironment]


def go_on() -> None: ...


def source(game: str, **fields: Any) -> TextArenaEnvironment:
    return TextArenaEnvironment.model_validate({"type": "textarena", "game": game, **fields})


@pytest.fixture
def made() -> Iterator[Made]:
    if not HAS_TEXTARENA:
        pytest.skip("textarena is not installed; `make test-extras`")
    started: list[UserEnvironment] = []

    def make(game: str, players: int = 2, **fields: Any) -> UserEnvironment:
        code = instances(arena_code("game", source(game, **fields), players))
        started.append(UserEnvironment("game", code, 20.0, processes=1))
        return started[-1]

    yield make
    for environment in started:
        environment.close()


def play(environment: UserEnvironment, *moves: str, row: Any = None) -> list[Turn]:
    """The turns of one game."""
    turns = [opening_of(environment.reset("0", row or {}, 1, go_on))]
    for move in moves:
        turns.append(turn_of(environment.step("0", move, 1, go_on), turns[-1].seat))
    return turns


def test_a_game_of_two_players_is_played_to_its_end(made: Made) -> None:
    turns = play(made("Nim-v0", settings={"piles": [1, 2]}), "[1 1]", "[0 1]", "[1 1]")

    assert [turn.seat for turn in turns[:3]] == [0, 1, 0]
    assert turns[0].shown["board"] == "Current Pile:\n  pile 0: 1\n  pile 1: 2"
    assert turns[1].shown["board"] == "Current Pile:\n  pile 0: 1\n  pile 1: 1"
    assert "Player 0 removes 1 from pile 1." in turns[1].shown["news"]
    assert str(turns[0].observation).startswith("\n[GAME] Welcome to Nim, Player 0!")
    assert turns[3].is_done
    assert turns[3].rewards == {
        0: {"reward": 1.0, "score": 1.0},
        1: {"reward": -1.0, "score": 0.0},
    }
    assert turns[3].reason == "Player 0 took the last object(s)!"


def test_rows_may_have_the_arguments_of_a_game(made: Made) -> None:
    environment = made("Nim-v0", row_settings=["piles"])

    [turn] = play(environment, row={"piles": [7], "other": 1})
    assert turn.shown["board"] == "Current Pile:\n  pile 0: 7"


def test_an_invalid_move_loses_at_once_if_none_is_allowed(made: Made) -> None:
    turn = play(made("Nim-v0", errors=0), "[9 9]")[-1]

    assert turn.is_done
    assert turn.is_invalid
    assert turn.rewards[0]["reward"] == -1.0


def test_an_invalid_move_may_be_repaired_where_the_game_allows_it(made: Made) -> None:
    first, wrong, right = play(made("Nim-v0"), "[9 9]", "[0 1]")

    assert (first.seat, wrong.seat, right.seat) == (0, 0, 1)
    assert (wrong.is_invalid, right.is_invalid) == (True, False)


def test_a_game_of_one_player_is_a_tool(made: Made) -> None:
    environment = made("GuessTheNumber-v0", players=1, settings={"min_number": 1, "max_number": 2})
    tool = EnvironmentTool(environment)
    session = tool.open(Caller(columns={}, seed=1, shared_seed=1))
    prompt = tool.prompt(Caller(columns={}, seed=1, shared_seed=1), go_on)
    last = session.answer({"text": "[1]"}, go_on)
    if not last.is_last:
        last = session.answer({"text": "[2]"}, go_on)

    assert "between 1 and 2" in prompt
    assert last.is_last
    assert session.earned()["reward"] == 1.0


@pytest.mark.parametrize("game", ["TicTacToe-v0", "KuhnPoker-v0", "IteratedPrisonersDilemma-v0"])
def test_games_begin_with_rules_for_the_player_whose_turn_it_is(made: Made, game: str) -> None:
    [turn] = play(made(game))

    assert len(turn.observation) > 100
    assert turn.seat in (0, 1)


def test_a_game_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    games = {"TicTacToe-v0": ("textarena.envs.TicTacToe.env", "TicTacToeEnv")}
    monkeypatch.setattr("coloop.data.tools.bridges.textarena_games", lambda: games)

    with pytest.raises(DataError, match=r"no game `TicTacTo-v0`; did you mean `TicTacToe-v0`"):
        arena_code("game", source("TicTacTo-v0"), 2)


def test_without_the_package_a_run_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coloop.data.tools.bridges.textarena_games", dict)

    with pytest.raises(DataError, match=r"pip install 'coloop\[textarena\]'"):
        arena_code("game", source("Nim-v0"), 2)


def test_all_games_of_the_package_are_known() -> None:
    if not HAS_TEXTARENA:
        pytest.skip("textarena is not installed; `make test-extras`")

    games = textarena_games()
    assert len(games) > 100
    assert games["Nim-v0-raw"] == ("textarena.envs.Nim.env", "NimEnv")
