"""Searches in whole runs: a judge of steps learns from their labels; resumed, probed, refilled."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.runs.test_resume import at_stage

from coloop.runtime.run_files.events import RunStateName

Run = Callable[..., Any]

RIGHT = '{type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.0}'

TEXTS = f"""
coloop: 1
name: searching
nodes:
  problems: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 2}}
  policy:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: 4, max_new_tokens: 48}}
  right: {{kind: reward, source: {RIGHT}}}
  tree:
    kind: search
    method: monte_carlo
    step_separator: "1"
    completions: 3
    budget: {{tokens: 9000}}
  prm:
    kind: verifier
    method: discriminative
    model: {{type: copy, of: policy}}
    read: {{granularity: step, step_separator: "1", reduce: min}}
    algorithm: {{labels: {{name: outcome, soft: true}}}}
    training: {{optimizer: {{name: adamw, lr: 1.0e-3}}}}
edges:
  - problems.rows -> policy.prompts
  - policy.rollouts -> tree.rows
  - policy.policy -> tree.policy
  - right.check -> tree.outcome
  - tree.step_scores -> prm.labels
schedule: {{steps: 2}}
hardware: {{preset: cpu}}
run: {{seed: 5}}
"""

PROMPTS = (
    TEXTS.replace("monte_carlo", "binary_search")
    .replace("  - problems.rows -> policy.prompts\n  - policy.rollouts", "  - problems.rows")
    .replace("{tokens: 9000}", "{searches_per_row: 3, tokens: 4000}")
)

TREES = PROMPTS.replace("binary_search", "puct").replace("completions: 3", "expand: {samples: 3}")

PROOFS = """
coloop: 1
name: proving
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 2}
  prover:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 2}
    algorithm: {demonstrations: {name: sft}}
    training: {optimizer: {name: adamw, lr: 3.0e-3}}
  value: {kind: critic, model: {type: shared, with: prover}, algorithm: {name: regression}}
  kernel:
    kind: tool
    type: environment
    code: |
      class Environment:
          def reset(self, row):
              return row["prompt"]

          def step(self, state, action):
              kind = sum(map(ord, action)) % 4
              if kind == 0:
                  raise ValueError("that leads nowhere")
              if kind == 1:
                  return [state + "a", state + "b"]
              return [] if len(state) > 7 else [state + "c"]
  tree:
    kind: search
    method: and_or
    expand: {samples: 8, progressive: {c: 2.0, alpha: 0.5}}
    step_reward: -1.0
    give: visited
    budget: {searches_per_row: 6, tokens: 4000}
edges:
  - problems.rows -> tree.rows
  - prover.policy -> tree.policy
  - value.check -> tree.value
  - kernel.tool -> tree.tools
  - tree.rollouts -> prover.demonstrations
  - tree.step_scores -> value.labels
schedule: {steps: 3}
hardware: {preset: cpu}
run: {seed: 5}
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "text", [TEXTS, PROMPTS, TREES], ids=["monte_carlo", "binary_search", "puct"]
)
def test_a_judge_of_steps_learns_what_a_search_found(
    text: str, runner: Run, equal: Callable[..., bool]
) -> None:
    whole = runner(text)

    assert whole.state is RunStateName.FINISHED, whole.error
    assert min(whole.metrics("tree", "search/labels")) > 0
    assert min(whole.metrics("tree", "search/rollouts")) >= 3
    assert len(whole.metrics("prm", "loss")) == 2

    stopped = runner(text, stop_at=at_stage("tree.generate", 2))
    resumed = runner(text, resume=stopped)

    assert stopped.state is RunStateName.STOPPED
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole.weights())


@pytest.mark.slow
def test_a_prover_and_its_value_learn_from_what_a_search_visited(
    runner: Run, equal: Callable[..., bool]
) -> None:
    whole = runner(PROOFS)

    assert whole.state is RunStateName.FINISHED, whole.error
    assert max(whole.metrics("tree", "search/labels")) > 0
    assert whole.metrics("value", "loss")
    assert len(whole.metrics("prover", "loss")) == 3

    stopped = runner(PROOFS, stop_at=at_stage("tree.generate", 3))
    resumed = runner(PROOFS, resume=stopped)

    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole.weights())
