"""Homes in pools of their own: what is learned is what one pool learns, bit for bit, and weights
that go astray on the way stop the run."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.matrix import also, some
from torch import Tensor

from coloop.runtime.checkpoints.recovery import REPLACED
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.messages import LearnRequest
from coloop.workers.sync import FilesChannel, WeightTransfer
from coloop.workers.sync.folders import PREFIX
from coloop.workers.worker import Worker

Run = Callable[..., Any]
Text = Callable[..., str]
Equal = Callable[..., bool]
Values = dict[str, Any]

POOLS = {"train": {"workers": 1}, "write": {"workers": 1}}
WRITING = {"completions_per_prompt": 4, "max_new_tokens": 6}
SHORT_TEXTS = {"completions_per_prompt": 1, "max_new_tokens": 4}

TRAINER_AND_ENGINE: Values = {
    "hardware.pools": POOLS,
    "nodes.actor.pool": "train",
    "nodes.actor.rollout": {**WRITING, "pool": "write"},
    "nodes.start.pool": "write",
}
"""The frozen snapshot stands where the engine does, its source does not."""
LOOPS: dict[str, tuple[str, Values]] = {
    "the engine and a snapshot beside it": ("grpo-arithmetic", TRAINER_AND_ENGINE),
    "a moving average": (
        "grpo-arithmetic",
        {
            **TRAINER_AND_ENGINE,
            "nodes.start.model": {
                "type": "snapshot",
                "of": "actor",
                "refresh": {"every": 2},
                "ema": 0.75,
            },
        },
    ),
    "a frozen writer": (
        "spin",
        {
            "hardware.pools": POOLS,
            "nodes.policy.pool": "train",
            "nodes.opponent.pool": "train",
            "nodes.opponent.rollout": {**SHORT_TEXTS, "pool": "write"},
        },
    ),
    "two learners": (
        "two-halves",
        {
            "hardware.pools": {"left": {"workers": 1}, "right": {"workers": 1}},
            "nodes.tens.pool": "left",
            "nodes.tens.rollout": {**WRITING, "max_new_tokens": 3, "pool": "right"},
            "nodes.units.pool": "right",
            "nodes.units.rollout": {**WRITING, "max_new_tokens": 3, "pool": "left"},
        },
    ),
}
PLACES = ("pool", "pools")
PATIENCE = 120.0


def in_one_pool(values: Values) -> Values:
    """The same values without places."""
    kept = {path: value for path, value in values.items() if path.split(".")[-1] not in PLACES}
    return {
        path: {k: v for k, v in value.items() if k != "pool"} if path.endswith("rollout") else value
        for path, value in kept.items()
    }


@pytest.fixture(autouse=True)
def memory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder in the place of the shared memory; every run leaves it as it was."""
    folder = tmp_path_factory.mktemp("memory")
    monkeypatch.setattr("coloop.runtime.checkpoints.run_folder.SHARED_MEMORY", folder)
    yield folder
    assert list(folder.iterdir()) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", some(LOOPS, kept=["a moving average", "two learners"]))
