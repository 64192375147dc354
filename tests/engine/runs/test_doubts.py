"""Runs that should not trust what they learn from say so; with nothing wrong they do not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.runs.test_every_node import CODING
from tests.engine.runs.test_tools import CALLING, SUMS

Run = Callable[..., Any]

STEPS = 12
ROWS = [{"prompt": f"{n}=", "answer": "" if n < STEPS // 2 else "no"} for n in range(STEPS)]
"""Of the first half every text is right, for nothing is looked for in it; of the second none."""

LOOP = {
    "coloop": 1,
    "name": "doubtful",
    "nodes": {
        "sums": {
            "kind": "dataset",
            "source": {"type": "inline", "rows": ROWS},
            "rows_per_step": 1,
            "shuffle": False,
        },
        "actor": {
            "kind": "actor",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "rollout": {"completions_per_prompt": 2, "max_new_tokens": 3},
            "algorithm": {"name": "grpo"},
        },
        "taste": {"kind": "reward", "source": {"type": "python", "code": "CODE"}},
        "exact": {
            "kind": "reward",
            "source": {"type": "builtin", "name": "exact_match", "extract": "()"},
        },
        "trust": {
            "kind": "evaluate",
            "every": 1,
            "metrics": ["false_positive_rate", "agreement", "calibration", "brier"],
        },
    },
    "edges": [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> taste.rollouts",
        "actor.rollouts -> exact.rollouts",
        "taste.scores -> actor.rewards",
        "taste.scores -> trust.scores",
        "exact.scores -> trust.labels",
    ],
    "schedule": {"steps": STEPS},
    "hardware": {"preset": "cpu"},
}

RISING = """
calls = 0
def reward(prompts, completions, **columns):
    global calls
    calls += 1
    return [min(calls / 8, 1.0) for _ in completions]
"""
HONEST = """
def reward(prompts, completions, answer, **columns):
    return [float(one == "") for one in answer]
"""

TOLD = {"learning.reward_hacking", "learning.false_positives", "learning.disagreement"}
TOLD |= {"learning.miscalibrated"}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("code", "told"), [(RISING, TOLD), (HONEST, set())])
def test_a_reward_that_parts_from_the_truth_is_told(
    code: str, told: set[str], runner: Run, finished: Callable[[Any], Any]
) -> None:
    ended = finished(runner(json.dumps(LOOP).replace('"CODE"', json.dumps(code))))

    alerts = {event["code"]: event for event in ended.of("alert")}
    assert {code for code in alerts if code in TOLD} == told
    if told:
        assert alerts["learning.reward_hacking"]["node"] == "actor"
        assert alerts["learning.reward_hacking"]["metric"] == "reward/mean"
        assert alerts["learning.false_positives"]["node"] == "trust"
        assert all(alerts[one]["hint"] for one in told)


GAME = """
coloop: 1
name: game
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  long:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {name: grpo}
  short:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 1}
    algorithm: {name: grpo}
  size:
    kind: reward
    join: concat
    source:
      type: python
      code: |
        def reward(prompts, completions, **columns):
            return [float(len(text)) for text in completions]
  played: {kind: evaluate, every: 1, metrics: [win_rate, elo]}
edges:
  - sums.rows -> long.prompts
  - sums.rows -> short.prompts
  - long.rollouts -> size.rollouts
  - short.rollouts -> size.rollouts
  - size.scores -> long.rewards
  - size.scores -> short.rewards
  - size.scores -> played.scores
schedule: {steps: 4}
hardware: {preset: cpu}
"""
EVEN = GAME.replace("float(len(text))", "1.0")


@pytest.mark.slow
@pytest.mark.parametrize(("text", "told"), [(GAME, ["played"]), (EVEN, [])])
def test_a_player_without_an_opponent_is_told(
    text: str, told: list[str], runner: Run, finished: Callable[[Any], Any]
) -> None:
    ended = finished(runner(text))

    alerts = [event for event in ended.of("alert") if event["code"] == "learning.dominating"]
    assert [event["node"] for event in alerts] == told
    if told:
        assert "long wins 100% of its games" in alerts[0]["message"]
        assert min(ended.metrics("played", "elo.long")) > 1000
    else:
        assert set(ended.metrics("played", "win_rate.long")) == {0.5}


def trying(code: str) -> str:
    """Many short texts in which such signs are run as code."""
    text = CODING.replace("schedule: {steps: 1}", "schedule: {steps: 6}")
    text = text.replace("(?P<code>.)", f"(?P<code>{code})")
    return text.replace("size: 16}, rows_per_step: 2", "size: 16}, rows_per_step: 8")


NAMES, NUMBERS = trying("[a-zA-Z]"), trying("[0-9]")
"""A letter is a name that nobody has given a value; a digit is its own."""


@pytest.mark.slow
@pytest.mark.parametrize(("text", "is_told"), [(NAMES, True), (NUMBERS, False)])
def test_a_tool_that_only_fails_is_told(
    text: str, is_told: bool, runner: Run, finished: Callable[[Any], Any]
) -> None:
    ended = finished(runner(text))

    told = [
        event["node"] for event in ended.of("alert") if event["code"] == "learning.failing_tool"
    ]
    assert ("runs" in told) is is_told
    assert max(ended.metrics("runs", "tool/calls")) > 0


UNCALLED = CALLING.replace(SUMS, "type: calculator").replace("{steps: 4}", "{steps: 12}")
CALLED = CALLING.replace("{steps: 4}", "{steps: 12}")


@pytest.mark.slow
@pytest.mark.parametrize(("text", "is_told"), [(UNCALLED, True), (CALLED, False)])
def test_a_tool_that_nobody_calls_is_told(
    text: str, is_told: bool, runner: Run, finished: Callable[[Any], Any]
) -> None:
    ended = finished(runner(text))

    told = [event for event in ended.of("alert") if event["code"] == "learning.uncalled_tool"]
    assert [event["node"] for event in told] == (["sums"] if is_told else [])
    calls = ended.metrics("sums", "tool/calls")
    assert len(calls) == 12
    assert (max(calls) == 0) is is_told
