"""Exact resume: k steps, a stop, and N - k steps more give what N steps give, bit for bit."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.matrix import some

from coloop.runtime.checkpoints.manifest import write_manifest
from coloop.runtime.run_files.events import RunStateName

EMBEDDING = "model.embed_tokens.weight"

Event = Mapping[str, Any]
Place = Callable[[Event], bool]


def at_stage(stage: str, step: int, *, done: bool = True) -> Place:
    """The moment when a stage of a step begins or ends."""
    kind = "stage.finished" if done else "stage.started"
    return lambda event: event["type"] == kind and event["stage"] == stage and event["step"] == step


def at_phase(name: str, state: str, turn: int = 1) -> Place:
    """The moment when a phase begins or ends."""
    return lambda event: (
        event["type"] == "phase"
        and event["phase"] == name
        and event["state"] == state
        and event["round"] == turn
    )


def at_metrics(node: str, step: int) -> Place:
    """The moment when a node's readings of a step are told."""
    return lambda event: (
        event["type"] == "metrics" and event.get("node") == node and event["step"] == step
    )


PLACES: dict[str, tuple[str, Place]] = {
    "before the first step": ("grpo-arithmetic", lambda event: event["type"] == "run.state"),
    "between phases": ("grpo-arithmetic", at_phase("warm-up", "finished")),
    "when a phase begins": ("grpo-arithmetic", at_phase("rl", "started")),
    "after generation": ("grpo-arithmetic", at_stage("actor.generate", 5)),
    "after credit": ("grpo-arithmetic", at_stage("actor.credit", 6)),
    "while learning": ("grpo-arithmetic", at_stage("actor.learn", 5, done=False)),
    "after learning": ("grpo-arithmetic", at_stage("actor.learn", 6)),
    "in a probe": ("grpo-arithmetic", at_stage("held_out.load", 4)),
    "at the last step": ("grpo-arithmetic", at_stage("actor.sync", 7)),
    "with a buffer half full": ("spin", at_stage("iterations.write", 4)),
    "while a buffer is written": ("spin", at_stage("real_or_own.prepare", 5)),
    "in the first pass over a buffer": ("spin", at_stage("previous.score", 7)),
    "between the iterations": ("spin", at_phase("train", "finished")),
    "in the second iteration": ("spin", at_stage("policy.learn", 13)),
    "while one of two learns": ("two-halves", at_stage("tens.learn", 4, done=False)),
    "between two learners": ("two-halves", at_stage("tens.learn", 4)),
    "before a joint reward": ("two-halves", at_stage("units.generate", 5)),
    "when a copy with a head begins": ("ppo-four-models", at_phase("reward-model", "started")),
    "between a policy and its critic": ("ppo-four-models", at_stage("policy.learn", 5)),
    "in a refill before a judge of tokens": ("prime", at_stage("band.prepare", 4)),
    "when a judge of tokens has learned": ("prime", at_stage("prm.learn", 4)),
    "between a solver and its judge": ("tango", at_stage("generator.learn", 4)),
    "while a judge learns alone": ("tango", at_stage("verifier.learn", 5)),
    "when a reward model has learned beside its policy": ("cooper", at_stage("judge.learn", 4)),
    "between a corruption and its pair": ("cooper", at_stage("corrupt.prepare", 5)),
    "between two buffers of lessons": ("genrm", at_stage("lessons.write", 3)),
    "while a judge imitates": ("genrm", at_stage("verifier.learn", 5)),
    "behind texts that searched": ("search-r1", at_stage("policy.generate", 3)),
}


