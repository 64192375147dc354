"""Runs as Ray jobs: on a Ray of the server's own, and on a cluster that shares no disk with it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from coloop.sandbox.code_files import read_code
from coloop.spec.io import parse
from coloop_server.launchers import has_ray
from coloop_server.launchers.local_ray import LocalRay
from coloop_server.launchers.protocol import LaunchFailed, Order
from coloop_server.launchers.ray_job import RayJobLauncher
from coloop_server.launchers.upload import build_upload
from coloop_server.own_ray.__main__ import LOOK_SECONDS
from coloop_server.own_ray.folder import Head
from coloop_server.paths import Roots, spec_paths
from coloop_server.settings import DRIVER

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


@pytest.mark.slow
def test_a_run_takes_the_driver_that_has_loaded_and_both_outlive_the_server(
    start_server: StartServer, loop: str, eventually: Eventually, settings: Any
) -> None:
    real = {"COLOOP_LAUNCHER": "ray_job", "COLOOP_DRIVER": json.dumps(DRIVER)}
    endless = loop.replace("schedule: {steps: 3}", "schedule: {steps: 100000}")
    first = start_server(**real, COLOOP_ALLOWED_ROOTS=str(Path.cwd()))
    post(first, "/api/check", yaml=endless)
    (loaded,) = eventually(lambda: spares_of(first), 120)
    run_id = post(first, "/api/runs", yaml=endless)["id"]
    eventually(lambda: state(first, run_id) == "running", 120)
    note = settings.data_dir / "ray" / "head.json"
    head = Head(**json.loads(note.read_text()))
    hosts = hosts_of(head)
    assert head.address.startswith("http://127.0.0.1:")
    assert len(hosts) == 1, "the other one was not needed"
    first.kill()
    wait_for_its_keeper()
    assert head.is_running

    second = start_server(**real, COLOOP_ALLOWED_ROOTS=str(Path.cwd()))
    assert state(second, run_id) == "running"
    post(second, f"/api/runs/{run_id}/stop")
    eventually(lambda: state(second, run_id) == "stopped", 60)
    events = get(second, f"/api/runs/{run_id}/events")["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    eventually(lambda: not loaded.is_running(), 60)
    eventually(lambda: hosts_of(head) == [], 60)

    killed = post(second, "/api/runs", yaml=endless)["id"]
    eventually(lambda: state(second, killed) == "running", 120)
    (driver,) = spares_of(second)
    driver.kill()
    eventually(lambda: get(second, f"/api/runs/{killed}")["state"] == "failed", 60)
    assert get(second, f"/api/runs/{killed}")["error"]["code"] == "run.driver_died"
    eventually(lambda: hosts_of(head) == [], 60)

    assert second.stop() == 0
    assert not head.is_running
    assert not note.exists()
    assert not Path(head.temp_dir).exists()


def spares_of(server: Any) -> list[psutil.Process]:
    """Drivers that were loaded ahead, before and after they have become a run's."""
    below = psutil.Process(server.process.pid).children(recursive=True)
    return [one for one in below if "coloop.cli.spare" in words_of(one)]


def hosts_of(head: Head) -> list[psutil.Process]:
    """Of all runs on a Ray."""
    below = psutil.Process(head.pid).children(recursive=True)
    return [one for one in below if any("RayWorker" in word for word in words_of(one))]


def words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def wait_for_its_keeper() -> None:
    """Until a Ray has looked around for who needs it."""
    time.sleep(3 * LOOK_SECONDS)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[LocalRay, Head]]:
    """A Ray that stands for a cluster elsewhere."""
    ray = LocalRay(tmp_path / "cluster")
    head = ray.ensure(lambda _: None)
    yield ray, head
    ray.stop()


SPEC = """
coloop: 1
name: carried
nodes:
  q: {kind: dataset, source: {type: file, path: rows.jsonl}, rows_per_step: 1}
  r: {kind: reward, source: {type: python, file: code/mine.py}}
edges: [q.rows -> r.rows]
schedule: {steps: 1}
"""


def roots_of(folder: Path) -> Roots:
    return Roots(allowed=(folder,), runs=folder / "runs", private=folder / "private")


def test_code_travels_with_the_modules_beside_it(tmp_path: Path) -> None:
    code, texts = tmp_path / "code", tmp_path / "code" / "texts"
    texts.mkdir(parents=True)
    (code / "mine.py").write_text("import helper\nfrom texts.words import last\n")
    (code / "helper.py").write_bytes("# coding: latin-1\nNAME = 'caf\u00e9'\n".encode("latin-1"))
    (code / "unused.py").write_text("SECRET = 1\n")
    (texts / "__init__.py").write_text("")
    (texts / "words.py").write_text("def last(text):\n    return text[-1]\n")
    (tmp_path / "rows.jsonl").write_text('{"prompt": "1"}\n')
    (tmp_path / "spec.yaml").write_text(SPEC)
    here = read_code(code / "mine.py")

    folder = build_upload(tmp_path / "spec.yaml", tmp_path / "up", tmp_path, roots_of(tmp_path))

    spec = parse((folder / "spec.yaml").read_text()).spec
    assert spec is not None
    named = dict(spec_paths(spec))
    assert read_code(folder / named["nodes.r.source.file"]) == here
    assert sorted(here.modules) == ["helper", "texts.__init__", "texts.words"]
    assert (folder / named["nodes.q.source.path"]).read_text() == '{"prompt": "1"}\n'
    assert not [*folder.rglob("unused.py")]


def test_code_that_cannot_be_read_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mine.py").write_text("import helper\n")
    (tmp_path / "code" / "helper.py").write_bytes(b"# caf\xe9\n")
    (tmp_path / "spec.yaml").write_text(SPEC)

    with pytest.raises(LaunchFailed, match=r"nodes\.r\.source\.file: `helper\.py` is not encoded"):
        build_upload(tmp_path / "spec.yaml", tmp_path / "up", tmp_path, roots_of(tmp_path))


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
    launcher = RayJobLauncher(settings.model_copy(update={"ray_address": "http://127.0.0.1:1"}))
    starting = BusyRay(
        RuntimeError("status code 500: No available agent to submit job, please try again later."),
        ConnectionError("('Connection aborted.', RemoteDisconnected('Remote end closed it'))"),
    )
    refusing = BusyRay(RuntimeError("status code 500: the entrypoint is too long"))

    planned = launcher.plan("sums-1", 1)

    launcher.submit(starting, "http://127.0.0.1:1", order_in(tmp_path), planned)  # type: ignore[arg-type]

    assert starting.asked == [planned["job_id"]] * 3
    with pytest.raises(LaunchFailed, match=r"did not accept the job.*too long"):
        launcher.submit(refusing, "http://127.0.0.1:1", order_in(tmp_path), planned)  # type: ignore[arg-type]
    assert len(refusing.asked) == 1
