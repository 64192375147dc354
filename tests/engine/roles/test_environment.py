"""Episodes of several policies in an environment, over writers of a script."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.roles.conftest import ACTOR

from coloop.errors import DataError, UserCodeError

Bench = Callable[..., Any]

TAKE = """
class Environment:
    # Two players take one or two of `left` things in turn; who takes the last one wins.
    def reset(self, row):
        self.left, self.seat = row["left"], 0
        return {"observation": str(self.left), "seat": 0, "shown": {"sign": "ab"[self.seat]}}

    def step(self, text):
        if text == "hang":
            while True: pass
        if text == "print":
            print("x" * 3_000_000)
        if text == "die":
            import os
            os._exit(3)
        if text == "raise":
            raise RuntimeError("broken")
        if text == "lie":
            return {"done": "yes"}
        if text == "elsewhere":
            return {"seat": 5}
        taken = {"1": 1, "2": 2}.get(text)
        if taken is None or taken > self.left:
            return {"done": True, "rewards": {self.seat: -1, 1 - self.seat: 1}, "invalid": True,
                    "reason": "invalid move"}
        self.left -= taken
        if self.left == 0:
            return {"done": True, "rewards": {self.seat: {"reward": 1, "score": 1},
                                              1 - self.seat: {"reward": -1, "score": 0}}}
        self.seat = 1 - self.seat
        shown = {"sign": "ab"[self.seat]}
        return {"observation": str(self.left), "seat": self.seat, "shown": shown}