OTHERS = (
    *("between phases", "when a phase begins", "after generation", "after credit", "in a probe"),
    *("with a buffer half full", "between the iterations", "before a joint reward"),
)
"""Places that are much like others of the same loop."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("place", some(PLACES, kept=[one for one in PLACES if one not in OTHERS]))
def test_a_stopped_run_goes_on_as_if_it_had_never_stopped(
    place: str,
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    name, is_here = PLACES[place]
    text = tiny(name)

    stopped = runner(text, stop_at=is_here)
    assert stopped.state is RunStateName.STOPPED
    step = stopped.manifest()["timeline"]["step"]
    resumed = runner(text, resume=stopped)

    uninterrupted = whole(text)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), uninterrupted.weights())
    assert resumed.readings(after=step) == uninterrupted.readings(after=step)
    events = resumed.events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {event["attempt"] for event in events} == {1, 2}


@pytest.mark.slow
def test_rows_that_wait_for_an_update_survive_a_stop(
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    text = tiny("grpo-arithmetic", {"schedule.learn": {"actor": {"rows": 20}}})

    stopped = runner(text, stop_at=at_metrics("exact", 6))
    resumed = runner(text, resume=stopped)

    kept = stopped.manifest()["roles"]["weights:actor"]["kept"]
    assert sum(len(rows["__kept__"]) for rows in kept.values()) > 0
    assert equal(resumed.weights(), whole(text).weights())


@pytest.mark.slow
def test_a_run_may_stop_many_times(
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    text = tiny("spin")
    run = runner(text, stop_at=at_metrics("policy", 1))
    for step in (3, 6, 9, 12):
        run = runner(text, resume=run, stop_at=at_stage("gold.load", step))
    run = runner(text, resume=run)

    assert run.state is RunStateName.FINISHED
    assert equal(run.weights(), whole(text).weights())


def test_readings_of_a_step_that_was_taken_back_count_once_for_triggers(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    trigger = {
        "when": {"metric": "exact.score/mean", "above": -1.0, "for": 3},
        "do": {"stop": True},
    }
    text = tiny("grpo-arithmetic", {"schedule.triggers": [trigger]})

    stopped = runner(text, stop_at=at_stage("actor.credit", 5))
    assert stopped.manifest()["timeline"]["step"] == 4
    resumed = runner(text, resume=stopped)

    assert resumed.state is RunStateName.STOPPED
    assert resumed.manifest()["timeline"]["step"] == 6


def test_a_run_that_a_trigger_stopped_can_go_on(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    trigger = {"when": {"metric": "probe.score", "above": -1.0}, "do": {"stop": True}}
    values = {"schedule.triggers": [trigger], "run.best": "probe.score"}
    text = tiny("grpo-arithmetic", values)

    stopped = runner(text)
    assert stopped.state is RunStateName.STOPPED
    resumed = runner(text, resume=stopped)

    assert resumed.state is RunStateName.FINISHED


def test_a_run_whose_last_phase_a_trigger_ended_does_not_train_on(
    runner: Callable[..., Any], tiny: Callable[..., str], equal: Callable[..., bool]
) -> None:
    trigger = {
        "in": "rl",
        "when": {"metric": "probe.score", "above": -1.0},
        "do": {"next_phase": True},
    }
    text = tiny("grpo-arithmetic", {"schedule.triggers": [trigger]})
    ended = runner(text)
    assert ended.manifest()["timeline"]["step"] == 4

    weights = ended.weights()
    resumed = runner(text, resume=ended)

    assert resumed.manifest()["timeline"]["step"] == 4
    assert equal(resumed.weights(), weights)


def test_a_fork_with_more_steps_takes_them(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    text = tiny("grpo-arithmetic")
    stopped = runner(text, stop_at=at_metrics("actor", 5))

    resumed = runner(tiny("grpo-arithmetic", {"schedule.phases.1.steps": 5}), resume=stopped)

    assert resumed.state is RunStateName.FINISHED
    assert resumed.manifest()["timeline"]["step"] == 8


def test_frozen_weights_are_written_once_and_again_when_they_have_followed(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    """A checkpoint of every step; the snapshot follows after step 3, when the next phase begins."""
    ended = runner(tiny("grpo-arithmetic", {"run.checkpoint_every": 1, "run.keep": 9}))

    folders = [ended.folder / "checkpoints" / f"step-{step}" for step in (1, 2, 3, 4, 5)]
    files = {
        group: [(folder / group / "model.safetensors").stat().st_ino for folder in folders]
        for group in ("start", "actor")
    }
    assert len(set(files["start"][:3])) == len(set(files["start"][3:])) == 1
    assert files["start"][0] != files["start"][3]
    assert len(set(files["actor"])) == 5


def test_the_weights_of_a_learner_are_written_once(
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    """A checkpoint that has them twice is read as well."""
    text = tiny("grpo-arithmetic")
    stopped = runner(text, stop_at=at_stage("actor.generate", 5))
    group = next((stopped.folder / "checkpoints").glob("step-*")) / "actor"
    state, manifest = torch.load(group / "trainer.pt", weights_only=True), stopped.manifest()

    assert "model" not in state["trainer"]
    state["trainer"]["model"] = dict(load_file(group / "model.safetensors"))
    state["trainer"]["model"]["lm_head.weight"] = state["trainer"]["model"][EMBEDDING]
    torch.save(state, group / "trainer.pt")
    manifest["files"]["actor/trainer.pt"] = (group / "trainer.pt").stat().st_size
    manifest["hashes"]["actor/trainer.pt"] = sha256((group / "trainer.pt").read_bytes()).hexdigest()
    write_manifest(group.parent, manifest)
    resumed = runner(text, resume=stopped)

    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(text).weights())
