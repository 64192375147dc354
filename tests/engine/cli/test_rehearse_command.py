"""`coloop rehearse`: what it prints, what it refuses, and its exit codes."""

import pytest

from coloop.spec.io import parse

NEVER = """
coloop: 1
name: never
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {demonstrations: {name: sft}}
  short: {kind: reward, source: {type: builtin, name: length, max: 4}}
  excellent: {kind: filter, keep: [{rule: score, min: 100.0}]}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> excellent.rollouts
  - short.scores -> excellent.scores
  - excellent.rollouts -> actor.demonstrations
schedule: {steps: 10}
"""


def test_a_rehearsal_tells_of_each_stage_and_learner(coloop, loop):
    found = coloop("rehearse", loop())

    assert found.code == 0
    assert "actor.generate" in found.out
    assert "actor.rewards: 2 updates" in found.out


def test_a_rehearsal_as_json(coloop, loop):
    told = coloop("rehearse", loop(), "--steps", "1", "--json").json

    assert told["ok"]
    assert told["learned"] == {"actor.rewards": 1}
    assert told["stages"][0]["stage"] == "problems.load"


def test_the_rehearsed_loop_can_be_read_without_being_run(coloop, loop):
    found = coloop("rehearse", loop(), "--show")

    spec = parse(found.out).spec
    assert spec is not None
    assert spec.schedule.steps == 2


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (("exact.scores", "exact.score"), 1, "exact.score"),
        (("name: adamw,", "name: adamw, warm: 1,"), 1, "warm"),
        (("coloop: 1", "coloop: ["), 2, ""),
    ],
)
def test_a_loop_that_cannot_be_rehearsed_says_why(coloop, loop, change, code, words):
    found = coloop("rehearse", loop(change))

    assert found.code == code
    assert words in found.err


def test_a_learner_without_rows_fails_the_rehearsal(coloop, tmp_path):
    path = tmp_path / "never.yaml"
    path.write_text(NEVER, encoding="utf-8")

    found = coloop("rehearse", str(path))

    assert found.code == 1
    assert "`actor.demonstrations` is live but never learned from a row" in found.out


def test_a_stage_that_fails_is_named(coloop, tmp_path):
    broken = "{type: python, code: 'def reward(prompts, completions, **columns): return [1 / 0]'}"
    text = NEVER.replace("{type: builtin, name: length, max: 4}", broken)
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")

    found = coloop("rehearse", str(path))

    assert found.code == 1
    assert "short" in found.out
    assert "ZeroDivisionError" in found.out
