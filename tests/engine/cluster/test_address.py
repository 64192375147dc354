"""Which Ray a run joins that was given no address."""

import socket

import pytest

from coloop.cluster import ray_cluster
from coloop.cluster.ray_cluster import ray_to_join


@pytest.fixture(autouse=True)
def nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def test_a_ray_of_this_machine_that_is_gone_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        last = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(ray_cluster, "read_ray_address", lambda _: last)
        assert ray_to_join() is None  # it is left to Ray, which joins it

    assert ray_to_join() == "local"
    assert f"the Ray at {last} that was started here is gone" in caplog.text

    monkeypatch.setenv("RAY_ADDRESS", "elsewhere:6379")
    assert ray_to_join() is None  # who says where to go is taken at his word


@pytest.mark.parametrize("last", [None, ""])
def test_where_no_ray_was_started_ray_decides(
    last: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "read_ray_address", lambda _: last)

    assert ray_to_join() is None
