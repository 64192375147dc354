"""Runs that should not trust what they learn from say so; with nothing wrong they do not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

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
