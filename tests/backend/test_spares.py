"""Drivers that load before their run is known: when there is one, and what becomes of it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.backend.test_first_run import OwnRay, order_in

from coloop_server.launchers.on_own_ray import OwnRayLauncher
from coloop_server.launchers.protocol import LaunchFailed
from coloop_server.launchers.spare import Spare
from coloop_server.own_ray.folder import Head
from coloop_server.processes import of_launch
from coloop_server.settings import DRIVER, Settings

HEAD = Head(pid=1, started="", address="http://a", joined_at="a:1", temp_dir="")
OTHER = Head(pid=2, started="", address="http://b", joined_at="b:1", temp_dir="")


class FakeSpare:
    """One that has joined what it was asked to, or says why not."""

    def __init__(self, mark: str, reason: str | None = None) -> None:
        self.mark, self.reason = mark, reason
        self.head: Head | None = None
        self.is_alive = True
        self.arguments: list[str] = []

    def join(self, head: Head, hosts: int) -> None:
        self.head = self.head or head

    def joined(self, seconds: float, is_over: Callable[[], bool]) -> str | None:
        return self.reason

    def become(self, arguments: list[str], log: Path) -> Any:
        if not self.is_alive:
            raise BrokenPipeError("Broken pipe")
        self.arguments = arguments
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
    assert of_launch({"mark": "a-mark", "run_id": "none"}) != []

    spare.let_go()  # as when the server is killed

    assert spare.process.wait(60) == 0


def test_a_ray_that_is_not_there_is_told_and_the_command_is_obeyed(
    spare: Spare, tmp_path: Path
) -> None:
    spare.join(Head(pid=1, started="", address="", joined_at="127.0.0.1:1", temp_dir=""), 0)

    reason = spare.joined(240, lambda: False)

    assert reason is not None
    assert reason.startswith("no Ray answers at 127.0.0.1:1")
    spare.become(["run", "no-such-loop", "--local"], tmp_path / "log")
    assert spare.process.wait(60) == 1
    assert "no-such-loop" in (tmp_path / "log").read_text()
