"""The contract of environments: what `reset` and `step` may return."""

from typing import Any

import pytest

from coloop.data.tools.protocol import ToolFailure
from coloop.data.tools.turns import opening_of, turn_of


def test_an_observation_alone_is_an_opening() -> None:
    turn = opening_of("go")

    assert (turn.observation, turn.seat, turn.is_done) == ("go", 0, False)


def test_a_step_belongs_to_the_player_that_acted() -> None:
    turn = turn_of({"reward": 1, "parts": {"format": 0.5}}, 1)

    assert turn.rewards == {1: {"reward": 1.0, "format": 0.5}}
    assert turn.seat == 1, "the same player, without a `seat`"


def test_a_step_may_pay_several_players_and_name_the_next() -> None:
    step = {"seat": 1, "rewards": {"0": {"reward": 1, "score": 1}, "1": -1}, "reason": "mate"}
    turn = turn_of(step, 0)

    assert turn.rewards == {0: {"reward": 1.0, "score": 1.0}, 1: {"reward": -1.0}}
    assert (turn.seat, turn.reason) == (1, "mate")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("over", "returned str, expected a dict"),
        ({"done": "yes"}, "`done` that is neither true nor false"),
        ({"done": True, "observation": None}, "an `observation` that is not a text"),
        ({"seat": 1.5}, "the `seat` 1.5"),
        ({"seat": -1}, "the `seat` -1"),
        ({"reward": True}, "a `reward` that is not a number"),
        ({"rewards": {"first": 1}}, "`rewards` whose keys are no seats"),
        ({"rewards": {"0": {"win": float("nan")}}}, "the `win` nan"),
        ({"parts": [1]}, "`parts` that is not a dict"),
    ],
)
def test_a_step_that_says_something_else_is_named(result: Any, reason: str) -> None:
    with pytest.raises(ToolFailure, match=reason):
        turn_of(result, 0)


def test_an_episode_does_not_begin_with_its_end() -> None:
    with pytest.raises(ToolFailure, match="`reset` returned an episode that is over"):
        opening_of({"observation": "", "done": True})
