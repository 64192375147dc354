"""A Ray of the server's own that does not start, starts at the second try, or ends too early: what
the person who pressed Run is told."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.signed_in import signed_in
from tests.bench import bench_first_step

from coloop_server.launchers import build_launchers, default_launcher, local_ray
from coloop_server.launchers.local_ray import LocalRay, make_temp_folder, reason_in
from coloop_server.launchers.on_own_ray import WARMING, OwnRayLauncher
from coloop_server.launchers.protocol import LaunchFailed, Order, RayFailed
from coloop_server.launchers.ray_job import told
from coloop_server.own_ray.folder import Head
from coloop_server.settings import Settings

FULL = "OSError: [Errno 28] No space left on device: '/tmp/ray'"
FAKE = """#!{python}
import http.server, pathlib, sys
options = dict(one[2:].split("=", 1) for one in sys.argv if one.startswith("--") and "=" in one)
count = pathlib.Path({count!r})
count.write_text(count.read_text() + "x" if count.exists() else "x")
if len(count.read_text()) <= {deaths}:
    print("Traceback (most recent call last):")
    print({last!r})
    sys.exit(1)
class Jobs(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(options["dashboard-port"])), Jobs).serve_forever()
"""


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LocalRay]]:
    """A Ray whose first process dies so many times before it answers."""
    made: list[LocalRay] = []

    def make(deaths: int, last: str = FULL) -> LocalRay:
        program, count = tmp_path / "ray", tmp_path / "count"
        text = FAKE.format(python=sys.executable, count=str(count), deaths=deaths, last=last)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setattr(local_ray.sys, "executable", str(program))
        ray = LocalRay(tmp_path / "own")
        made.append(ray)
        return ray

    yield make
    for ray in made:
        ray.stop()


@pytest.mark.parametrize(
    ("load", "busy"), [("", ""), ("load 9 on 2 cores", " (load 9 on 2 cores)")]
)
def test_a_ray_that_dies_once_is_started_again(
    dying: Callable[..., LocalRay], monkeypatch: pytest.MonkeyPatch, load: str, busy: str
) -> None:
    monkeypatch.setattr(local_ray, "busy_words", lambda: load)
    ray, said = dying(deaths=1), []

    head = ray.ensure(said.append)

    assert ray.is_well(head)
    assert said[-1] == (
        f"Ray ended while it started{busy}: the disk is full; free space on the disk of TMPDIR; "
        "it is started again"
    )


def test_one_that_dies_again_says_why_in_a_sentence_and_keeps_its_log(
    dying: Callable[..., LocalRay],
) -> None:
    ray = dying(deaths=9)

    with pytest.raises(RayFailed, match="the disk is full") as failed:
        ray.ensure(lambda _: None)

    assert failed.value.code == "run.ray_not_started"
    assert "one process" in (failed.value.hint or "")
    assert FULL in (failed.value.log or "")
    assert "Traceback" not in str(failed.value)
    assert (ray.folder.path.parent / "count").read_text() == "xx"
    assert ray.known() is None


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (FULL, "the disk is full"),
        ("OSError: [Errno 98] Address already in use", "a port that it needed is in use"),
        ("Exception: The current node timed out during startup. This", "too busy"),
        ("Some Ray subprocesses exited unexpectedly:\n  gcs_server [exit code=-9]", "was killed"),
        ("OSError: validate_socket_filename failed: AF_UNIX path length cannot", "TMPDIR"),
        ("x\nRuntimeError: something new.", "something new"),
        ("all is well", None),
    ],
)
def test_the_log_of_ray_is_read_for_the_reason(log: str, reason: str | None) -> None:
    found = reason_in(log)
    assert (found is None) if reason is None else reason in (found or "")


class OwnRay:
    """A Ray that is started as often as it is asked for, and dies before it takes a job."""

    def __init__(self, deaths: int) -> None:
        self.deaths, self.starts = deaths, 0

    def ensure(self, tell: Callable[[str], None], is_busy: object = None) -> Head:
        self.starts += 1
        address = f"http://127.0.0.1:{self.starts}"
        return Head(pid=self.starts, started="", address=address, joined_at="", temp_dir="")

    def is_well(self, head: Head) -> bool:
        return self.starts > self.deaths

    def failed(self, what: str) -> RayFailed:
        return RayFailed(f"{what}: the disk is full", log="its log")


def order_in(folder: Path, said: list[str]) -> Order:
    return Order(
        run_id="sums-1",
        attempt=1,
        spec=folder / "spec.yaml",
        folder=folder / "sums-1",
        log=folder / "log",
        root=folder,
        resume=None,
        force=False,
        tell=said.append,
    )


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_a_ray_that_ends_before_it_takes_the_run_is_started_again_once(
    deaths: int, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher, ray, said = OwnRayLauncher(settings), OwnRay(deaths), list[str]()
    planned = launcher.plan("sums-1", 1)

    def start_at(head: Head, *_: object) -> dict[str, Any]:
        if ray.starts <= deaths:
            raise LaunchFailed("Ray was not joined: nothing answers there")
        return {**planned, "address": head.address}

    monkeypatch.setattr(launcher, "local", ray)
    monkeypatch.setattr(launcher, "start_at", start_at)
    if deaths < 2:
        started = launcher.start(order_in(tmp_path, said), planned)
        assert started["address"].endswith(f":{deaths + 1}")
        again = "Ray ended before it took the run: the disk is full; it is started again"
        assert said == [again] * deaths
    else:
        with pytest.raises(RayFailed, match=r"ended twice.*: the disk is full"):
            launcher.start(order_in(tmp_path, said), planned)


def test_errors_of_rays_client_are_told_without_its_own_words() -> None:
    requests = pytest.importorskip("requests")
    refused = requests.ConnectionError(
        "HTTPConnectionPool(host='127.0.0.1', port=1): Max retries exceeded with url: /api/jobs/ "
        "(Caused by NewConnectionError('<object at 0x7f>: [Errno 111] Connection refused'))"
    )
    assert told(refused) == "nothing listens there"
    assert "waits" in told(requests.ReadTimeout("HTTPConnectionPool(...): Read timed out."))
    assert told(RuntimeError("the entrypoint is too long")) == "the entrypoint is too long"


def test_a_long_tmpdir_has_a_short_folder_for_rays_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr(local_ray.tempfile, "tempdir", str(long))

    made = Path(make_temp_folder())

    assert made.parent.name == f"coloop-{os.getuid()}"
    made.rmdir()


def test_a_run_may_be_started_in_one_process_where_runs_stay_here(
    client: TestClient, settings: Settings, loop: str, eventually: Callable[..., Any]
) -> None:
    asked = {"yaml": loop, "in_one_process": True}
    run = client.post("/api/runs", json=asked).json()
    ended = eventually(
        lambda: (
            (found := client.get(f"/api/runs/{run['id']}").json())["state"] == "finished" and found
        ),
        60,
    )
    assert ended["launcher"] == "process"


def test_ray_starts_with_the_first_loop_that_can_run_here(
    settings: Settings, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    monkeypatch.setattr(LocalRay, "ensure", lambda ray, tell: began.append("ensure"))
    ours = settings.model_copy(update={"launcher": "ray_job"})
    with signed_in(ours) as client:
        client.post("/api/check", json={"yaml": loop.replace("exact.scores", "exact.scoers")})
        client.post("/api/check", json={"yaml": loop.replace("preset: cpu", "preset: 8xH100")})
        assert began == [], "neither of them can run here"
        for _ in range(2):
            assert client.post("/api/check", json={"yaml": loop}).json()["missing"] is None
        for thread in threading.enumerate():
            if thread.name == WARMING:
                thread.join(30)
        assert began == ["ensure"]


@pytest.mark.parametrize("other", [{"warm_ray": False}, {"ray_address": "http://127.0.0.1:1"}])
def test_ray_waits_for_a_run_where_it_is_told_to(
    other: dict[str, Any], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnRayLauncher, "prepare", lambda _: pytest.fail("it was started"))
    before = threading.active_count()
    told = settings.model_copy(update=other | {"launcher": "ray_job"})
    build_launchers(told)[default_launcher(told)].warm()
    assert threading.active_count() == before


def test_a_server_that_ends_does_not_wait_for_its_ray(
    dying: Callable[..., LocalRay], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = dying(deaths=0)
    monkeypatch.setattr(ray, "answers", lambda address: False)
    failed: list[BaseException] = []

    def start() -> None:
        try:
            ray.ensure(lambda _: None)
        except RayFailed as error:
            failed.append(error)

    starting = threading.Thread(target=start)
    starting.start()
    while ray.child is None:
        time.sleep(0.01)
    ray.is_closing.set()
    starting.join(30)
    assert [str(one) for one in failed] == ["the server ended"]
    assert ray.folder.noted() is None


@pytest.mark.slow
def test_the_first_run_of_all_beside_busy_programs_ends_well() -> None:
    """With nothing loaded ahead, and every core taken twice."""
    first, whole, state = bench_first_step.once("nothing before", bench_first_step.BUSY)

    assert state == "finished"
    assert first < whole
