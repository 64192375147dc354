"""Clusters and drivers that misbehave: away, silent, slow to end. No Ray runs here: a jobs API of
the test's own stands for it, and launchers that are told what to do."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in

from coloop.runtime.run_files.events import ControlRequest, RunStateName
from coloop_server.launchers import has_ray
from coloop_server.launchers.local_ray import LocalRay
from coloop_server.launchers.on_own_ray import OwnRayLauncher
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.launchers.ray_job import RayJobLauncher
from coloop_server.own_ray.__main__ import IdleShutdown
from coloop_server.own_ray.folder import Head, RayFolder
from coloop_server.processes import identity
from coloop_server.runs.folder import RunFolder
from coloop_server.runs.live import LiveRun
from coloop_server.runs.watch import Watch
from coloop_server.settings import Settings

needs_ray = pytest.mark.skipif(not has_ray(), reason="Ray is not installed")
Eventually = Callable[..., Any]
LoopThat = Callable[[str], str]


def line(seq: int, kind: str = "run.state", **fields: Any) -> str:
    head = {"seq": seq, "at": "2026-01-01T00:00:00Z", "run": "r", "attempt": 1, "type": kind}
    return json.dumps(head | fields) + "\n"


class ToldLauncher:
    """Does what the test says."""

    def __init__(self) -> None:
        self.liveness = Liveness(True)
        self.may_end = threading.Event()
        self.asked_to_end = threading.Event()
        self.follow_fails = 0
        self.follows = 0
        self.let_go_of: list[Handle] = []

    def start(self, order: Order) -> Handle:
        return {"job": order.run_id}

    def check(self, handle: Handle) -> Liveness:
        return self.liveness

    def ask(self, handle: Handle, folder: RunFolder, request: ControlRequest) -> bool:
        return True

    def end(self, handle: Handle) -> bool:
        self.asked_to_end.set()
        return self.may_end.wait(30)

    def follow(self, handle: Handle, folder: RunFolder) -> None:
        self.follows += 1
        if self.follows <= self.follow_fails:
            raise LaunchFailed("the cluster is away")

    def let_go(self, handle: Handle) -> None:
        self.let_go_of.append(handle)

    def close(self, *, runs_go_on: bool) -> None:
        self.may_end.set()


@pytest.fixture
def told() -> ToldLauncher:
    return ToldLauncher()


@pytest.fixture
def live(tmp_path: Path, told: ToldLauncher) -> Iterator[LiveRun]:
    """A run that goes on under the told launcher, its first event written."""
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "events.jsonl").write_text(line(1, state="running"))
    with ThreadPoolExecutor(2) as pool:
        yield LiveRun(
            id="r",
            watch=Watch(folder),
            launcher=told,
            handle={"job": "r"},
            attempt=1,
            log=tmp_path / "r.log",
            pool=pool,
            stop_seconds=60,
            stale_seconds=60,
        )
        told.may_end.set()


def states(run: LiveRun) -> list[str]:
    lines = run.watch.folder.events.read_text().splitlines()
    return [json.loads(one).get("state", "") for one in lines]


def look(live: LiveRun, question: Callable[[], Any]) -> Callable[[], Any]:
    """Look at the run, then ask."""

    def ask() -> Any:
        live.look()
        return question()

    return ask


def test_the_last_word_waits_until_the_driver_is_gone(
    live: LiveRun, told: ToldLauncher, eventually: Eventually
) -> None:
    live.ask_stop(at_once=True)
    live.look()
    assert told.asked_to_end.wait(30)
    events = live.watch.folder.events
    with events.open("a") as file:
        file.write(line(2, "log", message="saving"))
        file.write(line(3, "log", message="saved")[:30])
    live.look()
    with events.open("a") as file:
        file.write(line(3, "log", message="saved")[30:])

    assert live.verdict is None
    assert states(live) == ["running", "", ""]
    told.may_end.set()
    eventually(look(live, lambda: live.verdict))

    assert states(live) == ["running", "", "", "stopped"]
    seqs = [json.loads(one)["seq"] for one in events.read_text().splitlines()]
    assert seqs == [1, 2, 3, 4]
    assert told.let_go_of == [{"job": "r"}]


def test_a_driver_that_says_its_own_last_word_while_it_is_ended_keeps_it(
    live: LiveRun, told: ToldLauncher, eventually: Eventually
) -> None:
    live.ask_stop(at_once=True)
    live.look()
    assert told.asked_to_end.wait(30)
    with live.watch.folder.events.open("a") as file:
        file.write(line(2, state="stopped", message="by itself"))
    live.look()
    assert live.state is RunStateName.STOPPED
    assert not live.is_over  # its process still has the machine
    told.may_end.set()
    eventually(look(live, lambda: live.is_over))

    assert live.verdict is None
    assert states(live) == ["running", "stopped"]


def test_a_driver_that_cannot_be_ended_keeps_its_file_and_its_place(
    live: LiveRun, told: ToldLauncher, eventually: Eventually
) -> None:
    told.end = lambda _: False  # type: ignore[method-assign]
    live.ask_stop(at_once=True)
    eventually(look(live, lambda: live.alert))

    assert "has not ended yet" in (live.alert or "")
    assert live.verdict is None
    assert states(live) == ["running"]


def test_a_run_that_could_not_be_started_failed_unless_a_stop_was_asked_for(live: LiveRun) -> None:
    live.not_started(LaunchFailed("Ray did not take the job"))
    failed = live.verdict
    live.ask_stop(at_once=True)
    live.not_started(LaunchFailed("Ray did not take the job"))

    assert failed is not None
    assert live.verdict is not None
    assert (failed.state, failed.code) == (RunStateName.FAILED, "run.not_started")
    assert (live.verdict.state, live.verdict.code) == (RunStateName.STOPPED, None)
    assert "Ray did not take the job" in live.verdict.message


def test_what_writes_the_files_is_started_again_and_again_with_longer_pauses(
    live: LiveRun, told: ToldLauncher, eventually: Eventually
) -> None:
    told.follow_fails = 3
    pauses = []

    def has_followed(number: int) -> Callable[[], bool]:
        live.checked_at = -1e9  # the pause is over
        return lambda: told.follows >= number and live.checking is None

    for number in range(1, 4):
        eventually(look(live, has_followed(number)))
        pauses.append(live.patience)
    alert = live.alert
    eventually(look(live, has_followed(4)))
    eventually(look(live, lambda: live.alert is None))

    assert pauses == [2.0, 4.0, 8.0]
    assert "the cluster is away" in (alert or "")
    assert live.verdict is None
    assert live.patience == 1.0


class JobsApi:
    """The part of Ray's jobs API that the launcher uses, for one job."""

    def __init__(self) -> None:
        self.status = "RUNNING"
        self.stop_asked = threading.Event()
        self.silent_answers = 0
        self.requests: list[str] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.requests.append(self.path)
                if api.silent_answers > 0:
                    api.silent_answers -= 1
                    self.send_error(503)
                    return
                if self.path == "/api/jobs/":
                    self.answer([api.job()])
                    return
                self.answer(api.job() if "/api/jobs/" in self.path else api.version())

            def do_POST(self) -> None:
                api.stop_asked.set()
                self.answer({"stopped": True})

            def answer(self, body: object) -> None:
                text = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def version(self) -> dict[str, Any]:
        return {"version": "4", "ray_version": "2.60.0", "ray_commit": "x", "session_name": "s"}

    def job(self) -> dict[str, Any]:
        return {
            "type": "SUBMISSION",
            "submission_id": "r-1",
            "job_id": "1",
            "driver_info": None,
            "status": self.status,
            "entrypoint": "x",
        }


