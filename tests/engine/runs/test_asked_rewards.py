"""Rewards that ask a limited process, in whole runs: hostile answers, a probe, on after a stop."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.data.rewards import judging
from coloop.runtime.run_files.events import RunStateName

pytestmark = pytest.mark.slow

MATHS = r"""
coloop: 1
name: maths
nodes:
  problems:
    kind: dataset
    source: {type: inline, rows: [{prompt: "a", answer: "x+1"}, {prompt: "b", answer: "x+1"}]}
    rows_per_step: 2
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout:
      completions_per_prompt: 4
      max_new_tokens: 24
      script: ['\boxed{1+x}', '\boxed{x+9^{9^{9^9}}}', '\boxed{x}']
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  right: {kind: reward, source: {type: builtin, name: math_equal}}
  probe: {kind: evaluate, instead_of: problems, every: 2, metrics: [score]}
  held_out:
    kind: dataset
    source: {type: inline, rows: [{prompt: "c", answer: "x+1"}]}
    rows_per_step: 1
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> right.rollouts
  - right.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - right.scores -> probe.scores
schedule: {steps: 4}
hardware: {preset: cpu}
"""


def test_hostile_answers_end_no_run_and_a_stopped_one_goes_on_as_if_it_never_had(
    runner: Callable[..., Any], equal: Callable[..., bool], monkeypatch: Any
) -> None:
    monkeypatch.setattr(judging, "CPU_SECONDS", 0.4)

    whole = runner(MATHS)
    stopped = runner(MATHS, stop_at=lambda event: event.get("step") == 2)
    resumed = runner(MATHS, resume=stopped)

    assert whole.state is resumed.state is RunStateName.FINISHED
    assert stopped.state is RunStateName.STOPPED
    assert any(0 < score < 1 for score in whole.metrics("right", "score/mean"))
    [first, *_] = whole.of("alert", code="reward.rows_failed")
    assert "math-verify did not decide" in first["message"]
    assert equal(whole.weights(), resumed.weights())
