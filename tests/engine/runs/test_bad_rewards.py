"""Reward code that goes wrong ends in a clear error, or is told and survived, and loses nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.runtime.run_files.events import RunStateName

RL_ONLY = {"schedule.phases": [{"name": "rl", "steps": 3, "learn": ["actor.rewards"]}]}

LATER = """
CALLS = 0

def reward(prompts, completions, **columns):
    global CALLS
    CALLS += 1
    if CALLS > 3:
        raise ValueError("the judge went home")
    return [float(len(text)) for text in completions]
"""


def python(code: str, **options: Any) -> dict[str, Any]:
    """Values that make the reward of the loop a Python one."""
    source = {"type": "python", "code": code, "timeout_seconds": 1.0, "memory_mib": 128}
    return {**RL_ONLY, "nodes.exact.source": {**source, **options}, "nodes.probe.every": 100}


def returning(answer: str) -> str:
    return f"def reward(prompts, completions, **columns):\n    return {answer}\n"


WRONG = {
    "raises": ("1 / 0", "ZeroDivisionError"),
    "wrong length": ("[1.0]", "1 scores for"),
    "not a number": ("[float('nan')] * len(completions)", "nan"),
    "too large": ("[1e308] * len(completions)", "bound it (`min(1.0, x)`, a logarithm)"),
    "a text": ("['good'] * len(completions)", "'good'"),
    "endless": ("[zero for zero in iter(int, 1) if zero]", "1 seconds|CPU"),
    "memory": ("[len(bytearray(10**9))] * len(completions)", "MemoryError|memory"),
    "opens files": ("[open('/etc/hostname')] * len(completions)", "open"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("what", WRONG)
def test_a_reward_that_is_wrong_fails_the_run_and_names_itself(
    what: str, runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    answer, message = WRONG[what]

    ended = runner(tiny("grpo-arithmetic", python(returning(answer))))

    assert ended.state is RunStateName.FAILED
    [failed] = ended.of("run.state", state="failed")
    assert failed["error"]["code"] == "user_code.failed"
    assert failed["error"]["node"] == "exact"
    assert failed["error"]["message"].startswith("exact")
    assert any(part.lower() in failed["error"]["message"].lower() for part in message.split("|"))


@pytest.mark.slow
def test_a_reward_that_fails_later_loses_no_step(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    text = tiny("grpo-arithmetic", {**python(LATER), "schedule.phases.0.steps": 6})

    ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert "the judge went home" in ended.error.message
    done = ended.manifest()["timeline"]["step"]
    assert done == 2  # the probe at step 0 was the first call
    [failed] = ended.of("run.state", state="failed")
    assert failed["node"] == "exact"
    assert failed["error"]["stage"] == "exact.score"
    assert failed["step"] == done + 1
    resumed = runner(text, resume=ended)
    assert resumed.manifest()["timeline"]["step"] == done + 3


@pytest.mark.sample(3)
@pytest.mark.parametrize("what", ["raises", "endless", "not a number", "opens files"])
def test_rows_of_a_failing_reward_can_be_skipped(
    what: str, runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    code = f"""
def reward(prompts, completions, **columns):
    if any("5" in prompt for prompt in prompts):
        return {WRONG[what][0]}
    return [float(len(text)) for text in completions]
"""
    values = {**python(code, timeout_seconds=0.5), "nodes.exact.on_error": "skip_row"}
    rows = [{"prompt": prompt, "answer": "x", "target": "x"} for prompt in ("1+1=", "5+5=")]
    values["nodes.problems.source"] = {"type": "inline", "rows": rows}
    values["nodes.problems.rows_per_step"] = 2
    values["nodes.actor.rollout.completions_per_prompt"] = 1
    values["schedule.phases.0.steps"] = 1

    ended = runner(tiny("grpo-arithmetic", values))

    assert ended.state is RunStateName.FINISHED, ended.error
    told = [event for event in ended.of("alert") if event["code"] == "reward.rows_failed"]
    assert told
    assert told[0]["node"] == "exact"


def test_rows_of_a_failing_reward_can_get_a_score(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    values = {**python(returning("1 / 0")), "nodes.exact.on_error": {"score": -2.0}}

    ended = runner(tiny("grpo-arithmetic", values))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("exact", "score/mean") == [-2.0, -2.0, -2.0]


def test_a_reward_that_prints_megabytes_is_heard_out(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    code = """
def reward(prompts, completions, **columns):
    print("x" * 5_000_000)
    return [float(len(text)) for text in completions]
"""
    ended = runner(tiny("grpo-arithmetic", python(code)))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert (ended.folder / "events.jsonl").stat().st_size < 200_000


@pytest.mark.slow
def test_a_reward_that_never_says_anything_ends_the_run_with_the_reason(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    values = {**python(returning("[None] * len(completions)")), "schedule.phases.0.steps": 40}

    ended = runner(tiny("grpo-arithmetic", values))

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "run.nothing_learned"
    assert "20 steps in a row" in ended.error.message
    assert "no row of this step has a score" in ended.error.message
    assert ended.manifest()["timeline"]["step"] == 20


def test_code_that_does_not_load_names_its_line(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    ended = runner(tiny("grpo-arithmetic", python("def reward(prompts)\n    return []\n")))

    assert ended.state is RunStateName.FAILED
    assert ended.error.node == "exact"
    assert "line 1" in ended.error.message
