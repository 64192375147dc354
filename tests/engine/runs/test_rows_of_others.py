"""An actor with a critic learns rows that others wrote where the critic values them; else they are
told once, with the missing edge."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.runtime.run_files.events import RunStateName

Run = Callable[..., Any]

DIGITS = '{type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.1}'
ALONE = f"""
coloop: 1
name: valued
nodes:
  problems: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 2}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: 3, max_new_tokens: 6}}
    algorithm: {{name: ppo, off_policy: {{shaping: 0.1}}}}
    training: {{optimizer: {{name: adamw, lr: 1.0e-3}}}}
  other:
    kind: actor
    model: {{type: snapshot, of: actor, refresh: never}}
    rollout: {{completions_per_prompt: 2, max_new_tokens: 6}}
  critic: {{kind: critic, model: {{type: shared, with: actor}}, algorithm: {{name: value}}}}
  own: {{kind: reward, source: {DIGITS}}}
  others: {{kind: reward, source: {DIGITS}}}
edges:
  - problems.rows -> actor.prompts
  - problems.rows -> other.prompts
  - actor.rollouts -> own.rollouts
  - other.rollouts -> others.rollouts
  - own.scores -> actor.rewards
  - others.scores -> actor.rewards
  - actor.rollouts -> critic.rollouts
  - critic.values -> actor.values
  - actor.returns -> critic.returns
schedule: {{steps: 1}}
hardware: {{preset: cpu}}
run: {{seed: 5}}
"""
VALUED = ALONE.replace(
    "  - critic.values", "  - other.rollouts -> critic.rollouts\n  - critic.values"
)


@pytest.mark.parametrize(("text", "valued", "missed"), [(VALUED, 10, 0), (ALONE, 6, 4)])
def test_rows_of_others_are_learned_where_a_critic_values_them(
    text: str, valued: int, missed: int, runner: Run
) -> None:
    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    [scored] = ended.of("stage.finished", stage="critic.score")
    assert scored["samples"] == valued
    assert ended.metrics("actor", "rows/left_out") == [missed / 10]
    assert (ended.metrics("actor", "reward/others") == [0.0]) is (missed > 0)
    told = [event["message"] for event in ended.of("alert") if "no values" in event["message"]]
    assert told == [event["message"] for event in ended.of("alert", code="learning.left_out")]
    assert len(told) == (missed > 0)
    assert all(one.startswith("actor: 40% of its rows are dropped from the update") for one in told)
    assert all("`other.rollouts -> critic.rollouts`" in one for one in told)
