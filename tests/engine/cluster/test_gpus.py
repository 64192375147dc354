"""Which GPU each host of a run gets, in one process and on Ray: no two hosts the same."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import PlacementTimeout
from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan
from coloop.spec.io import parse
from coloop.workers.cluster import local
from coloop.workers.cluster.local import LocalCluster
from coloop.workers.settings import HostSettings

TWO_POOLS = """
coloop: 1
name: two-pools
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic}}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {max_new_tokens: 4, pool: write}
    algorithm: {name: reinforce}
    pool: train
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 1}
hardware:
  {nodes: 1, gpus_per_node: 2, gpu: H100-80GB, pools: {train: {gpus: 1}, write: {gpus: 1}}}
"""


def plan_of(text: str) -> Plan:
    spec = parse(text).spec
    assert spec is not None
    return compile_plan(spec)


def cluster_of(plan: Plan, text: str) -> LocalCluster:
    spec = parse(text).spec
    assert spec is not None
    settings = HostSettings(spec=spec, weights=(), root=Path(), seed=0, threads=1, device="cuda")
    return LocalCluster(plan, {pool.name: settings for pool in plan.pools})


def test_two_pools_of_a_gpu_are_processes_that_each_see_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "gpus_here", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    plan = plan_of(TWO_POOLS)
    cluster = cluster_of(plan, TWO_POOLS)
    started: list[str] = []

    def start(settings: Any, gpu: str, *sockets: int) -> Any:
        started.append(gpu)
        raise InterruptedError  # no GPU is here

    monkeypatch.setattr(local, "start_alone", start)
    for pool in plan.pools:
        with pytest.raises(InterruptedError):
            cluster._crew(pool)

    assert [(pool.gpus, pool.workers) for pool in plan.pools] == [(1, 1), (1, 1)]
    assert started == ["0", "1"]


def test_the_only_gpu_pool_of_one_host_is_a_thread_of_the_driver() -> None:
    text = TWO_POOLS.replace(", pools: {train: {gpus: 1}, write: {gpus: 1}}", "")
    text = text.replace("gpus_per_node: 2", "gpus_per_node: 1")
    text = text.replace(", pool: write", "").replace("    pool: train\n", "")
    plan = plan_of(text)
    cluster = cluster_of(plan, text)

    (pool,) = plan.pools
    assert (pool.gpus, cluster._is_thread(pool)) == (1, True)


def test_pools_that_want_more_gpus_together_than_there_are_do_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "gpus_here", lambda: 1)
    cluster = cluster_of(plan_of(TWO_POOLS), TWO_POOLS)

    with pytest.raises(
        PlacementTimeout,
        match=r"the pools need 2 GPUs together \(train 1, write 1\), this machine has 1",
    ):
        cluster.start()


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({0: "a", 1: "a"}, [0, 1]),
        ({0: "a", 1: "b", 2: "a", 3: "b"}, [0, 2, 1, 3]),
        ({0: "b", 1: "a", 2: "b", 3: "c", 4: "a"}, [0, 2, 1, 4, 3]),
        ({3: "a", 1: "b", 0: "a", 2: "b"}, [0, 3, 1, 2]),
    ],
)
def test_ranks_of_a_node_follow_one_another(nodes: dict[int, str], expected: list[int]) -> None:
    from coloop.workers.ray.ray_cluster import by_node

    assert by_node(nodes) == expected


@pytest.mark.parametrize(
    ("degree", "nodes", "problem"),
    [
        (1, "aabb", None),
        (2, "aabb", None),
        (4, "aaaabbbb", None),
        (4, "aaaaaabb", r"each engine needs 4 GPUs of one node .* on 2 nodes, 6, 2 on each"),
    ],
)
def test_an_engine_over_several_gpus_stands_on_one_node(
    degree: int, nodes: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coloop.workers.ray import ray_cluster

    monkeypatch.setattr(ray_cluster, "_free", lambda: "2 GPU")
    plan = plan_of(TWO_POOLS)
    [weights] = plan.weights
    engines = tuple(
        engine.model_copy(update={"tensor_parallel": degree}) for engine in weights.engines
    )
    plan = plan.model_copy(update={"weights": (weights.model_copy(update={"engines": engines}),)})
    pool = next(pool for pool in plan.pools if pool.name == engines[0].pool)
    cluster = ray_cluster.RayCluster(plan, {}, run_id="never-started")

    with nullcontext() if problem is None else pytest.raises(PlacementTimeout, match=problem):
        cluster._check_engines(pool, list(nodes))
