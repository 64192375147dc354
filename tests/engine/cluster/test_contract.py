"""What every cluster promises: the same roles, in this process or on Ray."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from coloop.errors import (
    CheckpointError,
    ModelUnavailable,
    PlacementTimeout,
    RequestRefused,
    StageStalled,
    StopRequested,
    WorkerDied,
)
from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan
from coloop.spec.io import parse
from coloop.workers.cluster import Cluster, Deadlines
from coloop.workers.cluster.local import LocalCluster
from coloop.workers.messages import Poll, PromptRequest, Sampling
from coloop.workers.settings import HostSettings
from coloop.workers.worker import Worker
from coloop.workers.worker_api import WorkerApi

LOOP = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {name: grpo}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""
PRETRAINED = LOOP.replace(
    "type: scratch, architecture: tiny-qwen3", "type: pretrained, path: ./nowhere"
)
BOTH = ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])]
ONE = PromptRequest(id="a", prompt="1+1=", seeds=(1, 2))
SHORT = Sampling(max_new_tokens=4)
LONG = Sampling(max_new_tokens=400)


def build(kind: str, root: Path, text: str = LOOP, **changes: Any) -> Cluster:
    """A cluster that has not started yet."""
    spec = parse(text).spec
    assert spec is not None
    plan: Plan = compile_plan(spec)
    deadlines = changes.pop("deadlines", Deadlines(placement_seconds=20.0))
    plan = plan.model_copy(
        update={"pools": tuple(pool.model_copy(update=changes) for pool in plan.pools)}
    )
    settings = {
        pool.name: HostSettings(spec=spec, weights=plan.weights, root=root, seed=0, threads=1)
        for pool in plan.pools
    }
    if kind == "local":
        return LocalCluster(plan, settings, deadlines)
    from coloop.workers.ray.ray_cluster import RayCluster

    return RayCluster(plan, settings, run_id=f"test-{root.name}", deadlines=deadlines)


@pytest.fixture(scope="module", params=BOTH)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A started cluster, one for all tests of a kind."""
    if request.param == "ray":
        request.getfixturevalue("local_ray")
    built = build(request.param, tmp_path_factory.mktemp("cluster"))
    built.start()
    yield built
    built.close()


def long_work() -> tuple[Any, ...]:
    """Arguments of a call that takes seconds."""
    requests = [
        PromptRequest(id=f"r{n}", prompt=f"{n}+1=", seeds=tuple(range(n, n + 40)))
        for n in range(100, 110)
    ]
    return ("main", WorkerApi.generate, "actor", "actor", requests, LONG)


def test_a_call_gives_what_the_host_gives(cluster: Cluster) -> None:
    completions = cluster.asking()("main", WorkerApi.generate, "actor", "actor", [ONE], SHORT)

    assert [len(texts) for texts in completions] == [2]
    assert all(one.version == 0 for one in completions[0])
    assert all(1 <= len(one.token_ids) <= 4 for one in completions[0])
    assert (
        cluster.asking()("main", WorkerApi.generate, "actor", "actor", [ONE], SHORT) == completions
    )


def test_an_error_crosses_the_boundary_with_its_type(cluster: Cluster, tmp_path: Path) -> None:
    unknown = PromptRequest(id="row-7", prompt="ж", seeds=(1,))

    with pytest.raises(RequestRefused, match="ж"):
        cluster.asking()("main", WorkerApi.generate, "actor", "actor", [unknown], SHORT)
    with pytest.raises(CheckpointError, match="actor"):
        cluster.asking()("main", WorkerApi.load, str(tmp_path))
    with pytest.raises(KeyError):
        cluster.asking()("main", WorkerApi.version, "nobody")
    assert cluster.asking()("main", WorkerApi.version, "actor") == 0


def test_who_waits_sees_how_far_it_is_and_may_ask_to_give_up(cluster: Cluster) -> None:
    seen: list[Poll] = []

    def tick(poll: Poll | None) -> bool:
        if poll is not None and poll.total:
            seen.append(poll)
        return len(seen) >= 2

    began = time.monotonic()

    with pytest.raises(StopRequested):
        cluster.asking(tick)(*long_work())

    assert time.monotonic() - began < 20
    assert seen[-1].total == 400
    assert seen[-1].unit == "rows"
    assert seen[-1].rss_bytes > 0