@pytest.fixture
def jobs() -> Iterator[JobsApi]:
    api = JobsApi()
    yield api
    api.server.shutdown()
    api.server.server_close()


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends when it is told to."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = subprocess.Popen(command, start_new_session=True)
    yield process
    process.kill()
    process.wait(30)


def note_ray(settings: Settings, address: str, process: "subprocess.Popen[bytes]") -> None:
    """Note a running process as the Ray of this server."""
    head = Head(
        pid=process.pid,
        started=identity(process.pid) or "",
        address=address,
        joined_at="127.0.0.1:1",
        temp_dir="/nowhere",
    )
    folder = settings.data_dir / "ray"
    folder.mkdir(parents=True)
    (folder / "head.json").write_text(json.dumps(asdict(head)))


@needs_ray
def test_ending_a_ray_job_returns_when_it_is_over(settings: Settings, jobs: JobsApi) -> None:
    launcher = RayJobLauncher(settings.model_copy(update={"ray_address": jobs.address}))
    handle = {"job_id": "r-1", "address": jobs.address, "shared": True, "folder": "/nowhere"}
    assert launcher.check(handle).is_alive
    ended: list[bool] = []
    ending = threading.Thread(target=lambda: ended.append(launcher.end(handle)))
    ending.start()
    assert jobs.stop_asked.wait(30)

    assert ended == []  # Ray was asked, and the job still runs
    jobs.status = "STOPPED"
    ending.join(60)

    assert ended == [True]
    assert not launcher.check(handle).is_alive


