"""Classes by their module as environments: Gymnasium's interface, and that of `Environment`."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coloop.data.tools.bridges import entry_code, instances
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.instances import UserEnvironment
from coloop.data.tools.protocol import Caller, ToolFailure
from coloop.data.tools.turns import opening_of, turn_of
from coloop.spec.environment import EntryEnvironment

GUESS = """
from helpers.words import lower

class Guess:
    # Gymnasium's interface, with texts
    def __init__(self, most=9, secret=None):
        self.most, self.secret = most, secret

    def reset(self, *, seed=None, options=None):
        import random
        if self.secret is None:
            self.secret = random.Random(seed).randint(0, self.most)
        return f"guess up to {self.most}", {"hint": lower("ROW ") + options["row"]["name"]}

    def step(self, action):
        right = action.strip() == str(self.secret)
        info = {"score": float(right), "parts": {"length": len(action)}}
        return ("right" if right else "no"), float(right), right, False, info
"""
PICK = """
import gymnasium

class Pick(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(3, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.integers(9, size=8), {}

    def step(self, action):
        return action, float(action), action == 3, False, {}
"""
OWN = """
class Own:
    def __init__(self, word):
        self.word = word
    def reset(self, row):
        return row["name"] + self.word
    def step(self, text):
        return {"observation": text, "done": True, "reward": 2}
"""
Made = Callable[..., UserEnvironment]


def go_on() -> None: ...


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """The environment of a file beside the loop."""
    started: list[UserEnvironment] = []
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "words.py").write_text("def lower(text): return text.lower()")

    def make(code: str, name: str, **fields: Any) -> UserEnvironment:
        (tmp_path / "games").mkdir(exist_ok=True)
        (tmp_path / "games" / "one.py").write_text(code)
        values = {"type": "entry", "entry": f"games.one:{name}", **fields}
        source = EntryEnvironment.model_validate(values)
        code_file = instances(entry_code("desk", source, tmp_path))
        started.append(UserEnvironment("desk", code_file, 5.0, processes=1))
        return started[-1]

    yield make
    for environment in started:
        environment.close()


ROW: Mapping[str, Any] = {"name": "seven", "secret": 7}


def test_a_gymnasium_class_is_an_environment(made: Made) -> None:
    environment = made(GUESS, "Guess", settings={"most": 20}, row_settings=["secret"])
    opening = opening_of(environment.reset("0", ROW, 1, go_on))
    first = turn_of(environment.step("0", "3", 1, go_on), 0)
    last = turn_of(environment.step("0", "7", 1, go_on), 0)

    assert opening.observation == "guess up to 20"
    assert opening.shown == {"hint": "row seven"}
    assert (first.observation, first.is_done) == ("no", False)
    assert last.is_done
    assert last.rewards == {0: {"reward": 1.0, "score": 1.0, "length": 1.0}}


def test_the_same_seed_begins_the_same_episode(made: Made) -> None:
    pytest.importorskip("gymnasium", reason="not installed; `make test-extras`")
    environment = made(PICK, "Pick")
    first, again, other = (
        opening_of(environment.reset(name, ROW, seed, go_on)).observation
        for name, seed in (("0", 5), ("1", 5), ("2", 1))
    )

    assert first == again
    assert first != other


def test_numbers_are_actions_where_gymnasium_wants_numbers(made: Made) -> None:
    pytest.importorskip("gymnasium", reason="not installed; `make test-extras`")
    environment = made(PICK, "Pick")
    opening_of(environment.reset("0", ROW, 1, go_on))

    wrong = turn_of(environment.step("0", "door 4", 1, go_on), 0)
    assert wrong.is_invalid
    assert wrong.observation == "`door 4` is no action: write a number from 1 to 3"
    right = turn_of(environment.step("0", "door 3", 1, go_on), 0)
    assert right.is_done
    assert right.rewards == {0: {"reward": 3.0, "score": 0.0}}


def test_a_class_with_the_interface_of_environment_may_have_arguments(made: Made) -> None:
    tool = EnvironmentTool(made(OWN, "Own", settings={"word": "!"}))
    caller = Caller(columns=ROW, seed=1, shared_seed=1)

    assert tool.prompt(caller, go_on) == "seven!"
    session = tool.open(caller)
    assert session.answer({"text": "a"}, go_on).is_last
    assert session.earned() == {"reward": 2.0, "score": 0.0}


def test_a_step_with_other_values_than_gymnasiums_is_named(made: Made) -> None:
    code = GUESS.replace(
        'return ("right" if right else "no"), float(right), right, False, info',
        "return 'no', 0.0, False, info",
    )
    environment = made(code, "Guess")
    environment.reset("0", ROW, 1, go_on)

    with pytest.raises(ToolFailure, match="`step` returned 4 values, Gymnasium's returns 5"):
        environment.step("0", "1", 1, go_on)
