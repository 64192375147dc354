"""Who writes into a run folder: several at once, dead ones, ones on other machines, and drivers
that are killed while they write checkpoints. One writes, the others say so and leave no trace."""

import json
import os
import random
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.attack.small_run import request_of
from tests.engine.smallest import GRPO
from tests.forked import begin

from coloop.errors import RunBusy, RunFolderExists
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.checkup import check_run
from coloop.runtime.run_files.event_file import read_events
from coloop.runtime.run_files.events import RunStateName
from coloop.runtime.run_files.run_lock import LOCK_FILE, RunLock, holder, is_held
from coloop.runtime.start import run

pytestmark = pytest.mark.attack

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
STEPS = 12
DIGIT = "{type: builtin, name: regex, pattern: '([0-9])', scale: [0, 9]}"
"""A reward that differs between the texts of a random model, so that each step changes weights."""
LOOP = (
    GRPO.replace("steps: 3", f"steps: {STEPS}").replace("{type: builtin, name: exact_match}", DIGIT)
    + "run: {checkpoint_every: 1, keep: 3}\n"
)
AT_ONCE = 4
KILLED_BY = -signal.SIGKILL
WRITING = (".new", "actor", "trainer.pt", "manifest.json")
"""What shows that a checkpoint is being written: its folder, then what comes into it."""


class Driver:
    """`coloop run` as a process whose events come on its standard output."""

    def __init__(self, folder: Path, *what: str) -> None:
        self.folder = folder
        command = ("-m", "coloop", "run", "--json", "--threads", "1", *what)
        self.process = begin(*command, "--runs-dir", str(folder.parent), stderr=subprocess.PIPE)

    def wait_for(self, is_here: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for line in self.process.stdout:
            if line.startswith("{") and is_here(event := json.loads(line)):
                return dict(event)
        pytest.fail("the event never came")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """Exit code, and what it wrote from here on."""
        out, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out + errors


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Starts drivers of the run `tmp_path/run`, which end with the test."""
    started: list[Driver] = []
    (tmp_path / "loop.yaml").write_text(LOOP, encoding="utf-8")

    def start(*options: str, goes_on: bool = True, cluster: Sequence[str] = ("--local",)) -> Driver:
        new = [str(tmp_path / "loop.yaml"), "--run-id", "run"]
        what = ["--resume", "run"] if goes_on else new
        started.append(Driver(tmp_path / "run", *what, *cluster, *options))
        return started[-1]

    yield start
    for driver in started:
        if driver.process.poll() is None:
            driver.process.kill()
        driver.process.communicate()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of a run that nobody disturbs."""
    place = tmp_path_factory.mktemp("undisturbed")
    assert run(request_of(place, LOOP, goes_on=False)).state is RunStateName.FINISHED
    return weights_of(place / "run")


def weights_of(folder: Path) -> str:
    """SHA-256 over the weights of the last step."""
    last = list_checkpoints(folder / "checkpoints")[-1]
    assert last.step == STEPS
    total = sha256()
    for path in sorted(last.path.glob("*/model.safetensors")):
        total.update(path.read_bytes())
    return total.hexdigest()


def is_gapless(folder: Path) -> bool:
    seqs = [event["seq"] for event in read_events(folder / "events.jsonl")]
    return seqs == list(range(1, len(seqs) + 1))


def is_checkpoint(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "checkpoint")


def content(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file of a folder: its size and when it was changed; of the lock neither."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != LOCK_FILE
    }


@pytest.mark.slow
def test_a_run_that_is_driven_is_resumed_by_nobody_else(drive: Callable[..., Driver]) -> None:
    first = drive(goes_on=False)
    first.wait_for(is_checkpoint)
    first.process.send_signal(signal.SIGSTOP)
    before = content(first.folder)

    code, told = drive().end()

    assert code == 4
    assert f"process {first.process.pid} on" in told
    assert "nothing was written" in told
    assert content(first.folder) == before
    first.process.send_signal(signal.SIGCONT)
    assert first.end()[0] == 0
    assert is_gapless(first.folder)
    assert not is_held(first.folder)


def in_a_thread(place: Path, *, goes_on: bool) -> str:
    """How an attempt at the run in this process ends."""
    try:
        return run(request_of(place, LOOP, goes_on=goes_on)).state.value
    except (RunBusy, RunFolderExists) as error:
        return error.code


@pytest.mark.sample(1)
@pytest.mark.parametrize("goes_on", [False, True], ids=["new", "resumed"])
def test_of_many_that_write_at_once_one_wins(
    goes_on: bool, tmp_path: Path, undisturbed: str
) -> None:
    if goes_on:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "spec.yaml").write_text(LOOP, encoding="utf-8")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        tries = [threads.submit(in_a_thread, tmp_path, goes_on=goes_on) for _ in range(AT_ONCE)]
    ends = Counter(one.result() for one in tries)

    # Who comes when the first is done already goes on with a run that has finished.
    assert ends["finished"] >= 1
    assert ends["finished"] + ends["run.busy"] + ends["run.folder_exists"] == AT_ONCE
    assert is_gapless(tmp_path / "run")
    attempts = [event["attempt"] for event in read_events(tmp_path / "run" / "events.jsonl")]
    assert attempts == sorted(attempts), "two wrote at once"
    assert weights_of(tmp_path / "run") == undisturbed


