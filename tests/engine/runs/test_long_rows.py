"""A row that is longer than its model's positions is dropped and counted, wherever a model meets
it; the run goes on with the others, and ends only where none fits."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from coloop.runtime.roles.rows.texts import Fits
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.messages import TooLong
from coloop.workers.weights import HeldWeights

Run = Callable[..., Any]
LIMIT = 24

LOOP = """
coloop: 1
name: long-rows
nodes:
  problems: {kind: dataset, source: {type: inline, rows: ROWS}, rows_per_step: 4, shuffle: false}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo, kl: {coefficient: 0.1}}, demonstrations: {name: sft}}
  start: {kind: reference, model: {type: snapshot, of: actor}}
  length: {kind: reward, source: {type: builtin, name: length, max: 3}}
edges:
  - problems.rows -> actor.prompts
  - problems.rows -> actor.demonstrations
  - actor.rollouts -> length.rollouts
  - actor.rollouts -> start.rollouts
  - start.log_probs -> actor.reference
  - length.scores -> actor.rewards
schedule:
  phases:
    - {name: warm-up, steps: 1, learn: [actor.demonstrations]}
    - {name: rl, steps: 1, learn: [actor.rewards]}
hardware: {preset: cpu}
"""


def loop(*prompts: str) -> str:
    """A loop whose every step has these prompts."""
    return LOOP.replace("ROWS", json.dumps([{"prompt": p, "target": "7"} for p in prompts]))


@pytest.fixture
def few_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models read no more than LIMIT tokens."""
    monkeypatch.setattr(HeldWeights, "positions", property(lambda self: LIMIT))
    engine = "coloop.workers.rollout.torch_engine.TorchEngine"
    limited = property(lambda self: LIMIT, lambda self, limit: None)
    monkeypatch.setattr(f"{engine}.max_length", limited, raising=False)


LONG = "1+" * 15
FITTING = ("1+1=", "2+2=", "3+3=")


def test_a_row_that_does_not_fit_is_dropped_and_counted(
    runner: Run, few_positions: None, equal: Callable[..., bool]
) -> None:
    ended = runner(loop(*FITTING, LONG))

    assert ended.state is RunStateName.FINISHED, ended.error
    told = [
        (one["code"], one["node"], one["message"])
        for one in ended.of("alert")
        if one["code"].endswith(".too_long")
    ]
    assert [(code, node) for code, node, _ in told] == [
        ("rows.too_long", "actor"),
        ("prompts.too_long", "actor"),
    ]
    assert "actor: 1 of 4 rows are dropped: the longest needs 32 tokens" in told[0][2]
    assert "actor: 1 of 4 prompts are dropped: the longest needs 34 tokens" in told[1][2]
    assert all(f"{LIMIT} positions" in message for _, _, message in told)
    assert ended.metrics("actor", "rows/too_long") == [1.0]
    assert ended.metrics("actor", "prompts/too_long") == [1.0]
    [written] = ended.of("stage.finished", stage="actor.generate")
    assert written["samples"] == 6
    without = runner(loop(*FITTING).replace("rows_per_step: 4", "rows_per_step: 3"))
    assert equal(ended.weights(), without.weights())


@pytest.mark.parametrize(("phase", "what"), [("warm-up", "rows"), ("rl", "prompts")])
def test_where_no_row_fits_the_run_says_what_to_change(
    phase: str, what: str, runner: Run, few_positions: None
) -> None:
    other = {"warm-up": "rl", "rl": "warm-up"}[phase]
    lines = [line for line in loop(LONG, LONG).splitlines() if f"name: {other}" not in line]

    ended = runner("\n".join(lines))

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "rollout.request_refused"
    assert ended.error.node == "actor"
    assert f"actor: all 4 {what} are too long" in ended.error.message
    assert f"{LIMIT} positions" in ended.error.message
    assert {"rows": "`model`", "prompts": "`rollout.max_new_tokens`"}[what] in ended.error.message


def test_a_step_of_long_rows_is_survived_once_some_have_fitted() -> None:
    fits = Fits("actor", "prompts.too_long", "prompts", "shorten them")
    assert fits.count([], 1) == ({}, [])

    resumed = Fits("actor", "prompts.too_long", "prompts", "shorten them")
    resumed.load_state(fits.state())
    metrics, alerts = resumed.count([TooLong(tokens=9, limit=8)], 1)

    assert metrics == {"prompts/too_long": 1.0}
    assert [code for code, _ in alerts] == ["prompts.too_long"]
