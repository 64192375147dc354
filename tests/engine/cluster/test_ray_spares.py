"""Hosts on Ray that load before the run is known."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.cluster.test_contract import ONE, SHORT, build

from coloop.workers.worker_api import WorkerApi

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def spares(local_ray: None) -> Iterator[Any]:
    """None is loaded yet; none is left."""
    from coloop.workers.ray.ray_spares import SPARES

    assert SPARES.actors == []
    yield SPARES
    SPARES.dismiss()


def node_of(actor: Any) -> str:
    """The number of an actor, as Ray has it."""
    return str(actor._actor_id.hex())


def test_a_pool_takes_one_that_lives_and_the_others_end(spares: Any, tmp_path: Path) -> None:
    import ray

    spares.load(3)
    unneeded, taken, dead = (node_of(one) for one in spares.actors)
    ray.kill(spares.actors[-1])
    cluster = build("ray", tmp_path)
    cluster.start()
    try:
        (host,) = cluster._pools["main"].crew._hosts  # type: ignore[attr-defined]
        assert node_of(host) == taken
        assert dead != taken != unneeded
        assert spares.actors == []
        completions = cluster.asking()("main", WorkerApi.generate, "actor", "actor", [ONE], SHORT)
    finally:
        cluster.close()

    usual = build("ray", tmp_path)
    usual.start()
    try:
        assert (
            usual.asking()("main", WorkerApi.generate, "actor", "actor", [ONE], SHORT)
            == completions
        )
    finally:
        usual.close()


def test_one_that_was_loaded_with_another_environment_is_not_taken(
    spares: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    spares.load(1)
    (early,) = (node_of(one) for one in spares.actors)
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth9")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    cluster = build("ray", tmp_path)
    cluster.start()
    try:
        (host,) = cluster._pools["main"].crew._hosts  # type: ignore[attr-defined]
        found = ray.get(host.__ray_call__.remote(lambda _: dict(os.environ)), timeout=60)
    finally:
        cluster.close()

    assert node_of(host) != early
    assert spares.actors == []
    assert found["NCCL_SOCKET_IFNAME"] == "eth9"
    assert found["HF_HOME"] == str(tmp_path)
