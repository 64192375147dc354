"""Drivers that load before their run is known: when there is one, and what becomes of it."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.backend.test_first_run import OwnRay, order_in

from coloop_server.launchers import build_launchers, default_launcher
from coloop_server.launchers.on_own_ray import OwnRayLauncher, Spare
from coloop_server.launchers.protocol import LaunchFailed, RayFailed
from coloop_server.own_ray.folder import Head
from coloop_server.processes import of_launch
from coloop_server.settings import DRIVER, Settings

HEAD = Head(pid=1, started="", address="http://a", joined_at="a:1", temp_dir="")
OTHER = Head(pid=2, started="", address="http://b", joined_at="b:1", temp_dir="")
PATIENCE = 400.0
"""Seconds for a process to end that loads torch first, on a machine that has no time for it."""


class FakeSpare:
    """One that has joined what it was asked to, or says why not."""

    def __init__(self, mark: str, reason: str | None = None) -> None:
        self.mark, self.reason = mark, reason
        self.head: Head | None = None
        self.is_alive, self.has_run = True, False
        self.arguments: list[str] = []

    def join(self, head: Head, hosts: int) -> None:
        self.head = self.head or head

    def joined(self, seconds: float, is_over: Callable[[], bool]) -> str | None:
        return self.reason

    def become(self, arguments: list[str], log: Path) -> Any:
        if not self.is_alive:
            raise BrokenPipeError("Broken pipe")
        self.arguments, self.has_run = arguments, True
        return psutil.Process()

    def end(self) -> None:
        self.is_alive = False


class Known(OwnRay):
    """A Ray of the server's own that runs already."""

    def __init__(self, head: Head = HEAD) -> None:
        super().__init__(deaths=0)
        self.head = head

    def ensure(self, tell: Callable[[str], None], is_busy: object = None) -> Head:
        return self.head

    def is_well(self, head: Head) -> bool:
        return True

    def claim(self) -> None:
        """It is the server's."""

    is_closing = threading.Event()


@pytest.fixture
def made() -> list[FakeSpare]:
    """Every spare driver that was started."""
    return []


@pytest.fixture
def launcher(
    settings: Settings, made: list[FakeSpare], monkeypatch: pytest.MonkeyPatch
) -> OwnRayLauncher:
    launcher = OwnRayLauncher(settings.model_copy(update={"driver": DRIVER}))

    def new_spare(mark: str) -> FakeSpare:
        made.append(FakeSpare(mark))
        return made[-1]

    monkeypatch.setattr(launcher, "local", Known())
    monkeypatch.setattr(launcher, "new_spare", new_spare)
    return launcher


def warmed(launcher: OwnRayLauncher) -> None:
    launcher.warm()
    assert launcher.warming is not None
    launcher.warming.join(30)


def test_the_first_run_takes_it_and_there_is_no_other_while_that_goes_on(
    launcher: OwnRayLauncher, made: list[FakeSpare], tmp_path: Path
) -> None:
    for _ in range(3):
        warmed(launcher)
    assert len(made) == 1

    planned = launcher.plan("sums-1", 1)
    handle = launcher.start(order_in(tmp_path, []), planned)

    assert planned == {"run_id": "sums-1", "mark": made[0].mark}
    assert made[0].arguments[:2] == ["run", str(tmp_path / "spec.yaml")]
    assert made[0].arguments[-2:] == ["--address", "a:1"]
    launcher.warm()
    assert len(made) == 1
    launcher.let_go(handle)
    warmed(launcher)
    assert len(made) == 2


def test_without_one_the_run_starts_its_own(
    launcher: OwnRayLauncher, made: list[FakeSpare], tmp_path: Path
) -> None:
    planned = launcher.plan("sums-1", 1)
    assert made == []

    launcher.start(order_in(tmp_path, []), planned)

    assert [one.mark for one in made] == [planned["mark"]]


