"""Whatever breaks in a stage ends the run with an error that names the place, and what was whole is
saved: a resume goes on as if nothing had happened. A stop is obeyed while code of the user runs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from coloop.runtime.roles import reward
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.training.single import SingleBackend
from coloop.workers.worker import Worker

Run = Callable[..., Any]
Equal = Callable[..., bool]

SHORT = "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: 9 bytes"
BROKEN = {
    "memory": (MemoryError("no more"), "run.out_of_memory"),
    "allocator": (RuntimeError(SHORT), "run.out_of_memory"),
    "library": (ValueError("a library is unhappy"), "run.stage_failed"),
}
PLACES = {
    "actor.generate": (Worker, "generate", 4),
    "length.score": (reward, "score_builtin", 4),
    "actor.learn": (SingleBackend, "_learn_batch", 3),
}
"""Stage: what works there, and which of its calls is that of step 3; a probe calls at step 0."""


def at_call(
    number: int, real: Callable[..., Any], error: BaseException, times: int = 1
) -> Callable[..., Any]:
    """A function that breaks at one of its calls, or at so many from there on."""
    calls = iter(range(1, 1000))

    def broken(*arguments: Any, **options: Any) -> Any:
        if number <= next(calls) < number + times:
            raise error
        return real(*arguments, **options)

    return broken


def steps(text: str, count: int) -> str:
    return text.replace("schedule: {steps: 2}", f"schedule: {{steps: {count}}}")


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", BROKEN)
def test_a_failure_of_any_kind_saves_the_steps_before_it(
    what: str,
    place: str,
    runner: Run,
    small: str,
    whole: Run,
    equal: Equal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = steps(small, 4)
    error, code = BROKEN[what]
    owner, name, call = PLACES[place]

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, at_call(call, getattr(owner, name), error, times=2))
        ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == code
    assert (ended.error.stage, ended.error.node) == (place, place.partition(".")[0])
    assert ended.error.message.startswith(f"{place} in step 3 ")
    assert type(error).__name__ in ended.error.message
    assert (ended.error.hint is not None) is (code == "run.out_of_memory")
    assert [event["step"] for event in ended.of("run.state", state="failed")] == [3]
    assert ended.manifest()["timeline"]["step"] == 2
    resumed = runner(text, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(text).weights())


def test_a_library_that_ends_its_process_does_not_end_the_driver(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reward, "score_builtin", at_call(4, reward.score_builtin, SystemExit(3)))

    ended = runner(steps(small, 3))

    assert ended.state is RunStateName.FAILED
    assert ended.error.stage == "length.score"
    assert ended.manifest()["timeline"]["step"] == 2


def test_half_an_update_is_not_saved(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two optimizer steps of an update breaks: nothing is whole any more."""
    halves = "algorithm: {name: grpo}\n    training: {mini_batch: 2}"
    text = steps(small, 3).replace("algorithm: {name: grpo}", halves)
    taken = SingleBackend._take_step
    monkeypatch.setattr(SingleBackend, "_take_step", at_call(4, taken, MemoryError("no more")))

    ended = runner(text)

    assert ended.error.code == "run.out_of_memory"
    assert not ended.of("checkpoint")


def test_a_probe_that_breaks_saves_what_was_learned(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Worker.generate
    monkeypatch.setattr(Worker, "generate", at_call(4, real, ValueError("unhappy")))

    ended = runner(small)

    assert ended.error.message.startswith("actor.generate in step 2 ")
    assert ended.manifest()["timeline"]["step"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["phase", "trigger"])
def test_actions_that_break_off_are_done_again(
    how: str, runner: Run, tiny: Run, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of the second phase resets the optimizer after the snapshot has followed."""
    values: dict[str, Any] = {}
    if how == "trigger":
        when = {"metric": "probe.score", "above": -1.0}
        do = {"refresh": {"node": "start"}, "reset_optimizer": "actor"}
        values = {"schedule.triggers": [{"in": "rl", "when": when, "do": do}]}
    text = tiny("grpo-arithmetic", values)
    error = MemoryError("no more")
    reset = at_call(1 if how == "phase" else 2, Worker.reset_optimizer, error)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "reset_optimizer", reset)
        ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert ended.of("checkpoint")
    resumed = runner(text, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(text).weights())


def test_a_second_interrupt_ends_the_run_at_once(
    runner: Run, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = at_call(3, reward.score_builtin, KeyboardInterrupt())
    monkeypatch.setattr(reward, "score_builtin", broken)
    last: list[dict[str, Any]] = []

    ended = runner(small, on_event=lambda event, folder: last.append(event))

    assert ended.state is RunStateName.STOPPED
    assert last[-1]["state"] == "stopped"
    assert "interrupted immediately" in last[-1]["message"]
    assert "error" not in last[-1]


WAITING = "import time\n\ndef {head}:\n    time.sleep({seconds})\n    return {answer}\n"
CODES = {
    "reward": ("reward(prompts, completions, **columns)", "[float(len(t)) for t in completions]"),
    "template": ("write(**columns)", "{'note': 'x'}"),
    "filter": ("keep(**columns)", "True"),
}
STAGES = {"reward": "length.score", "template": "slow.prepare", "filter": "slow.prepare"}


def with_code(text: str, kind: str, seconds: float) -> str:
    """The loop without its probe, with code of the user that takes its time."""
    head, answer = CODES[kind]
    code = json.dumps(WAITING.format(head=head, answer=answer, seconds=seconds))
    lines = text.splitlines()
    text = "\n".join(one for one in lines if "probe" not in one and "held_out" not in one)
    if kind == "reward":
        source = f"{{type: python, code: {code}, timeout_seconds: 6}}"
        return text.replace("{type: builtin, name: length, max: 3}", source)
    section = f"code: {code}" if kind == "template" else f"keep: [{{rule: python, code: {code}}}]"
    port = {"template": "rows", "filter": "rollouts"}[kind]
    text = text.replace("\nedges:", f"\n  slow: {{kind: {kind}, {section}}}\nedges:")
    edges = f"- actor.rollouts -> slow.{port}\n  - slow.{port} -> length.rollouts"
    return text.replace("- actor.rollouts -> length.rollouts", edges)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", CODES)
def test_a_stop_is_obeyed_while_code_of_the_user_runs(
    kind: str, runner: Run, small: str, whole: Run, equal: Equal
) -> None:
    """The code would sleep for a minute and be ended by its own deadline after 5 or 6 seconds."""

    def begins(event: dict[str, Any]) -> bool:
        return event["type"] == "stage.started" and event["stage"] == STAGES[kind]

    ended = runner(with_code(small, kind, 60.0), stop_at=begins)

    assert ended.state is RunStateName.STOPPED, ended.error
    quick = with_code(small, kind, 0.0)
    resumed = runner(quick, resume=ended)
    assert equal(resumed.weights(), whole(quick).weights())
