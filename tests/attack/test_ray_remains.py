"""A driver that is killed with the Ray that it began: nothing of that Ray is left, and what is not
of it is left alone."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.backend.servers import SOURCES
from tests.engine.smallest import GRPO

from coloop.workers.ray.ray_remains import RayWatcher
from coloop_server.launchers import has_ray

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc here"),
]

SECONDS = 120
KILLS = 12
MOST_SECONDS = 4.0
"""From the first process of a Ray to its kill: about as long as a start takes."""
ENDLESS = GRPO.replace("steps: 3", "steps: 100000")
HOLD = """
import os, sys
file = open(sys.argv[2], sys.argv[3])
os.write(1, f"{sys.argv[1]} {os.getpid()}\\n".encode())
sys.stdin.read()
"""
DRIVER = """
import os, subprocess, sys
from pathlib import Path
from coloop.workers.ray.ray_remains import RayWatcher

root, hold = Path(sys.argv[1]), sys.argv[2]

def begin(name, session, mode):
    log = root / session / "logs" / "agent.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    code = [sys.executable, "-c", hold, name, str(log), mode]
    subprocess.Popen(code, stdin=sys.stdin, stdout=sys.stdout, start_new_session=True)

me = os.getpid()
begin("of an earlier process of this number", f"session_1_{me}", "a")
watcher = RayWatcher(root)
begin("agent", f"session_2_{me}", "a")
begin("who reads its log", f"session_2_{me}", "r")
begin("of another driver", f"session_2_{me}1", "a")
if os.fork() == 0:
    os.write(1, f"fork {os.getpid()}\\n".encode())
sys.stdin.read()
"""
ENDS = """
import os, shutil, sys
from pathlib import Path
from coloop.workers.ray.ray_remains import RayWatcher

root, me = Path(sys.argv[1]), os.getpid()
watcher = RayWatcher(root)
logs = root / f"session_1_{me}" / "logs"
logs.mkdir(parents=True)
log = logs / f"python-core-driver-01_{me}.log"
own = open(log, "a")
if sys.argv[2] == "deleted":
    shutil.rmtree(logs.parent)
if sys.argv[2] == "full":
    log.rename(logs / f"python-core-driver-01_{me}.1.log")
watcher.end()
print("alive", flush=True)
"""


def begin(*command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def have_ended(numbers: set[int], seconds: float) -> set[int]:
    """Those that have ended by then; waits for the ends themselves."""
    poll = select.poll()
    left: dict[int, int] = {}
    ended = set()
    for pid in numbers:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            ended.add(pid)
            continue
        left[handle] = pid
        poll.register(handle, select.POLLIN)
    until = time.monotonic() + seconds
    while left and (rest := until - time.monotonic()) > 0:
        for handle, _ in poll.poll(rest * 1000):
            poll.unregister(handle)
            os.close(handle)
            ended.add(left.pop(handle))
    for handle in left:
        os.close(handle)
    return ended


def test_a_watcher_ends_what_its_driver_began_and_nothing_else(tmp_path: Path) -> None:
    driver = begin("-c", DRIVER, str(tmp_path), HOLD)
    assert driver.stdout is not None
    told = [driver.stdout.readline().rpartition(" ") for _ in range(5)]
    numbers = {int(pid): name for name, _, pid in told}

    driver.kill()

    agent = next(pid for pid, name in numbers.items() if name == "agent")
    assert have_ended({agent}, SECONDS) == {agent}
    assert {numbers[pid] for pid in have_ended(set(numbers), 0.5)} == {"agent"}
    driver.communicate()  # its input ends, and with it whoever was left


def test_who_ends_its_ray_itself_waits_until_nothing_is_left(tmp_path: Path) -> None:
    watcher = RayWatcher(tmp_path)
    log = tmp_path / f"session_1_{os.getpid()}" / "logs" / "agent.log"
    log.parent.mkdir(parents=True)
    agent = begin("-c", HOLD, "agent", str(log), "a")
    assert agent.stdout is not None
    agent.stdout.readline()

    watcher.end()

    agent.communicate()
    assert agent.returncode == -signal.SIGKILL


@pytest.mark.parametrize("log", ["there", "deleted", "full"])
def test_who_ends_its_ray_itself_lives_on_with_its_own_logs_open(tmp_path: Path, log: str) -> None:
    driver = begin("-c", ENDS, str(tmp_path), log)

    told, _ = driver.communicate(timeout=SECONDS)

    assert (told, driver.returncode) == ("alive\n", 0)


def drive(place: Path, loop: str = ENDLESS) -> "subprocess.Popen[str]":
    """`coloop run` with a Ray of its own."""
    (place / "loop.yaml").write_text(loop, encoding="utf-8")
    what = ("--json", str(place / "loop.yaml"), "--run-id", "run", "--runs-dir", str(place))
    return begin("-m", "coloop", "run", *what)


def of_ray(driver: int) -> set[int]:
    """Processes with a file of a session open that the driver began."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(f"_{driver}/" in os.readlink(file) for file in (place / "fd").iterdir()):
                found.add(int(place.name))
    return found


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(not has_ray(), reason="Ray is not installed")
def test_a_driver_that_is_killed_takes_the_ray_that_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    driver = drive(tmp_path)
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.startswith("{") and json.loads(line)["type"] == "stage.finished":
            break
    below = {one.pid for one in psutil.Process(driver.pid).children(recursive=True)}
    ray = of_ray(driver.pid) - {driver.pid}

    driver.kill()

    assert len(ray) >= 4
    assert have_ended(below | ray, SECONDS) == below | ray
    driver.communicate()


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(not has_ray(), reason="Ray is not installed")
def test_a_run_with_a_ray_of_its_own_ends_well_and_nothing_is_left_of_that_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    driver = drive(tmp_path, GRPO)
    ray: set[int] = set()
    told = []
    assert driver.stdout is not None
    for line in driver.stdout:
        told.append(line)
        ray |= of_ray(driver.pid)

    assert driver.wait(SECONDS) == 0, told[-1]
    assert len(ray) >= 5
    assert of_ray(driver.pid) == set()


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not has_ray(), reason="Ray is not installed")
def test_a_driver_may_be_killed_while_its_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "local")
    chance = random.Random(5)
    for number in range(KILLS):
        place = tmp_path / str(number)
        place.mkdir()
        driver = drive(place)
        until = time.monotonic() + SECONDS
        while not of_ray(driver.pid) and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(chance.random() * MOST_SECONDS)
        assert of_ray(driver.pid)

        driver.kill()

        while of_ray(driver.pid) - {driver.pid} and time.monotonic() < until:
            time.sleep(0.05)
        driver.communicate()
        assert of_ray(driver.pid) == set(), number
    record_property("tried", KILLS)
