"""Runs that cannot learn say so, with what to do next; runs that can say nothing of the kind."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.runs.conftest import SMALL

from coloop.runtime.run_files.events import RunStateName

NEVER = {"type": "builtin", "name": "regex", "pattern": r"never (\d)", "on_no_match": 0.0}
"""A reward that is 0 for every text of a random model."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_run_without_any_reward_does_not_end_without_a_word(
    steps: int, runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    values = {"nodes.exact.source": NEVER, "schedule.phases.1.steps": steps}

    ended = runner(tiny("grpo-arithmetic", values))

    assert ended.state is RunStateName.FINISHED, ended.error
    told = {event["code"]: event for event in ended.of("alert")}
    assert told["learning.no_update"]["level"] == "error"
    assert told["learning.no_update"]["node"] == "actor"
    assert told["learning.no_update"]["metric"] == "grad_norm"
    assert told["learning.no_update"]["hint"]
    assert "learning.no_spread" in told
    report = json.loads((ended.folder / "report.json").read_text(encoding="utf-8"))
    assert {one["code"] for one in report["alerts"]} >= {"learning.no_update", "learning.no_spread"}


def test_a_template_whose_patterns_never_match_is_told(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    parse = {"answer": "(never)"}
    text = tiny("two-halves", {"nodes.both.parse": parse})

    ended = runner(text)

    told = [event for event in ended.of("alert") if event["code"] == "learning.nothing_parsed"]
    assert [(event["node"], event["metric"]) for event in told] == [("both", "parse/none")]


ROUND = """
coloop: 1
name: talk
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  ask: {kind: template, text: "{{ prompt }}"}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  length: {kind: reward, source: {type: builtin, name: length, max: 3}}
  again: {kind: template, code: "def write(prompt, **columns):\\n    RULE"}
edges:
  - sums.rows -> ask.rows
  - ask.rows -> actor.prompts
  - actor.rollouts -> length.rollouts
  - length.scores -> actor.rewards
  - actor.rollouts -> again.rows
  - {from: again.rows, to: ask.rows, rounds: 2}
schedule: {steps: 2}
hardware: {preset: cpu}
"""
FORGETS = "text = {'prompt': prompt}"
GOES_ON = "return {'prompt': prompt}"
ENDS = "return None if len(prompt) % 2 else {'prompt': prompt}"


@pytest.mark.parametrize(("rule", "told"), [(FORGETS, 1), (GOES_ON, 0), (ENDS, 0)])
def test_a_template_that_lets_no_row_go_round_is_told(
    rule: str, told: int, runner: Callable[..., Any]
) -> None:
    ended = runner(ROUND.replace("RULE", rule))

    assert ended.state is RunStateName.FINISHED, ended.error
    found = [event for event in ended.of("alert") if event["code"] == "learning.nothing_goes_on"]
    assert [(event["node"], event["metric"]) for event in found] == [("again", "rows/none")] * told
    report = json.loads((ended.folder / "report.json").read_text(encoding="utf-8"))
    at_the_end = [one for one in report["alerts"] if one["code"] == "learning.nothing_goes_on"]
    assert [(one["node"], one["step"]) for one in at_the_end] == [("again", 2)] * told


LATER = SMALL.replace("schedule: {steps: 2}", "schedule: {steps: 2, learn: {actor: RULE}}")


@pytest.mark.parametrize("rule", ["{rows: 100}", "{after: 2}"])
def test_a_learner_that_never_came_to_learn_is_told_at_the_end(
    rule: str, runner: Callable[..., Any]
) -> None:
    ended = runner(LATER.replace("RULE", rule))

    assert ended.state is RunStateName.FINISHED, ended.error
    told = [event for event in ended.of("alert") if event["code"] == "learning.untaught"]
    assert [(event["node"], event["level"]) for event in told] == [("actor", "error")]
    assert "`actor.rewards`" in told[0]["message"]
    report = json.loads((ended.folder / "report.json").read_text(encoding="utf-8"))
    assert "learning.untaught" in {one["code"] for one in report["alerts"]}


def test_what_was_learned_before_a_stop_counts_after_it(runner: Callable[..., Any]) -> None:
    once = LATER.replace("RULE", "{every: 2}")
    stopped = runner(once, stop_at=lambda event: event["type"] == "sample")

    ended = runner(once, resume=stopped)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert "learning.untaught" not in ended.alerts()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["grpo-arithmetic", "spin", "two-halves"])
def test_runs_that_learn_raise_no_red_alert(
    name: str, runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    ended = runner(tiny(name))

    assert ended.of("alert", level="error") == []
