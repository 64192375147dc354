"""Where a Ray of one's own puts its files, and how long it waits for its node."""

import os
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import RayNotStarted
from coloop.workers.ray import ray_patience, ray_settings
from coloop.workers.ray.ray_patience import wait_for_slow_nodes
from coloop.workers.ray.ray_settings import (
    SOCKET,
    SOCKET_BYTES,
    default_ray_folder,
    fits_sockets,
    ray_folder,
    short_folder,
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(ray_settings, "SHORT", tmp_path)


def test_paths_of_sockets_may_have_107_bytes() -> None:
    longest = "/" + "x" * (SOCKET_BYTES - len(SOCKET) - 1)
    assert fits_sockets(Path(longest))
    assert not fits_sockets(Path(f"{longest}x"))


def test_where_the_default_is_short_enough_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert ray_folder() == default_ray_folder() == Path("/var/tmp/ray")
    monkeypatch.setenv("RAY_TMPDIR", "/scratch")
    assert ray_folder() == Path("/scratch/ray")


def test_a_long_tmpdir_leads_to_a_short_folder_of_this_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", "/scratch/" + "x" * 60)

    assert ray_folder() == tmp_path / f"coloop-{os.getuid()}" / "ray"
    assert short_folder().stat().st_mode & 0o777 == 0o700


def test_where_there_is_no_short_folder_it_is_said_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", "/scratch/" + "x" * 60)
    (tmp_path / "mine").mkdir()
    (tmp_path / f"coloop-{os.getuid()}").symlink_to(tmp_path / "mine")

    with pytest.raises(RayNotStarted, match=r"TMPDIR is too long .* set RAY_TMPDIR to a folder"):
        ray_folder()


def test_a_node_that_is_slow_is_waited_for_while_its_process_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = ray_patience.services
    answers: list[Any] = [RuntimeError("not yet"), RuntimeError("not yet"), {"node": "here"}]

    def ask(*_: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(services, "get_node", ask)
    monkeypatch.setattr(ray_patience, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(ray_patience, "_has_child", lambda _: True)
    wait_for_slow_nodes()
    wait_for_slow_nodes()  # once is enough
    assert services.get_node("address", "node") == {"node": "here"}

    answers[:] = [RuntimeError("never")] * 3
    monkeypatch.setattr(ray_patience, "_has_child", lambda _: False)
    with pytest.raises(RuntimeError, match="never"):
        services.get_node("address", "node")
    assert len(answers) == 2, "a node whose process has ended is not waited for"
