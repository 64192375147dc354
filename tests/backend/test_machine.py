"""Whether a run would find its GPUs where runs go."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in

from coloop_server.checks import service
from coloop_server.settings import Settings


def _missing(client: TestClient, preset: str) -> str | None:
    spec = client.get(f"/api/presets/loops/{preset}").json()["spec"]
    found: str | None = client.post("/api/check", json={"spec": spec}).json()["missing"]
    return found


def _driver(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the driver lists so many GPUs."""
    lines = "".join(f"echo 'GPU {number}: NVIDIA H100 (UUID: x)'\n" for number in range(count))
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{lines}", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    service.gpus_here.cache_clear()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    service.gpus_here.cache_clear()


def test_gpus_that_are_not_here_are_told_before_a_start(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _driver(tmp_path, 0, monkeypatch)
    none = _missing(client, "grpo-qwen2.5-7b-8xH100")
    _driver(tmp_path, 2, monkeypatch)
    some = _missing(client, "grpo-qwen2.5-7b-8xH100")
    _driver(tmp_path, 8, monkeypatch)
    all_of_them = _missing(client, "grpo-qwen2.5-7b-8xH100")
    service.gpus_here.cache_clear()

    assert none is not None
    assert "needs 8 GPUs" in none
    assert "has no GPU" in none
    assert some is not None
    assert "has 2 GPUs" in some
    assert all_of_them is None


def test_a_loop_for_a_cpu_lacks_nothing(client: TestClient) -> None:
    assert _missing(client, "grpo-arithmetic") is None


def test_of_a_cluster_elsewhere_nothing_is_said(settings: Settings) -> None:
    elsewhere = settings.model_copy(update={"ray_address": "http://elsewhere.example:8265"})
    with signed_in(elsewhere) as client:
        assert _missing(client, "grpo-qwen2.5-7b-8xH100") is None


def test_a_ray_that_only_the_environment_names_takes_no_run(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://elsewhere.example:10001")
    _driver(tmp_path, 0, monkeypatch)

    assert _missing(client, "grpo-qwen2.5-7b-8xH100") is not None