def test_homes_apart_learn_what_homes_together_learn(
    what: str, runner: Run, tiny: Text, whole: Run, equal: Equal, memory: Path
) -> None:
    name, values = LOOPS[what]
    used: list[list[str]] = []

    def look(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "stage.finished":
            used.append([one.name for one in memory.iterdir()])

    ended = runner(tiny(name, values), on_event=look)

    assert ended.state is RunStateName.FINISHED, ended.error
    together = whole(tiny(name, in_one_pool(values)))
    assert len(together.plan()["pools"]) == 1
    assert equal(ended.weights(), together.weights())
    assert ended.readings() == together.readings()
    assert all(name.startswith(PREFIX) for names in used for name in names)
    assert used[-1], "weights went through the folder"


@pytest.mark.slow
def test_two_learners_in_two_pools_learn_at_the_same_moment(
    runner: Run, tiny: Text, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each update waits for the other learner's of its step: were they in turn, the run would never
    end."""
    name, values = LOOPS["two learners"]
    together, learn = threading.Barrier(2), Worker.learn
    met: list[str] = []

    def learning(host: Worker, order: LearnRequest) -> Any:
        together.wait(PATIENCE)
        met.append(order.group)
        return learn(host, order)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "learn", learning)
        ended = runner(tiny(name, values))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert [{*pair} for pair in zip(met[::2], met[1::2], strict=True)] == [{"tens", "units"}] * 6
    assert equal(ended.weights(), whole(tiny(name, in_one_pool(values))).weights())


@pytest.mark.slow
def test_a_stopped_run_with_homes_apart_goes_on_as_if_it_had_not_stopped(
    runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    name, values = LOOPS["a moving average"]
    text = tiny(name, values)

    def begins(event: dict[str, Any]) -> bool:
        return event["type"] == "stage.started" and event["step"] == 5

    ended = runner(text, stop_at=begins)

    assert ended.state is RunStateName.STOPPED, ended.error
    resumed = runner(text, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(tiny(name, in_one_pool(values))).weights())


def flipped(transfer: WeightTransfer) -> None:
    path = sorted(Path(transfer.place[0]).iterdir())[0]
    content = bytearray(path.read_bytes())
    content[-2] ^= 64
    path.write_bytes(content)


def missing(transfer: WeightTransfer) -> None:
    sorted(Path(transfer.place[0]).iterdir())[0].unlink()


BREAKING = {
    "flipped bytes": (flipped, "fingerprint|by up to"),
    "a missing bucket": (missing, "weights-00000.safetensors"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", [also("the engine and a snapshot beside it"), "a moving average"])
@pytest.mark.parametrize("how", BREAKING)
def test_weights_that_go_astray_stop_the_run_and_a_resume_goes_on(
    how: str,
    what: str,
    runner: Run,
    tiny: Text,
    whole: Run,
    equal: Equal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harm, told = BREAKING[how]
    name, values = LOOPS[what]
    text = tiny(name, {**values, "run.checkpoint_every": 1})
    send, deliveries = Worker.send, iter(range(1, 1000))

    def broken(host: Worker, group: str, places: Any, dtype: Any, is_adapter: bool) -> Any:
        transfer, sent = send(host, group, places, dtype, is_adapter)
        goes_to_snapshot = dtype is None
        if goes_to_snapshot is (what == "a moving average") and next(deliveries) == 2:
            harm(transfer)
        return transfer, sent

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "send", broken)
        ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "sync.weights_not_updated"
    assert any(one in ended.error.message for one in told.split("|")), ended.error.message
    resumed = runner(text, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(tiny(name, in_one_pool(values))).weights())


def test_a_full_memory_leaves_the_way_over_the_disk(
    runner: Run, tiny: Text, monkeypatch: pytest.MonkeyPatch, memory: Path
) -> None:
    ways: list[Path] = []
    place_for = FilesChannel.place_for

    def watched(channel: FilesChannel, size: int, version: int) -> Path:
        ways.append(place_for(channel, size, version))
        return ways[-1]

    monkeypatch.setattr(FilesChannel, "place_for", watched)
    monkeypatch.setattr(
        "coloop.workers.sync.files._free_bytes_of",
        lambda place: 10 if memory in place.parents else 10**12,
    )

    ended = runner(tiny(*LOOPS["the engine and a snapshot beside it"]))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert {way.parent for way in ways} == {ended.folder}
    assert not [one for one in ended.folder.iterdir() if PREFIX in one.name]


def test_pools_without_a_common_folder_are_told(
    runner: Run, tiny: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "can_use", lambda host, folder: host._settings.pool == "train")

    ended = runner(tiny(*LOOPS["the engine and a snapshot beside it"]))

    assert ended.state is RunStateName.FAILED
    assert "from pool train to write" in ended.error.message
    assert not ended.of("stage.started"), "it is told before anything is done"
    assert "run.storage" in ended.error.message


WRITERS = """
coloop: 1
name: writers
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  other:
    kind: actor
    model: {type: shared, with: actor}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {name: grpo}
  length: {kind: reward, join: concat, source: {type: builtin, name: length, max: 3}}
edges:
  - problems.rows -> actor.prompts
  - problems.rows -> other.prompts
  - actor.rollouts -> length.rollouts
  - other.rollouts -> length.rollouts
  - length.scores -> actor.rewards
  - length.scores -> other.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""


@pytest.mark.slow
def test_writers_in_two_pools_have_an_engine_each(runner: Run, whole: Run, equal: Equal) -> None:
    pools = "{preset: cpu, pools: {main: {workers: 1}, far: {workers: 1}}}"
    apart = WRITERS.replace("{preset: cpu}", pools)
    apart = apart.replace("max_new_tokens: 4}", "max_new_tokens: 4, pool: far}")

    ended = runner(apart)

    assert ended.state is RunStateName.FINISHED, ended.error
    [weights] = ended.plan()["weights"]
    assert [(one["pool"], one["writers"]) for one in weights["engines"]] == [
        ("main", ["actor"]),
        ("far", ["other"]),
    ]
    assert equal(ended.weights(), whole(WRITERS).weights())
    assert len(ended.metrics("actor", "sync/difference")) == 3


@pytest.fixture
def on_ray(local_ray: None) -> dict[str, str]:
    return {"cluster": "ray"}


@pytest.mark.slow
@pytest.mark.ray
def test_homes_in_two_processes_learn_what_homes_together_learn(
    runner: Run, tiny: Text, whole: Run, equal: Equal, on_ray: dict[str, str]
) -> None:
    name, values = LOOPS["a moving average"]

    ended = runner(tiny(name, values), **on_ray)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.weights(), whole(tiny(name, in_one_pool(values))).weights())


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("pool", ["write", "train"])
def test_a_host_that_is_killed_is_replaced_and_the_run_goes_on(
    pool: str, runner: Run, tiny: Text, whole: Run, equal: Equal, on_ray: dict[str, str]
) -> None:
    import ray

    name, values = LOOPS["a moving average"]
    text = tiny(name, {**values, "run.checkpoint_every": 2})
    killed: list[int] = []

    def kill(event: dict[str, Any], folder: Path) -> None:
        if not killed and event["type"] == "stage.started" and event["step"] == 5:
            host = ray.get_actor(f"coloop-{folder.name}-{pool}")
            killed.append(ray.get(host.__ray_call__.remote(lambda _: os.getpid()), timeout=60))
            os.kill(killed[0], signal.SIGKILL)

    ended = runner(text, on_event=kill, **on_ray)

    assert ended.state is RunStateName.FINISHED, ended.error
    [alert] = [one for one in ended.of("alert") if one["code"] == REPLACED]
    assert f"pool {pool}" in alert["message"]
    same: dict[str, Tensor] = whole(tiny(name, in_one_pool(values))).weights()
    assert equal(ended.weights(), same)
