"""Whoever is killed and whenever: nothing is lost, told twice or left out, and the same is learned.

A server with a real driver and a pool of two ranks; at random moments the server, the driver, a
rank, or the server and the driver together are killed, or the server's own Ray. Whoever is gone is
started again as a person would: the server on the same folder, a failed run by its resume.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.backend.servers import SOURCES, Server, environment_of, servers, settings_in
from tests.bench.bench_chaos import SYSTEMS
from tests.bench.killing import disturbed, text_of, weights_of
from tests.engine.rank_processes import ranks_of

from coloop_server.launchers import has_ray

KILLS = int(os.environ.get("COLOOP_ATTACK_KILLS", "88"))
RAY_KILLS = int(os.environ.get("COLOOP_ATTACK_RAY_KILLS", "12"))
MOST_EVENTS = 40
"""Between two kills."""
PATIENCE = 240.0
FINAL = ("finished", "failed", "stopped")


def eventually(question: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (answer := question()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {PATIENCE:.0f} s: {what}")
        time.sleep(0.02)
    return answer


@dataclass
class Besieged:
    """A run and its server, and what is done to them."""

    start: Callable[..., Server]
    data: Path
    environment: dict[str, str]
    chance: random.Random
    kills: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server = self.start(**self.environment)
        self.run_id = ""

    def begin(self, text: str) -> None:
        self.run_id = self.post("/api/runs", yaml=text)["id"]

    def get(self, path: str) -> Any:
        with self.server.http as http:
            return http.get(path).json()

    def post(self, path: str, **body: Any) -> Any:
        with self.server.http as http:
            return http.post(path, json=body).json()

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/runs/{self.run_id}")
        return found

    @property
    def folder(self) -> Path:
        return Path(self.run["folder"])

    def events(self) -> list[dict[str, Any]]:
        path = self.folder / "events.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def size(self) -> int:
        """Events that are written whole."""
        path = self.folder / "events.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def driver(self) -> psutil.Process | None:
        """The process that runs the loop now."""
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
            except psutil.Error:
                continue
            if "--run-id" in command and self.run_id in command:
                return process
        return None

    def wait(self) -> bool:
        """Until some events later; False where the run is over."""
        goal = self.size() + self.chance.randint(1, MOST_EVENTS)
        eventually(lambda: self.size() >= goal or self.run["state"] in FINAL, f"event {goal}")
        return self.run["state"] not in FINAL

    def kill(self, victim: str) -> None:
        driver = self.driver()
        if victim == "rank":
            ranks = ranks_of(driver) if driver is not None else []
            if not ranks:
                return
            self.chance.choice(ranks).kill()
        elif victim == "ray":
            note = self.data / "ray" / "head.json"
            psutil.Process(json.loads(note.read_text(encoding="utf-8"))["pid"]).kill()
        elif "driver" in victim and driver is None:
            return
        if "driver" in victim and driver is not None:
            driver.kill()
        if "server" in victim:
            self.server.kill()
            self.server = self.start(**self.environment)
        self.kills[victim] = self.kills.get(victim, 0) + 1

    def go_on(self) -> None:
        """A run that failed is resumed; one that was not taken up yet is waited for."""
        if self.run["state"] in ("failed", "stopped"):
            answer = self.post(f"/api/runs/{self.run_id}/resume")
            assert "id" in answer, answer

    def siege(self, victims: dict[str, int]) -> None:
        """Until all of them were killed and the run has finished."""
        left = [name for name, count in victims.items() for _ in range(count)]
        self.chance.shuffle(left)
        while True:
            goes_on = self.wait()
            if goes_on and left:
                before = sum(self.kills.values())
                self.kill(left[-1])
                if sum(self.kills.values()) > before:
                    left.pop()
                eventually(self.settled, "the run goes on or is over")
            self.go_on()
            if self.run["state"] == "finished":
                return

    def settled(self) -> bool:
        """The server knows whether there is a driver."""
        state = self.run["state"]
        return state in FINAL or (state != "starting" and self.driver() is not None)


def of_all_attempts(events: list[dict[str, Any]]) -> None:
    """Nothing is missing, and nothing stands twice."""
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    ends = [one for one in events if one["type"] == "run.state" and one["state"] in FINAL]
    assert len({one["attempt"] for one in ends}) == len(ends), "two last words of one attempt"
    assert ends[-1]["state"] == "finished"


@pytest.fixture
def besiege(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Besieged]]:
    monkeypatch.setenv("PYTHONPATH", SOURCES)
    settings = settings_in(tmp_path)
    settings.allowed_roots[0].mkdir(parents=True, exist_ok=True)
    usual = {
        **environment_of(settings),
        "COLOOP_DRIVER": json.dumps([sys.executable, "-m", "coloop", "run"]),
        "COLOOP_STOP_SECONDS": "60",
    }
    with servers(usual) as start:
        yield lambda **environment: Besieged(
            start, settings.data_dir, environment, random.Random(11)
        )


def calm(tmp_path: Path, text: str) -> str:
    """What the run learns that nobody disturbs."""
    return disturbed(tmp_path / "calm", text, "driver", 0, random.Random(0)).weights


def endless(text: str, steps: int) -> str:
    """So that there is something left to kill."""
    return text.replace("steps: 40", f"steps: {steps}")


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(3600)
def test_server_driver_and_ranks_may_be_killed_at_any_moment(
    besiege: Callable[..., Besieged],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    share = KILLS // 4
    victims = {"server": share, "driver": KILLS - 3 * share, "rank": share, "server, driver": share}
    text = endless(text_of("grpo-arithmetic", 2, SYSTEMS["grpo-arithmetic"]), 4 * KILLS)
    place = besiege()
    place.begin(text)

    place.siege(victims)

    record_property("tried", sum(place.kills.values()))
    record_property("through", 0)
    assert place.kills == victims
    of_all_attempts(place.events())
    (place.folder.parent / "run").symlink_to(place.folder)
    assert weights_of(place.folder.parent) == calm(tmp_path, text)


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.ray
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not has_ray(), reason="Ray is not installed")
def test_the_servers_own_ray_may_be_killed_at_any_moment(
    besiege: Callable[..., Besieged],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    text = endless(text_of("grpo-arithmetic", 1, SYSTEMS["grpo-arithmetic"]), 6 * RAY_KILLS)
    place = besiege(COLOOP_LAUNCHER="ray_job")
    place.begin(text)

    place.siege({"ray": RAY_KILLS})

    record_property("tried", sum(place.kills.values()))
    record_property("through", 0)
    of_all_attempts(place.events())
    (place.folder.parent / "run").symlink_to(place.folder)
    assert weights_of(place.folder.parent) == calm(tmp_path, text)