@pytest.mark.slow
def test_runs_whose_checkpoints_lie_side_by_side_do_not_keep_each_other_out(
    tmp_path: Path, undisturbed: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "spec.yaml").write_text(LOOP, encoding="utf-8")
    for name in ("own", "other"):
        (tmp_path / "far" / name).mkdir(parents=True)
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "far" / "own")

    with RunLock(tmp_path / "far" / "other"):
        assert in_a_thread(tmp_path, goes_on=True) == "finished"
    with RunLock(tmp_path / "far" / "own"):
        assert in_a_thread(tmp_path, goes_on=True) == "run.busy"
    assert weights_of(tmp_path / "run") == undisturbed


@pytest.mark.slow
def test_of_many_drivers_that_go_on_at_once_one_wins(
    drive: Callable[..., Driver], undisturbed: str
) -> None:
    first = drive(goes_on=False)
    first.wait_for(is_checkpoint)
    first.kill()

    ends = [driver.end()[0] for driver in [drive() for _ in range(AT_ONCE)]]

    assert sorted(ends) == [0, *[4] * (AT_ONCE - 1)]
    assert is_gapless(first.folder)
    assert {event["attempt"] for event in read_events(first.folder / "events.jsonl")} == {1, 2}
    assert weights_of(first.folder) == undisturbed
    assert not [one for one in check_run(first.folder) if one.level == "damaged"]


@pytest.mark.slow
def test_a_run_on_another_machine_is_not_gone_on_with_until_it_has_been_silent(
    drive: Callable[..., Driver], undisturbed: str
) -> None:
    first = drive(goes_on=False)
    first.wait_for(is_checkpoint)
    far = holder(first.folder)
    assert far is not None
    first.kill()
    lock = first.folder / LOCK_FILE
    lock.write_text(json.dumps(asdict(replace(far, host="far", kernel="another"))) + "\n")

    code, told = drive().end()
    assert (code, "on far" in told) == (4, True)
    os.utime(lock, (time.time() - 3600,) * 2)

    assert drive().end()[0] == 0
    assert weights_of(first.folder) == undisturbed


@pytest.mark.slow
def test_somebody_who_holds_it_for_a_moment_delays_a_start_only(
    tmp_path: Path, drive: Callable[..., Driver]
) -> None:
    first = drive(goes_on=False)
    first.wait_for(is_checkpoint)
    first.kill()
    lock = RunLock(first.folder)
    lock.take()
    driver = drive()
    assert driver.process.stdout is not None
    assert not select.select([driver.process.stdout], [], [], 0.5)[0]
    lock.release()

    assert driver.end()[0] == 0


def kill_while_writing(driver: Driver, chance: random.Random) -> bool:
    """SIGKILL at a random point inside the writing of a checkpoint; False where the run ended
    before."""
    wanted, left = chance.choice(WRITING), chance.randint(1, 4)
    delay = chance.random() * 0.01
    seen: set[Path] = set()
    place = driver.folder / "checkpoints"
    until = time.monotonic() + SECONDS
    while driver.process.poll() is None and time.monotonic() < until:
        with suppress(FileNotFoundError):  # it goes on meanwhile
            for aside in place.glob(".step-*.new"):
                if wanted == ".new" or next(aside.rglob(wanted), None) is not None:
                    seen.add(aside)
        if len(seen) >= left:
            time.sleep(delay)
            break
        time.sleep(0.001)
    has_ended = driver.process.poll() is not None
    driver.kill()
    return not has_ended


def killed_again_and_again(drive: Callable[..., Driver], kills: int, seed: int) -> Path:
    """A run whose driver is killed so many times inside checkpoint writing, then goes to its
    end."""
    chance = random.Random(seed)
    driver = drive(goes_on=False)
    for number in range(1, kills + 1):
        if not kill_while_writing(driver, chance):
            break
        if number < kills:
            driver = drive()
    assert run(request_of(driver.folder.parent, LOOP, goes_on=True)).state is RunStateName.FINISHED
    return driver.folder


def test_a_kill_inside_the_writing_of_a_checkpoint_loses_nothing(
    drive: Callable[..., Driver], undisturbed: str
) -> None:
    folder = killed_again_and_again(drive, kills=1, seed=1)

    assert weights_of(folder) == undisturbed
    assert is_gapless(folder)
    assert not [one for one in check_run(folder) if one.level == "damaged"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20))
def test_many_kills_inside_the_writing_of_checkpoints_lose_nothing(
    seed: int, drive: Callable[..., Driver], undisturbed: str
) -> None:
    folder = killed_again_and_again(drive, kills=4, seed=seed)

    assert weights_of(folder) == undisturbed
    assert is_gapless(folder)
    assert not [one for one in check_run(folder) if one.level == "damaged"]
