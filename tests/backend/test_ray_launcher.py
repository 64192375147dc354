"""Runs as Ray jobs: on a Ray of the server's own, and on a cluster that shares no disk with it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coloop_server.launchers import has_ray
from coloop_server.launchers.local_ray import LocalRay
from coloop_server.launchers.protocol import LaunchFailed, Order
from coloop_server.launchers.ray_job import RayJobLauncher
from coloop_server.own_ray.folder import Head

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(not has_ray(), reason="Ray is not installed"),
]

LoopThat = Callable[[str], str]
StartServer = Callable[..., Any]
Eventually = Callable[..., Any]


def get(server: Any, path: str) -> Any:
    with server.http as http:
        return http.get(path).json()


def post(server: Any, path: str, **body: Any) -> Any:
    with server.http as http:
        return http.post(path, json=body).json()


def state(server: Any, run_id: str) -> str:
    run = get(server, f"/api/runs/{run_id}")
    assert run["state"] != "failed", run
    found: str = run["state"]
    return found


def test_the_server_starts_a_ray_of_its_own_and_takes_it_along_over_a_restart(
    start_server: StartServer, loop_that: LoopThat, eventually: Eventually, settings: Any
) -> None:
    first = start_server(COLOOP_LAUNCHER="ray_job", COLOOP_ALLOWED_ROOTS=str(Path.cwd()))
    run_id = post(first, "/api/runs", yaml=loop_that("steps=2 hold=90"))["id"]
    eventually(lambda: state(first, run_id) == "running", 90)
    note = settings.data_dir / "ray" / "head.json"
    head = Head(**json.loads(note.read_text()))
    assert head.address.startswith("http://127.0.0.1:")
    assert head.is_running
    first.kill()
    assert head.is_running

    second = start_server(COLOOP_LAUNCHER="ray_job", COLOOP_ALLOWED_ROOTS=str(Path.cwd()))
    assert state(second, run_id) == "running"
    post(second, f"/api/runs/{run_id}/stop")
    eventually(lambda: state(second, run_id) == "stopped", 60)
    events = get(second, f"/api/runs/{run_id}/events")["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))

    dead = post(second, "/api/runs", yaml=loop_that("steps=3 die=2"))["id"]
    eventually(lambda: get(second, f"/api/runs/{dead}")["state"] == "failed", 60)
    assert get(second, f"/api/runs/{dead}")["error"]["code"] == "run.driver_died"

    assert second.stop() == 0
    assert not head.is_running
    assert not note.exists()
    assert not Path(head.temp_dir).exists()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[LocalRay, Head]]:
    """A Ray that stands for a cluster elsewhere."""
    ray = LocalRay(tmp_path / "cluster")
    head = ray.ensure(lambda _: None)
    yield ray, head
    ray.stop()


@pytest.mark.slow
def test_a_cluster_that_shares_no_disk_is_followed_through_the_jobs_log(
    start_server: StartServer,
    loop_that: LoopThat,
    eventually: Eventually,
    cluster: tuple[LocalRay, Head],
    settings: Any,
    tmp_path: Path,
) -> None:
    ray, head = cluster
    server = start_server(
        COLOOP_LAUNCHER="ray_job",
        COLOOP_RAY_ADDRESS=head.address,
        COLOOP_RAY_SHARES_RUNS_DIR="false",
        COLOOP_RAY_RUNS_DIR=str(tmp_path / "there"),
        **ray.environment(),
    )

    short = post(server, "/api/runs", yaml=loop_that("steps=3"))["id"]
    eventually(lambda: state(server, short) == "finished", 90)
    asked = post(server, "/api/runs", yaml=loop_that("steps=1 hold=90"))["id"]
    eventually(lambda: state(server, asked) == "running", 90)
    post(server, f"/api/runs/{asked}/stop")
    eventually(lambda: state(server, asked) == "stopped", 90)

    for run_id in (short, asked):
        events = get(server, f"/api/runs/{run_id}/events")["events"]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        there = tmp_path / "there" / run_id / "events.jsonl"
        assert len(there.read_text().splitlines()) == len(events)
    run = get(server, f"/api/runs/{short}")
    assert run["step"] == 3
    assert run["steps_total"] == 3
    assert (settings.runs_dir / short / "spec.yaml").exists()


class BusyRay:
    """A Ray whose agent, which takes jobs, comes only after some tries."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.asked: list[str] = []

    def get_job_info(self, submission: str) -> Any:
        raise RuntimeError(f"Request failed with status code 404: Job {submission} not found")

    def submit_job(self, *, submission_id: str, **job: Any) -> str:
        self.asked.append(submission_id)
        if self.refusals:
            raise self.refusals.pop(0)
        return submission_id


def order_in(folder: Path) -> Order:
    return Order(
        run_id="sums-1",
        attempt=1,
        spec=folder / "spec.yaml",
        folder=folder / "sums-1",
        log=folder / "log",
        root=folder,
        resume=None,
        force=False,
        tell=lambda text: None,
    )


def test_a_ray_whose_agent_is_still_starting_is_asked_again(settings: Any, tmp_path: Path) -> None:
    launcher = RayJobLauncher(settings)
    starting = BusyRay(
        RuntimeError("status code 500: No available agent to submit job, please try again later."),
        ConnectionError("('Connection aborted.', RemoteDisconnected('Remote end closed it'))"),
    )
    refusing = BusyRay(RuntimeError("status code 500: the entrypoint is too long"))

    planned = launcher.plan("sums-1", 1)

    launcher.submit(starting, "http://127.0.0.1:1", order_in(tmp_path), planned)  # type: ignore[arg-type]

    assert starting.asked == [planned["job_id"]] * 3
    with pytest.raises(LaunchFailed, match=r"did not take the job.*too long"):
        launcher.submit(refusing, "http://127.0.0.1:1", order_in(tmp_path), planned)  # type: ignore[arg-type]
    assert len(refusing.asked) == 1
