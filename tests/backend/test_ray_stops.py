"""Runs on a real Ray that are told to end at once, at any moment: whoever hears that a run is over
may rely on it. The driver and its pools are gone, the event file is whole, the next run starts."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from coloop.runtime.run_files.events import StopRequest
from coloop_server.launchers import has_ray
from coloop_server.own_ray.folder import Head
from coloop_server.processes import identity
from coloop_server.settings import DRIVER

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(not has_ray(), reason="Ray is not installed"),
]

StartServer = Callable[..., Any]
Eventually = Callable[..., Any]

SLOW_REWARD = """
  slow:
    kind: reward
    source: {type: python, timeout_seconds: 120, code: "def reward(prompts, completions, **columns):
      import time; time.sleep(60); return [0.0 for _ in completions]"}
"""
ENDLESS = "schedule: {steps: 100000}\nrun: {checkpoint_every: 3}"
MOMENTS = {
    "Ray starts": lambda told: "Ray" in told.message,
    "at once": lambda told: True,
    "its driver loads": lambda told: "its driver" in told.message,
    "its first word": lambda told: told.has("run.state"),
    "the pools are there": lambda told: told.has("phase"),
    "generate": lambda told: told.has("stage.started", "actor.generate"),
    "a reward that sleeps": lambda told: told.has("stage.started", "slow.score"),
    "learn": lambda told: told.has("stage.started", "actor.learn"),
    "a checkpoint is written": lambda told: told.writes_checkpoint,
    "some steps later": lambda told: told.step >= 7,
}
"""When a run is told to end, by what is known of it; the first one starts the Ray of all."""


@dataclass(frozen=True)
class Told:
    """What is known of a run at a moment."""

    message: str
    step: int
    events: list[dict[str, Any]]
    folder: Path

    def has(self, kind: str, stage: str | None = None) -> bool:
        return any(one["type"] == kind and stage in (None, one.get("stage")) for one in self.events)

    @property
    def writes_checkpoint(self) -> bool:
        return any(self.folder.glob("checkpoints/*"))


@dataclass
class Service:
    """A server with runs on a Ray of its own."""

    server: Any
    note: Path
    eventually: Eventually

    def get(self, path: str) -> Any:
        with self.server.http as http:
            return http.get(path).json()

    def post(self, path: str, **body: Any) -> Any:
        with self.server.http as http:
            return http.post(path, json=body).json()

    def state(self, run_id: str) -> str:
        found: str = self.get(f"/api/runs/{run_id}")["state"]
        return found

    def told(self, run_id: str) -> Told:
        run = self.get(f"/api/runs/{run_id}")
        assert run["state"] not in ("failed", "finished"), run
        return Told(run["message"] or "", run["step"] or 0, self.events(run), Path(run["folder"]))

    def events(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        path = Path(run["folder"]) / "events.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def stop_at(self, run_id: str, moment: str) -> None:
        self.eventually(lambda: MOMENTS[moment](self.told(run_id)), 240)
        self.post(f"/api/runs/{run_id}/stop", force=True)
        self.eventually(lambda: self.state(run_id) in ("stopped", "failed"), 120)

    @property
    def head(self) -> Head:
        return Head(**json.loads(self.note.read_text()))

    def processes(self) -> dict[int, str]:
        """Everything below the server, its Ray among it, by number: what the system shows of it."""
        shown = {}
        for process in psutil.Process(self.server.process.pid).children(recursive=True):
            try:
                shown[process.pid] = " ".join(process.cmdline())
            except psutil.Error:
                continue
        return shown

    def left_behind(self) -> Callable[[], list[str]]:
        """Asks what is left of the Ray that runs now, and of what it started."""
        head, shown = self.head, self.processes()
        began = {pid: identity(pid) for pid in shown} | {head.pid: head.started}
        shown[head.pid] = "ray"

        def left() -> list[str]:
            found = [shown[pid].strip() for pid, at in began.items() if at and identity(pid) == at]
            return found + [one for one in (head.temp_dir,) if Path(one).exists()]

        return left

    def of_runs(self) -> list[str]:
        """Drivers, and the hosts of their pools."""
        words = ("coloop.cli.spare", "RayWorker")
        return [one for one in self.processes().values() if any(word in one for word in words)]


@pytest.fixture
def serve(
    start_server: StartServer, settings: Any, eventually: Eventually
) -> Iterator[Callable[..., Service]]:
    services: list[Service] = []

    def start(**environment: str) -> Service:
        roots = str(Path.cwd())
        server = start_server(
            COLOOP_LAUNCHER="ray_job",
            COLOOP_ALLOWED_ROOTS=roots,
            COLOOP_DRIVER=json.dumps(DRIVER),
            COLOOP_KEEP_RUNS="false",
            **environment,
        )
        services.append(Service(server, settings.data_dir / "ray" / "head.json", eventually))
        return services[-1]

    yield start
    for service in services:
        if service.server.process.poll() is None:
            service.server.stop()


def assert_whole(service: Service, run_id: str, moment: str) -> None:
    """It ended as it was told, with an event file without a gap, and nothing of it is left."""
    assert service.of_runs() == [], moment
    run = service.get(f"/api/runs/{run_id}")
    assert run["state"] == "stopped", (moment, run)
    events = service.events(run)
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    if events:
        assert (events[-1]["type"], events[-1]["state"]) == ("run.state", "stopped")


def none_after_a_while(left: Callable[[], list[str]]) -> list[str]:
    """What is left when nothing is, or after a minute."""
    deadline = time.monotonic() + 60
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_may_be_ended_at_any_moment(serve: Callable[..., Service], loop: str) -> None:
    service = serve()
    endless = loop.replace("schedule: {steps: 3}", ENDLESS)
    slow = endless.replace("edges:", SLOW_REWARD.strip("\n") + "\nedges:")
    slow = slow.replace(
        "schedule:",
        "  - actor.rollouts -> slow.rollouts\n  - slow.scores -> actor.rewards\nschedule:",
    )

    for moment in MOMENTS:
        text = slow if "reward" in moment else endless
        run_id = service.post("/api/runs", yaml=text)["id"]
        service.stop_at(run_id, moment)
        assert_whole(service, run_id, moment)

    left = service.left_behind()
    assert service.server.stop() == 0
    assert left() == []


@pytest.mark.slow
def test_a_ray_that_dies_fails_its_run_and_one_without_a_server_ends_with_its_last_run(
    serve: Callable[..., Service], loop: str, eventually: Eventually
) -> None:
    service = serve()
    endless = loop.replace("schedule: {steps: 3}", ENDLESS)
    lost = service.post("/api/runs", yaml=endless)["id"]
    eventually(lambda: service.state(lost) == "running", 90)
    first = service.head
    left = service.left_behind()
    os.kill(first.pid, signal.SIGKILL)

    eventually(lambda: service.state(lost) == "failed", 90)
    run = service.get(f"/api/runs/{lost}")
    assert run["error"]["code"] == "run.driver_died"
    assert "the Ray that it ran on is gone" in run["message"]
    seqs = [one["seq"] for one in service.events(run)]
    assert seqs == list(range(1, len(seqs) + 1))

    kept = service.post("/api/runs", yaml=endless)["id"]
    eventually(lambda: service.state(kept) == "running", 90)
    assert service.head.pid != first.pid
    assert none_after_a_while(left) == []
    folder = Path(service.get(f"/api/runs/{kept}")["folder"])
    left = service.left_behind()
    service.server.kill()
    with (folder / "control.jsonl").open("a") as control:
        control.write(StopRequest().model_dump_json() + "\n")

    assert none_after_a_while(left) == []
    assert '"stopped"' in (folder / "events.jsonl").read_text()
    assert not service.note.exists()
