"""Many features in one loop, in two processes as in one: the same rows, readings and weights."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.numerics import near
from tests.engine.runs.test_ranks import TERMS, check_same_weights, finished

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STEADY = "optimizer: {name: adamw, lr: 0.05, epsilon: 1.0}"
"""AdamW that does not enlarge rounding: a step is at most as wide as the gradient."""
TIES = ("accuracy", "pair_accuracy")
"""Readings that tell which of two equal numbers is greater."""
SCORED = """
  - digit.scores -> probe.scores
  - held_out.rows -> probe.rows
schedule: {steps: 4}
hardware: {preset: cpu, pools: {main: {workers: 1}}}
"""

REFILLED = f"""
coloop: 1
name: refilled
nodes:
  sums: {{kind: dataset, source: {{type: task, task: arithmetic, size: 64}}, rows_per_step: 3}}
  held_out: {{kind: dataset, source: {{type: task, task: arithmetic, size: 6}}, rows_per_step: 3}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3-wide}}
    rollout: {{completions_per_prompt: 4, max_new_tokens: 6}}
    algorithm: {{name: grpo, clip_high: 0.28, kl: {{coefficient: 0.05, estimator: k3}}}}
    training: {{{STEADY}, mini_batch: 6, epochs: 2, micro_batch: 2}}
  start:
    kind: reference
    model: {{type: snapshot, of: actor, refresh: {{every: 2}}, ema: 0.75}}
  digit: {{kind: reward, source: {{type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}}}
  alive: {{kind: filter, keep: [{{rule: nonzero_variance}}], fill: {{groups: 3, max_rounds: 5}}}}
  probe: {{kind: evaluate, instead_of: sums, every: 2, metrics: [score]}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> digit.rollouts
  - actor.rollouts -> start.rollouts
  - digit.scores -> alive.scores
  - alive.scores -> actor.rewards
  - start.log_probs -> actor.reference{SCORED.replace("steps: 4", "steps: 4, stream: true")}
"""

FOUR_MODELS = f"""
coloop: 1
name: four-models
nodes:
  sums: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 3}}
  held_out: {{kind: dataset, source: {{type: task, task: arithmetic, size: 6}}, rows_per_step: 3}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: 3, max_new_tokens: 6}}
    algorithm: {{name: ppo, kl: {{coefficient: 0.1, estimator: k1, into: reward}}}}
    training: {{{STEADY}, mini_batch: 3, epochs: 2}}
  start: {{kind: reference, model: {{type: snapshot, of: actor, refresh: never}}}}
  critic:
    kind: critic
    model: {{type: copy, of: actor}}
    algorithm: {{returns: {{name: value}}, labels: {{name: regression}}}}
    training: {{{STEADY}, mini_batch: 3}}
  rm:
    kind: reward
    source: {{type: model}}
    model: {{type: copy, of: actor}}
    algorithm: {{name: regression}}
    training: {{{STEADY}, mini_batch: 3, micro_batch: 1}}
  digit:
    kind: reward
    source: {{type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.0}}
  probe: {{kind: evaluate, instead_of: sums, every: 2, metrics: [score]}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> digit.rollouts
  - actor.rollouts -> rm.rollouts
  - actor.rollouts -> start.rollouts
  - actor.rollouts -> critic.rollouts
  - digit.scores -> rm.labels
  - digit.scores -> critic.labels
  - rm.scores -> actor.rewards
  - start.log_probs -> actor.reference
  - critic.values -> actor.values
  - actor.returns -> critic.returns{SCORED}
"""

PREFERENCES = f"""
coloop: 1
name: preferences
mode: offline
nodes:
  given:
    kind: dataset
    source: {{type: task, task: preference, split: train, size: 24}}
    columns: {{target: chosen}}
    rows_per_step: 5
  held_out: {{kind: dataset, source: {{type: task, task: preference, size: 7}}, rows_per_step: 7}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3-wide}}
    rollout: {{max_new_tokens: 12}}
    algorithm: {{demonstrations: {{name: sft, weight: 0.5}}, pairs: {{name: kto}}}}
    training: {{{STEADY}, mini_batch: 3, epochs: 2}}
  start: {{kind: reference, model: {{type: snapshot, of: actor, refresh: {{every: 2}}}}}}
  fit: {{kind: evaluate, of: [actor.pairs], every: 2, metrics: [loss, pair_accuracy]}}
edges:
  - given.rows -> actor.demonstrations
  - given.pairs -> actor.pairs
  - given.pairs -> start.pairs
  - start.log_probs -> actor.reference
  - held_out.pairs -> fit.pairs
schedule: {{steps: 4}}
hardware: {{preset: cpu, pools: {{main: {{workers: 1}}}}}}
"""


def rows_of(ended: Any) -> list[tuple[int, str, int]]:
    """Of each stage that ran, its step and how many rows it had."""
    return sorted((one["step"], one["stage"], one["samples"]) for one in ended.of("stage.finished"))


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(REFILLED, id="refilled, streamed, averaged"),
        pytest.param(FOUR_MODELS, id="four models, two by labels"),
        pytest.param(PREFERENCES, id="pairs that are imitated as well"),
    ],
)
def test_features_together_learn_the_same_in_two_processes(
    loop: str, runner: Callable[[str], Any]
) -> None:
    alone = finished(runner(loop))
    pair = finished(runner(loop.replace("workers: 1", "workers: 2")))

    assert rows_of(pair) == rows_of(alone)
    check_same_weights(pair, alone)
    expected, found = alone.readings(), pair.readings()
    assert found.keys() == expected.keys()
    for (step, node, name), values in expected.items():
        if name not in TIES:
            assert found[step, node, name] == near(values, terms=TERMS), (step, node, name)