def test_an_old_wish_does_not_hit_the_next_call(cluster: Cluster) -> None:
    wishes = iter([True, True, False])

    with pytest.raises(StopRequested):
        cluster.asking(lambda poll: next(wishes, False))(*long_work())
    completions = cluster.asking()("main", WorkerApi.generate, "actor", "actor", [ONE], SHORT)

    assert len(completions[0]) == 2


@pytest.mark.slow
def test_texts_come_moment_by_moment_and_others_are_asked_in_between(cluster: Cluster) -> None:
    requests = [PromptRequest(id=f"r{n}", prompt=f"{n}+1=", seeds=(n,)) for n in range(3)]
    whole = cluster.asking()("main", WorkerApi.generate, "actor", "actor", requests, LONG)

    told = cluster.asking()("main", WorkerApi.write, "actor", "actor", requests, LONG)
    found = dict(told.replies)
    while told.unfinished:
        assert cluster.asking()("main", WorkerApi.version, "actor") == 0
        told = cluster.asking()("main", WorkerApi.write, "actor", "actor", [], LONG)
        found |= dict(told.replies)

    assert [found[place] for place in range(3)] == whole


@pytest.mark.slow
def test_other_processes_hold_what_a_pool_begins_with(cluster: Cluster, tmp_path: Path) -> None:
    asked = ("main", WorkerApi.generate, "actor", "actor", [ONE], SHORT)
    before = cluster.asking()(*asked)

    cluster.restart("main")

    again = cluster.asking()(*asked)
    assert [[one.token_ids.tolist() for one in texts] for texts in again] == [
        [one.token_ids.tolist() for one in texts] for texts in before
    ]


def test_what_was_saved_is_loaded_again(cluster: Cluster, tmp_path: Path) -> None:
    cluster.asking()("main", WorkerApi.save, str(tmp_path))

    cluster.asking()("main", WorkerApi.load, str(tmp_path))

    assert (tmp_path / "actor" / "model.safetensors").exists()


@pytest.mark.parametrize("kind", BOTH)
def test_a_pool_that_is_too_large_is_refused_at_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "ray":
        request.getfixturevalue("local_ray")
    built = build(kind, tmp_path, gpus=4, deadlines=Deadlines(placement_seconds=600.0))
    began = time.monotonic()

    with pytest.raises(PlacementTimeout, match=r"pool main needs .* GPUs?, .* has 0"):
        built.start()

    assert time.monotonic() - began < 200, "it did not wait for the deadline"
    built.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
