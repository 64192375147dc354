"""A policy as a tool of another: its texts are rows of its own, which learn from what became of the
text that asked."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.runs.test_resume import at_stage

from coloop.runtime.run_files.events import RunStateName

Run = Callable[..., Any]

ASKING = """
coloop: 1
name: asking
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 3}
  asks:
    kind: tool
    type: model
    call: "(?P<question>.)(?:0|1|2|3|a|e|o|u|x|z)"
    template: {text: "{{ question }}?"}
    result: "[{{ value }}]"
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 12, turns: {max: 3}}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  helper:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  digits:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.1}
  own:
    kind: reward
    source: {type: builtin, name: regex, pattern: "[a-z]", on_no_match: 0.3}
edges:
  - problems.rows -> actor.prompts
  - helper.policy -> asks.policy
  - asks.tool -> actor.tools
  - actor.rollouts -> digits.rollouts
  - digits.scores -> actor.rewards
  - digits.scores -> helper.rewards
  - own.scores -> helper.rewards
  - asks.rollouts -> own.rollouts
schedule: {steps: 3}
hardware: {preset: cpu}
run: {seed: 5}
"""


def loop(*, shared: bool = False) -> str:
    """With the helper on weights of its own, or on those of the one that asks."""
    if not shared:
        return ASKING
    before, helper = ASKING.split("  helper:\n")
    helper = helper.replace(
        "{type: scratch, architecture: tiny-qwen3}", "{type: shared, with: actor}"
    )
    helper = helper.replace("    training: {optimizer: {name: adamw, lr: 1.0e-3}}\n", "", 1)
    return f"{before}  helper:\n{helper}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("shared", [False, True], ids=["own weights", "shared weights"])
def test_what_is_asked_are_rows_that_learn(shared: bool, runner: Run) -> None:
    ended = runner(loop(shared=shared))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("asks", "tool/calls")) > 0.2
    assert max(ended.metrics("helper", "rollout/tokens")) > 8
    assert max(ended.metrics("helper", "reward/std")) > 0
    assert max(ended.metrics("actor", "turns/tokens")) > 0.5
    assert "helper.generate" not in ended.stages(1)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True], ids=["own weights", "shared weights"])
def test_a_stopped_run_that_asks_goes_on_as_if_it_had_never_stopped(
    shared: bool, runner: Run, equal: Callable[..., bool]
) -> None:
    text = loop(shared=shared)
    whole = runner(text)
    stopped = runner(text, stop_at=at_stage("actor.generate", 2))
    resumed = runner(text, resume=stopped)

    assert stopped.state is RunStateName.STOPPED
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole.weights())


UNASKED = ASKING.replace('"(?P<question>.)(?:0|1|2|3|a|e|o|u|x|z)"', '"<ask>(?P<question>.)</ask>"')
UNASKED = UNASKED.replace("  - own.scores -> helper.rewards\n", "")
UNASKED = UNASKED.replace("  - asks.rollouts -> own.rollouts\n", "")
UNASKED = UNASKED[: UNASKED.index("  own:")] + UNASKED[UNASKED.index("edges:") :]


@pytest.mark.parametrize(("text", "is_told"), [(UNASKED, True), (ASKING, False)])
def test_a_policy_that_nobody_asks_is_idle_and_told(
    text: str, is_told: bool, runner: Run, equal: Callable[..., bool]
) -> None:
    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    alerts = [event for event in ended.of("alert") if event["code"] == "rows.missing"]
    assert [event["node"] for event in alerts] == (["helper"] if is_told else [])
    assert (max(ended.metrics("asks", "tool/calls")) == 0) is is_told
    assert all("wrote none in this step" in event["message"] for event in alerts)


WRAPPED = ASKING.replace(
    'call: "(?P<question>.)(?:0|1|2|3|a|e|o|u|x|z)"', "pack: {tokens: 12}"
).replace("{{ question }}?", "{{ value }}?")
WRAPPED = WRAPPED.replace(
    "  asks:\n",
    '  find: {kind: tool, type: search, call: "(?P<query>.)(?:0|1|2|a|e|o|u)", top_k: 3}\n'
    "  library: {kind: dataset, source: {type: inline, rows: ["
    "{text: 1 one word}, {text: 1 two}, {text: 1 1}, {text: a b}]}}\n  asks:\n",
).replace(
    "  - asks.tool",
    "  - library.rows -> find.documents\n  - find.tool -> asks.tools\n  - asks.tool",
)


def test_a_policy_condenses_what_a_wrapped_tool_found(runner: Run) -> None:
    ended = runner(WRAPPED)

    assert ended.state is RunStateName.FINISHED, ended.error
    calls = ended.metrics("find", "tool/calls")
    assert max(calls) > 0
    assert calls == ended.metrics("asks", "tool/calls")
