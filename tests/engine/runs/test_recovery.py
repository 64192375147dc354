"""Processes that die while a run goes on are replaced, and it learns what it would have learned."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.engine.smallest import AHEAD
from tests.matrix import also

from coloop.runtime.checkpoints.recovery import MOST_RESTARTS, REPLACED
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.sync.folders import can_use
from coloop.workers.worker import Worker

Run = Callable[..., Any]
Text = Callable[..., str]
Equal = Callable[..., bool]

APART = AHEAD.replace("max_staleness: 1", "max_staleness: 0").replace("steps: 10", "steps: 5")
"""Learned in the pool `train`, written in the pool `write`, in turn."""


def dies(
    monkeypatch: pytest.MonkeyPatch, method: str, calls: Iterable[int], pool: str | None = None
) -> None:
    """The host of a pool, or of any, ends its process in these calls of a method."""
    real, wanted, number = getattr(Worker, method), set(calls), itertools.count(1)

    def deadly(host: Worker, *arguments: Any) -> Any:
        if pool in (None, host._settings.pool) and next(number) in wanted:
            raise SystemExit(3)
        return real(host, *arguments)

    monkeypatch.setattr(Worker, method, deadly)


def replaced(ended: Any) -> list[str]:
    """What is told of pools that have new processes."""
    return [one["message"] for one in ended.of("alert") if one["code"] == REPLACED]


def check_events(ended: Any, attempts: int) -> None:
    """Numbers without a gap, over so many attempts."""
    events = ended.events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [*dict.fromkeys(event["attempt"] for event in events)] == [*range(1, attempts + 1)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("method", "every"),
    [
        *(("learn", 2), ("generate", None), ("save", 2), ("sync", None)),
        *(also("learn", None), also("generate", 2), also("save", None), also("sync", 2)),
    ],
)
def test_a_run_whose_trainer_dies_goes_on_by_itself(
    method: str,
    every: int | None,
    runner: Run,
    tiny: Text,
    whole: Run,
    equal: Equal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": every})
    expected = whole(text)
    call = {"generate": 9, "save": 1 if every is None else 2}.get(method, 4)
    dies(monkeypatch, method, [call])

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    [told] = replaced(ended)
    assert ("its beginning" if every is None else "the checkpoint of step ") in told
    check_events(ended, attempts=2)
    assert equal(ended.weights(), expected.weights())
    assert ended.readings() == expected.readings()


@pytest.mark.sample(2)
@pytest.mark.parametrize(("method", "call"), [("generate", 3), ("receive", 2), ("generate", 1)])
def test_an_engine_that_dies_is_replaced_and_writes_the_same(
    method: str,
    call: int,
    runner: Run,
    whole: Run,
    equal: Equal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = whole(APART)
    dies(monkeypatch, method, [call], pool="write")

    ended = runner(APART)

    assert ended.state is RunStateName.FINISHED, ended.error
    [told] = replaced(ended)
    assert "pool write" in told
    assert "its request is retried" in told
    check_events(ended, attempts=1)
    assert len(ended.of("stage.finished", stage="actor.learn")) == 5
    assert equal(ended.weights(), expected.weights())
    assert ended.readings() == expected.readings()


@pytest.mark.slow
def test_a_snapshot_that_dies_takes_the_run_back_to_its_checkpoint(
    runner: Run, tiny: Text, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It held weights of an earlier step, which nobody else has."""
    values = {
        "run.checkpoint_every": 2,
        "hardware.pools": {"train": {"workers": 1}, "apart": {"workers": 1}},
        "nodes.actor.pool": "train",
        "nodes.start.pool": "apart",
    }
    text = tiny("grpo-arithmetic", values)
    expected = whole(text)
    dies(monkeypatch, "score", [2], pool="apart")

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert "the checkpoint of step 4" in replaced(ended)[0]
    assert equal(ended.weights(), expected.weights())


@pytest.mark.parametrize("pool", ["train", "write"])
def test_who_dies_again_before_a_step_is_done_ends_the_run(
    pool: str, runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies(monkeypatch, "learn" if pool == "train" else "generate", [3, 4, 5], pool=pool)

    ended = runner(APART.replace("keep: 2", "keep: 2, checkpoint_every: 2"))

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "cluster.worker_died"
    assert "it had failed before, and no step has finished since" in ended.error.message
    assert ended.manifest()["timeline"]["step"] == 2


def test_a_run_is_not_brought_back_without_end(
    runner: Run, whole: Run, equal: Equal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        dies(patched, "generate", range(1, 99, 2), pool="write")
        ended = runner(APART)

    assert ended.state is RunStateName.FAILED
    assert f"restarted {MOST_RESTARTS} times in this run" in ended.error.message
    assert len(replaced(ended)) == MOST_RESTARTS
    resumed = runner(APART, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(APART).weights())


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["the engine", "a moving average"])
def test_weights_go_between_machines_that_share_no_folder(
    loop: str,
    runner: Run,
    tiny: Text,
    whole: Run,
    equal: Equal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each pool sees folders of its own alone; the driver carries what lies there."""
    text = APART
    if loop == "a moving average":
        values = {
            "hardware.pools": {"train": {"workers": 1}, "apart": {"workers": 1}},
            "nodes.actor.pool": "train",
            "nodes.start.pool": "apart",
            "nodes.start.model.refresh": {"every": 1},
            "nodes.start.model.ema": 0.5,
        }
        text = tiny("grpo-arithmetic", values)
    expected = whole(text)
    carried: list[int] = []
    write_part = Worker.write_part

    def sees(host: Worker, folder: Any) -> bool:
        return can_use(folder) and folder in host.own_places()

    def writes(host: Worker, path: Any, start: int, part: Any) -> None:
        carried.append(part.nbytes)
        write_part(host, path, start, part)

    monkeypatch.setattr(Worker, "can_use", sees)
    monkeypatch.setattr(Worker, "write_part", writes)
    monkeypatch.setattr("coloop.workers.weight_sync.CPU_BYTES", 40_000)

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(carried) == 40_000
    assert equal(ended.weights(), expected.weights())
