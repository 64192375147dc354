"""Environments in whole runs: two policies learn from the same episodes, are probed and resumed."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.runs.test_resume import at_stage

from coloop.runtime.run_files.events import RunStateName

Run = Callable[..., Any]

WORLD = """
class Environment:
    def reset(self, row):
        self.seat, self.turns = 0, 0
        return {"observation": row["prompt"], "seat": 0}
    def step(self, text):
        self.turns += 1
        reward = {self.seat: sum(sign.isdigit() for sign in text)}
        self.seat = 1 - self.seat
        return {"observation": f"{len(text)}:", "seat": self.seat, "rewards": reward,
                "done": self.turns == 3}
"""
GYM = """
class Signs:
    def reset(self, seed=None, options=None):
        return options["row"]["prompt"], {}
    def step(self, text):
        return "", sum(sign.isdigit() for sign in text), True, False, {}
"""

PLAYING = """
coloop: 1
name: playing
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 3}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 8}, rows_per_step: 2}
  world:
    kind: environment
    episodes: 2
    seats: in_turn
    source:
      type: python
      processes: 1
      code: |CODE
  first:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  second:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {max_new_tokens: 5}
    algorithm: {name: rloo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  probe: {kind: evaluate, instead_of: problems, every: 2, greedy: true, metrics: [score]}
edges:
  - problems.rows -> world.rows
  - first.policy -> world.policy
  - second.policy -> world.policy
  - world.scores -> first.rewards
  - world.scores -> second.rewards
  - held_out.rows -> probe.rows
  - world.scores -> probe.scores
schedule: {steps: 4}
hardware: {preset: cpu}
run: {seed: 5}
""".replace("CODE", WORLD.replace("\n", "\n        "))

ALONE = """
coloop: 1
name: alone
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 3}
  world: {kind: environment, episodes: 2, source: {type: entry, entry: "signs:Signs"}}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
edges:
  - problems.rows -> world.rows
  - actor.policy -> world.policy
  - world.scores -> actor.rewards
schedule: {steps: 2}
hardware: {preset: cpu}
"""

ARENA = ALONE.replace(
    'source: {type: entry, entry: "signs:Signs"}',
    "players: 2, source: {type: textarena, game: Nim-v0, errors: 0, processes: 1}",
)


def test_two_policies_learn_from_the_same_episodes(runner: Run) -> None:
    ended = runner(PLAYING)

    assert ended.state is RunStateName.FINISHED, ended.error
    for node in ("first", "second"):
        assert len(ended.metrics(node, "grad_norm")) == 4
        assert max(ended.metrics(node, "grad_norm")) > 0
    assert ended.metrics("world", "episode/turns") == [3.0] * 4
    assert len(ended.metrics("probe", "score")) == 3


@pytest.mark.slow
def test_a_stopped_run_with_an_environment_goes_on_as_if_it_had_never_stopped(
    runner: Run, equal: Callable[..., bool]
) -> None:
    whole = runner(PLAYING)
    stopped = runner(PLAYING, stop_at=at_stage("world.generate", 3))
    resumed = runner(PLAYING, resume=stopped)

    assert stopped.state is RunStateName.STOPPED
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole.weights())


def test_a_class_beside_the_loop_is_played(runner: Run, tmp_path: Path) -> None:
    (tmp_path / "signs.py").write_text(GYM, encoding="utf-8")
    ended = runner(ALONE, root=tmp_path)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("world", "episode/turns") == [1.0, 1.0]


def test_a_game_of_textarena_is_played(runner: Run) -> None:
    if importlib.util.find_spec("textarena") is None:
        pytest.skip("textarena is not installed; `make test-extras`")
    ended = runner(ARENA)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("world", "episode/failed") == [0.0, 0.0]


def test_without_the_package_the_run_ends_at_once_with_the_way_to_get_it(
    runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coloop.data.tools.bridges.textarena_games", dict)
    ended = runner(ARENA)

    assert ended.state is RunStateName.FAILED
    assert "pip install 'coloop[textarena]'" in str(ended.error)