def test_a_driver_that_outlives_its_ray_still_has_its_files(
    settings: Settings, jobs: JobsApi, sleeper: "subprocess.Popen[bytes]"
) -> None:
    note_ray(settings, jobs.address, sleeper)
    driver = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    handle = {
        **{"run_id": "r", "mark": "m", "address": jobs.address},
        **{"pid": driver.pid, "started": identity(driver.pid)},
    }
    launcher = OwnRayLauncher(settings)
    sleeper.kill()
    sleeper.wait(30)

    assert launcher.check(handle).is_alive
    driver.kill()
    driver.wait(30)
    found = launcher.check(handle)
    assert not found.is_alive
    assert found.reason.startswith("the Ray that it ran on is gone")


@needs_ray
@pytest.mark.parametrize("is_local", [True, False])
def test_a_cluster_that_never_answers_is_given_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    from coloop_server.launchers import ray_client

    monkeypatch.setattr(ray_client, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        launcher = RayJobLauncher(settings.model_copy(update={"ray_address": address}))
        handle = {"job_id": "r-1", "address": address, "shared": is_local, "folder": "/nowhere"}

        liveness = launcher.check(handle)
        is_gone = launcher.end(handle)

    assert liveness.is_alive
    assert not liveness.is_reached
    assert "does not answer" in liveness.reason
    assert not is_gone


@needs_ray
def test_a_cluster_that_is_away_does_not_keep_the_server_from_starting(
    settings: Settings, loop: str, eventually: Eventually
) -> None:
    from coloop_server.database.connect import migrate, open_engine, open_sessions
    from coloop_server.runs import repository

    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    remote = settings.model_copy(
        update={"ray_address": address, "ray_shares_runs_dir": False, "launcher": "ray_job"}
    )
    settings.data_dir.mkdir(parents=True)
    engine = open_engine(settings.database)
    migrate(engine)
    with open_sessions(engine).begin() as session:
        row = repository.new_row(id="r", name="r", folder=str(settings.runs_dir / "r"), yaml=loop)
        row.state, row.launcher = "running", "ray_job"
        row.handle = {"job_id": "r-1", "address": address, "shared": False, "folder": "/nowhere"}
        session.add(row)
    engine.dispose()

    with signed_in(remote) as client:
        assert client.get("/api/health").status_code == 200
        run = eventually(lambda: shown_alert(client), 60)

    assert run["state"] == "running"
    assert address in run["message"]


def shown_alert(client: TestClient) -> dict[str, Any] | None:
    run: dict[str, Any] = client.get("/api/runs/r").json()
    return run if "cannot be watched" in (run["message"] or "") else None


def test_one_probe_without_an_answer_ends_no_ray(
    settings: Settings, jobs: JobsApi, sleeper: "subprocess.Popen[bytes]"
) -> None:
    note_ray(settings, jobs.address, sleeper)
    jobs.silent_answers = 2
    ray = LocalRay(settings.data_dir / "ray")

    head = ray.ensure(lambda _: None)

    assert head.pid == sleeper.pid
    assert sleeper.poll() is None
    assert len(jobs.requests) == 3


def test_a_ray_with_runs_on_it_is_never_ended_for_its_silence(
    settings: Settings, jobs: JobsApi, sleeper: "subprocess.Popen[bytes]"
) -> None:
    note_ray(settings, jobs.address, sleeper)
    jobs.silent_answers = 10**9
    ray = LocalRay(settings.data_dir / "ray", patience=0.0)

    with pytest.raises(LaunchFailed, match="left alone"):
        ray.ensure(lambda _: None, lambda: True)

    assert sleeper.poll() is None
    assert ray.known() is not None


@pytest.fixture
def gone() -> dict[str, Any]:
    """An owner who has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = {"pid": process.pid, "started": identity(process.pid)}
    process.kill()
    process.communicate(timeout=30)
    return owner


def test_a_ray_without_a_server_ends_itself_when_its_last_job_is_over(
    settings: Settings, jobs: JobsApi, sleeper: "subprocess.Popen[bytes]", gone: dict[str, Any]
) -> None:
    note_ray(settings, jobs.address, sleeper)
    ray = LocalRay(settings.data_dir / "ray")
    idle_shutdown = IdleShutdown(ray.folder, sleeper.pid)
    jobs.status = "SUCCEEDED"
    ray.claim()
    assert not idle_shutdown.look()  # it has a server

    ray.folder.owner.write_text(json.dumps(gone))
    for status in ("PENDING", "RUNNING"):
        jobs.status = status
        assert not idle_shutdown.look()
    jobs.status = "STOPPED"
    jobs.silent_answers = 1
    assert not idle_shutdown.look()  # what gives no answer may have a job

    assert idle_shutdown.look()
    assert ray.known() is None  # no server takes it any more


def test_a_ray_whose_folder_was_removed_ends_itself(
    settings: Settings, jobs: JobsApi, sleeper: "subprocess.Popen[bytes]"
) -> None:
    note_ray(settings, jobs.address, sleeper)
    ray = LocalRay(settings.data_dir / "ray")
    idle_shutdown = IdleShutdown(ray.folder, sleeper.pid)
    ray.claim()
    assert not idle_shutdown.look()
    shutil.rmtree(settings.data_dir)

    assert not idle_shutdown.look()  # a job goes on
    jobs.status = "FAILED"
    assert idle_shutdown.look()
    assert not settings.data_dir.exists()


def test_a_ray_is_not_ended_under_a_server_that_is_just_taking_it(
    settings: Settings,
    jobs: JobsApi,
    sleeper: "subprocess.Popen[bytes]",
    gone: dict[str, Any],
    eventually: Eventually,
) -> None:
    note_ray(settings, jobs.address, sleeper)
    ray = LocalRay(settings.data_dir / "ray")
    ray.folder.owner.write_text(json.dumps(gone))
    jobs.status = "SUCCEEDED"
    idle_shutdown = IdleShutdown(ray.folder, sleeper.pid)
    ended: list[bool] = []
    looking = threading.Thread(target=lambda: ended.append(idle_shutdown.look()))
    with ray.folder.alone():
        looking.start()
        eventually(lambda: jobs.requests)  # it has seen that nobody wants this Ray
        ray.folder.claim()  # and a server was faster
    looking.join(30)

    assert ended == [False]
    assert ray.known() is not None


def test_a_ray_of_somebody_else_is_none_of_a_keepers_business(
    settings: Settings, jobs: JobsApi, sleeper: "subprocess.Popen[bytes]", gone: dict[str, Any]
) -> None:
    note_ray(settings, jobs.address, sleeper)
    jobs.status = "SUCCEEDED"
    folder = RayFolder(settings.data_dir / "ray")
    folder.owner.write_text(json.dumps(gone))

    assert not IdleShutdown(folder, gone["pid"]).look()

    assert folder.known() is not None
    assert jobs.requests == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="sessions are read from /proc")
def test_what_a_killed_ray_left_is_ended_with_the_next_start(
    settings: Settings, tmp_path: Path, eventually: Eventually
) -> None:
    ray = LocalRay(settings.data_dir / "ray")
    leave = "import subprocess, sys; code = 'import time; time.sleep(600)'\n"
    leave += "log = open(sys.argv[1], 'w')\n"
    leave += "print(subprocess.Popen([sys.executable, '-c', code], stderr=log).pid, flush=True)"
    left = []
    for folder in ("session", "of-somebody-else"):
        (tmp_path / folder).mkdir()
        told = subprocess.Popen(
            [sys.executable, "-c", leave, str(tmp_path / folder / "agent.log")],
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert told.stdout is not None
        left.append((told.pid, int(told.stdout.readline())))
        told.wait(30)
        told.stdout.close()
    (leader, agent), (stranger, other) = left
    temp_dir = tmp_path / "session"
    with (temp_dir / "driver.log").open("w") as log:
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        driver = subprocess.Popen(sleep, stdout=log, start_new_session=True)
    try:
        for pid in (leader, stranger):  # a number that was given again names another session
            ray.folder.end_rest(
                Head(pid=pid, started="1", address="x", joined_at="x", temp_dir=str(temp_dir))
            )

        eventually(lambda: identity(agent) is None)
        eventually(lambda: identity(driver.pid) is None)
        assert identity(other) is not None
        assert not temp_dir.exists()
    finally:
        os.kill(other, signal.SIGKILL)
        driver.kill()
        driver.wait(30)