"""


def world(code: str = TAKE, **fields: Any) -> dict[str, Any]:
    source = {"type": "python", "code": code, "processes": 2, "timeout_seconds": 1.0}
    return {"kind": "environment", "source": {**source, **fields.pop("source", {})}, **fields}


def played(bench: Bench, rows_of: Any, node: dict[str, Any], *lefts: int, write: Any) -> Any:
    """A loop in which `white` and `black` play, once from each number of things."""
    nodes = {"starts": rows_of(*({"left": left} for left in lefts)), "game": node}
    nodes |= {"white": ACTOR, "black": ACTOR}
    edges = ["starts.rows -> game.rows", "white.policy -> game.policy"]
    loop = bench(nodes, [*edges, "black.policy -> game.policy"])
    loop.hosts.write = lambda prompt, k: write(prompt)
    return loop


def columns(loop: Any, *names: str) -> list[tuple[Any, ...]]:
    rows = loop.give("game.rollouts").rows
    return [tuple(row.columns.get(name) for name in names) for row in rows]


def test_policies_act_in_turns_and_each_row_belongs_to_its_writer(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    loop = played(bench, rows_of, world(), 3, write=lambda prompt: "1")
    table = loop.give("game.scores")

    # 3 - 1 - 1 - 1: white takes the last one
    assert [row.writer for row in table.rows] == ["white", "black", "white"]
    assert [row.columns["prompt"] for row in table.rows] == ["3", "2", "1"]
    assert scores(table) == [1.0, -1.0, 1.0]
    assert [row.tokens.text for row in table.rows] == ["1", "1", "1"]
    assert [row.columns["seat"] for row in table.rows] == [0, 1, 0]


def test_what_is_earned_counts_less_one_own_turn_earlier(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    loop = played(bench, rows_of, world(discount=0.5), 5, write=lambda prompt: "1")

    # white has turns 1, 3, 5 and earns 1 with the last: 0.25, 0.5, 1; black loses with turn 4
    assert scores(loop.give("game.scores")) == [0.25, -0.5, 0.5, -1.0, 1.0]


def test_seats_change_from_episode_to_episode(bench: Bench, rows_of: Any) -> None:
    node = world(episodes=2, seats="in_turn")
    loop = played(bench, rows_of, node, 1, write=lambda prompt: "1")

    assert [row.writer for row in loop.give("game.rollouts").rows] == ["white", "black"]
    assert columns(loop, "episode", "seat") == [(0, 0), (1, 0)]


def test_one_policy_may_play_all_seats(bench: Bench, rows_of: Any) -> None:
    nodes = {"starts": rows_of({"left": 2}), "game": world(players=2), "self": ACTOR}
    loop = bench(nodes, ["starts.rows -> game.rows", "self.policy -> game.policy"])
    loop.hosts.write = lambda prompt, k: "1"

    assert [row.writer for row in loop.give("game.rollouts").rows] == ["self", "self"]
    assert columns(loop, "seat") == [(0,), (1,)]


def test_prompts_and_actions_are_rendered(bench: Bench, rows_of: Any) -> None:
    node = world(template={"text": "{{ sign }}{{ observation }} of {{ left }}:"})
    node["action"] = "{{ completion[-1] }}"
    loop = played(bench, rows_of, node, 2, write=lambda prompt: "take 1")

    assert columns(loop, "prompt", "completion", "action") == [
        ("a2 of 2:", "take 1", "1"),
        ("b1 of 2:", "take 1", "1"),
    ]


def test_an_invalid_move_is_counted(bench: Bench, rows_of: Any, scores: Any) -> None:
    loop = played(bench, rows_of, world(), 3, write=lambda prompt: "9" if prompt == "2" else "1")

    assert scores(loop.give("game.scores")) == [1.0, -1.0]
    assert columns(loop, "invalid", "reason") == [(False, "invalid move"), (True, "invalid move")]
    assert loop.outcomes["game.generate"].metrics["episode/invalid"] == 0.5


def test_an_episode_that_never_ends_is_cut(bench: Bench, rows_of: Any) -> None:
    endless = "class Environment:\n  def reset(self, row): return 'go'"
    endless += "\n  def step(self, text): return {'observation': 'on', 'reward': 1}"
    loop = played(bench, rows_of, world(endless, max_turns=4), 1, write=lambda prompt: "1")

    # seat 0 has all turns, because the environment names no other
    assert [row.writer for row in loop.give("game.rollouts").rows] == ["white"] * 4
    assert loop.outcomes["game.generate"].metrics["episode/cut"] == 1.0


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        ("hang", r"game: `step` 1 from row starts.*did not answer within 1 seconds"),
        ("die", r"game: `step` 1 from row starts.*ended its process"),
        ("raise", r"game: `step` 1 from row starts.*RuntimeError: broken \(line 17\)"),
        ("lie", r"game: `step` 1 from row starts.*`done` that is neither true nor false"),
        ("elsewhere", r"seat 5, but there are 2 players: set `players`"),
    ],
)
def test_what_an_environment_does_wrong_is_named(
    bench: Bench, rows_of: Any, move: str, reason: str
) -> None:
    loop = played(bench, rows_of, world(), 3, write=lambda prompt: move)

    with pytest.raises(UserCodeError, match=reason):
        loop.give("game.rollouts")


@pytest.mark.parametrize("move", ["hang", "die", "raise"])
def test_other_episodes_go_on(bench: Bench, rows_of: Any, scores: Any, move: str) -> None:
    """An episode that fails is left out; others of its process are rebuilt."""
    loop = played(
        bench,
        rows_of,
        world(on_error="skip_row", source={"processes": 1}),
        *(3, 7, 3),
        write=lambda prompt: move if prompt == "6" else "1",
    )
    table = loop.give("game.scores")

    assert scores(table) == [1.0, -1.0, 1.0] * 2
    assert {row.columns["left"] for row in table.rows} == {3}
    assert loop.outcomes["game.generate"].metrics["episode/failed"] == pytest.approx(1 / 3)
    assert [code for code, _ in loop.alerts] == ["environment.failed"]


def test_what_it_prints_is_cut(bench: Bench, rows_of: Any) -> None:
    loop = played(bench, rows_of, world(), 3, write=lambda prompt: "print")
    loop.give("game.rollouts")

    assert 60_000 < len(loop.outcomes["game.generate"].printed) < 80_000


def test_a_reset_that_raises_is_named(bench: Bench, rows_of: Any) -> None:
    loop = played(bench, rows_of, world(TAKE.replace('row["left"]', 'row["much"]')), 3, write=str)

    with pytest.raises(UserCodeError, match=r"game: `reset` of row starts.*KeyError: 'much'"):
        loop.give("game.rollouts")


def test_code_that_cannot_be_loaded_ends_the_run_at_once(bench: Bench, rows_of: Any) -> None:
    with pytest.raises(UserCodeError, match=r"game.*nothing_of_the_kind"):
        played(bench, rows_of, world("import nothing_of_the_kind"), 3, write=str)


def test_a_class_that_is_not_there_is_named(bench: Bench, rows_of: Any) -> None:
    node = {"kind": "environment", "source": {"type": "entry", "entry": "no_such_games.maze:Maze"}}

    with pytest.raises(DataError, match=r"game: source.entry: there is no module `no_such_games"):
        played(bench, rows_of, node, 3, write=str)