def test_one_that_joined_a_ray_which_is_gone_is_replaced(
    launcher: OwnRayLauncher,
    made: list[FakeSpare],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warmed(launcher)
    monkeypatch.setattr(launcher, "local", Known(OTHER))

    launcher.start(order_in(tmp_path, []), launcher.plan("sums-1", 1))

    assert not made[0].is_alive
    assert made[1].head == OTHER
    assert made[1].arguments[-1] == "b:1"


def test_one_that_has_ended_is_replaced(
    launcher: OwnRayLauncher, made: list[FakeSpare], tmp_path: Path
) -> None:
    warmed(launcher)
    made[0].is_alive = False
    planned = launcher.plan("sums-1", 1)
    assert planned["mark"] != made[0].mark

    warmed(launcher)
    planned = launcher.plan("sums-2", 1)
    made[1].is_alive = False
    launcher.start(order_in(tmp_path, []), planned)
    assert made[2].mark == made[1].mark, "the mark that was noted finds it"


def test_why_it_did_not_join_is_told(
    launcher: OwnRayLauncher, made: list[FakeSpare], tmp_path: Path
) -> None:
    warmed(launcher)
    made[0].reason = "no Ray answers at a:1: no answer within 20 s"

    with pytest.raises(LaunchFailed, match=r"Ray at a:1 was not joined: no Ray answers"):
        launcher.start(order_in(tmp_path, []), launcher.plan("sums-1", 1))

    assert not made[0].is_alive


def test_where_ray_does_not_start_it_ends(
    launcher: OwnRayLauncher, made: list[FakeSpare], tmp_path: Path
) -> None:
    def ensure(*_: object) -> Head:
        raise RayFailed("Ray ended while it started: the disk is full")

    launcher.local.ensure = ensure  # type: ignore[method-assign]

    with pytest.raises(RayFailed, match="the disk is full"):
        launcher.start(order_in(tmp_path, []), launcher.plan("sums-1", 1))

    assert [one.is_alive for one in made] == [False]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"launcher": "process"}, "process"),
        ({"launcher": "ray_job"}, "own_ray"),
        ({"launcher": "ray_job", "ray_address": "http://127.0.0.1:1"}, "ray_job"),
    ],
)
def test_a_run_stays_with_what_started_it_whatever_the_settings_say_later(
    told: dict[str, Any], name: str, settings: Settings
) -> None:
    assert default_launcher(settings.model_copy(update=told)) == name
    later = build_launchers(settings)
    handle = {"run_id": "r", "mark": "m", "pid": 2**30, "started": "1", "address": "http://a"}
    job = {"job_id": "r-1", "address": "http://127.0.0.1:1", "shared": True, "folder": "/nowhere"}

    assert not later["own_ray"].check(handle).is_alive
    assert not later["ray_job"].check(job).is_reached
    with pytest.raises(LaunchFailed, match="COLOOP_RAY_ADDRESS names none"):
        later["ray_job"].find(later["ray_job"].plan("r", 1))


def test_a_server_that_ends_takes_it_along(
    launcher: OwnRayLauncher, made: list[FakeSpare], monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed(launcher)
    monkeypatch.setattr(Known, "stop", lambda _: None, raising=False)

    launcher.close(runs_go_on=False)

    assert not made[0].is_alive


@pytest.fixture
def spare(tmp_path: Path) -> Iterator[Spare]:
    """A real one, which loads."""
    made = Spare("a-mark", tmp_path / "spare.log", {})
    yield made
    made.end()


def test_it_ends_with_its_server_whatever_it_does(spare: Spare) -> None:
    # Linux shows the words of a process a moment after the program has begun.
    while not of_launch({"mark": "a-mark", "run_id": "none"}):
        assert spare.is_alive
        time.sleep(0.01)

    spare.let_go()  # as when the server is killed

    assert spare.process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_a_ray_that_is_not_there_is_told_and_the_command_is_obeyed(
    spare: Spare, tmp_path: Path
) -> None:
    spare.join(Head(pid=1, started="", address="", joined_at="127.0.0.1:1", temp_dir=""), 0)

    reason = spare.joined(240, lambda: False)

    assert reason is not None
    assert reason.startswith("no Ray answers at 127.0.0.1:1")
    spare.become(["run", "no-such-loop", "--local"], tmp_path / "log")
    assert spare.process.wait(PATIENCE) == 1
    assert "no-such-loop" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_without_a_run_it_ends_after_a_while() -> None:
    command = [sys.executable, "-m", "coloop.cli.spare", "--seconds", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(PATIENCE) == 0