def test_a_start_that_fails_leaves_nothing_behind(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "ray":
        request.getfixturevalue("local_ray")
    built = build(kind, tmp_path, PRETRAINED)

    with pytest.raises(ModelUnavailable, match="nowhere"):
        built.start()

    with pytest.raises(KeyError):
        built.asking()("main", WorkerApi.version, "actor")
    built.close()


@pytest.mark.slow
def test_a_call_without_progress_is_named_after_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(Worker, "version", lambda host, member: may_end.wait(60))
    built = build("local", tmp_path, deadlines=Deadlines(stalled_after_seconds=5))
    built.start()

    with pytest.raises(StageStalled, match="main: version: no progress for 5 s"):
        built.asking(lambda poll: False)("main", WorkerApi.version, "actor")

    may_end.set()
    built.close()


def test_a_host_adds_what_it_logs_to_the_log_of_its_run(tmp_path: Path) -> None:
    spec = parse(LOOP).spec
    assert spec is not None
    log = tmp_path / "engine.log"

    Worker(HostSettings(spec=spec, weights=(), root=tmp_path, seed=0, threads=1, log=log))
    logging.getLogger("coloop.workers.rollout").warning("the cache is small")

    try:
        assert "WARNING coloop.workers.rollout: the cache is small" in log.read_text(
            encoding="utf-8"
        )
    finally:
        logging.getLogger("coloop").handlers.pop().close()


@pytest.mark.slow
def test_a_thread_that_hangs_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(Worker, "version", lambda host, group: may_end.wait(60))
    built = build("local", tmp_path, deadlines=Deadlines(stalled_after_seconds=5))
    built.start()
    with pytest.raises(StageStalled) as stalled:
        built.asking(lambda poll: False)("main", WorkerApi.version, "actor")

    with pytest.raises(StageStalled, match="a thread of the driver hangs"):
        built.restart("main")

    assert stalled.value.pool == "main"
    may_end.set()
    built.close()


@pytest.mark.ray
@pytest.mark.slow
def test_a_worker_that_dies_is_named(tmp_path: Path, local_ray: None) -> None:
    built = build("ray", tmp_path)
    before = set(workers())
    built.start()
    [worker] = [process for process in workers() if process not in before]
    has_killed = []

    def kill(poll: Poll | None) -> bool:
        if not has_killed:
            has_killed.append(True)
            worker.kill()
        return False

    with pytest.raises(WorkerDied, match="pool main: its worker process ended"):
        built.asking(kill)(*long_work())

    built.close()


@pytest.mark.ray
@pytest.mark.slow
def test_a_worker_has_as_much_of_the_machine_as_its_driver(tmp_path: Path, local_ray: None) -> None:
    """Ray's own nice of 15 would let it stand still beside anything else that works."""
    before = set(workers())
    built = build("ray", tmp_path)
    built.start()
    [worker] = [process for process in workers() if process not in before]

    assert worker.nice() == psutil.Process().nice()
    built.close()


class Asked:
    """What Ray is asked for a host, in place of a host."""

    def __init__(self, host: type) -> None:
        del host
        self._bundle = -1

    def options(self, *, scheduling_strategy: Any, **rest: Any) -> "Asked":
        del rest
        self._bundle = scheduling_strategy.placement_group_bundle_index
        return self

    def remote(self, settings: HostSettings) -> tuple[int, int]:
        """The rank, and the bundle in which it is to stand."""
        return settings.rank, self._bundle


@pytest.mark.ray
@pytest.mark.slow
def test_ranks_of_a_node_stand_side_by_side(
    tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coloop.workers.ray import ray_cluster

    told = {"bundles_to_node_id": {2: "north", 1: "south", 0: "north"}}
    monkeypatch.setattr(ray_cluster, "placement_group_table", lambda group: told)
    monkeypatch.setattr(ray_cluster.ray, "remote", Asked)
    cluster: Any = build("ray", tmp_path, workers=3)
    (pool,) = cluster._plan.pools
    try:
        cluster._place(pool)
        stand = [cluster._actor(pool, rank) for rank in range(3)]
    finally:
        cluster.close()

    assert stand == [(0, 0), (1, 2), (2, 1)]


def workers() -> list[psutil.Process]:
    """Ray's processes that hold a pool."""
    return [each for each in psutil.Process().children(recursive=True) if is_worker(each)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return "RayWorker" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def test_connecting_to_ray_takes_no_signal_from_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def connect(**_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray does with a handler of its own

    monkeypatch.setattr(ray, "init", connect)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "cluster_resources", dict)
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    cluster = build("ray", tmp_path)
    try:
        with pytest.raises(PlacementTimeout):
            cluster.start()
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert heard == [signal.SIGTERM]


@pytest.mark.parametrize(
    ("running", "address", "named", "seen"),
    [
        pytest.param(None, None, "", None, id="its own Ray"),
        pytest.param("10.0.0.1:6379", None, "local", None, id="one of its own that was asked for"),
        pytest.param("10.0.0.1:6379", None, "", None, id="its own beside one that runs already"),
        pytest.param(None, None, "10.0.0.1:6379", None, id="its own, whatever is named elsewhere"),
        pytest.param(None, "10.0.0.1:6379", "", "disabled", id="one that was named"),
        pytest.param("10.0.0.1:6379", "auto", "", "disabled", id="one that runs already"),
    ],
)
def test_a_ray_of_its_own_asks_for_its_token_whatever_the_environment_says(
    running: str | None,
    address: str | None,
    named: str,
    seen: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray

    from coloop.workers.ray import ray_joining

    found: list[str | None] = []
    monkeypatch.setattr(ray, "init", lambda **_: found.append(os.environ.get("RAY_AUTH_MODE")))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "cluster_resources", dict)
    monkeypatch.setattr(ray_joining, "read_ray_address", lambda _: running)
    monkeypatch.setattr(ray_joining, "reach", lambda _: None)
    monkeypatch.setenv("RAY_ADDRESS", named)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    cluster = build("ray", tmp_path)
    cluster._address = address

    with pytest.raises(PlacementTimeout):
        cluster.start()

    assert found == [seen]
