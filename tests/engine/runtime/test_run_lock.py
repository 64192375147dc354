"""One writer a run: who holds the lock, who counts as gone, and that it goes with its process."""

import errno
import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

import pytest

from coloop.errors import RunBusy
from coloop.runtime.run_files import run_lock
from coloop.runtime.run_files.run_lock import LOCK_FILE, Holder, RunLock, holder, is_held

ROOT = Path(__file__).resolve().parents[3]
TAKE = """
import sys
from pathlib import Path
from coloop.runtime.run_files.run_lock import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.take()
"""
WAIT = "print('ready', flush=True); sys.stdin.read()\n"
FORK = """
import os
up, told = os.pipe()
if os.fork() == 0:
    os.write(told, b"x")
    os.close(1)
    sys.stdin.read()
    os._exit(0)
os.read(up, 1)
"""
"""A child that lives on; it is asked about once it has begun."""

Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Start]:
    """Runs a program with the lock of `tmp_path`, until its input ends."""
    started = []

    def start(program: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "engine")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert stream(process.stdout).readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def stream(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def own(folder: Path) -> Holder:
    """What this process writes into a lock."""
    with RunLock(folder):
        found = holder(folder)
    assert found is not None
    return found


def name(folder: Path, who: Holder, seconds_ago: float = 0.0) -> None:
    """A lock that nobody has, and that names somebody."""
    path = folder / LOCK_FILE
    path.write_text(json.dumps(asdict(who)) + "\n")
    os.utime(path, (time.time() - seconds_ago,) * 2)


def no_locks(file: int, how: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def test_a_held_folder_tells_who_holds_it_and_keeps_others_out(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        found = holder(tmp_path)
        with pytest.raises(RunBusy, match=rf"process {os.getpid()} on .*kill -INT {os.getpid()}"):
            RunLock(tmp_path).take(0.0)

    assert found is not None
    assert found.pid == os.getpid()
    assert found.started > 0
    assert (tmp_path / LOCK_FILE).stat().st_mode & 0o777 == 0o600
    assert not is_held(tmp_path)


def test_a_lock_is_taken_again_after_its_release(tmp_path: Path) -> None:
    for _ in range(3):
        with RunLock(tmp_path):
            assert is_held(tmp_path)
        assert not is_held(tmp_path)


@pytest.mark.parametrize("children", ["", FORK])
def test_a_killed_holder_is_gone_at_once_whatever_it_forked(
    tmp_path: Path, other: Start, children: str
) -> None:
    process = other(TAKE + children + WAIT)
    assert is_held(tmp_path)

    process.send_signal(signal.SIGKILL)
    process.wait()

    assert not is_held(tmp_path)
    RunLock(tmp_path).take(0.0)


def test_a_child_lets_nobody_in_while_its_parent_holds(tmp_path: Path) -> None:
    with RunLock(tmp_path) as _:
        child = multiprocessing.get_context("fork").Process(target=lambda: None)
        child.start()
        child.join()

        assert is_held(tmp_path)


def test_a_lock_that_names_a_dead_process_of_this_machine_is_free(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    name(tmp_path, replace(own(tmp_path), pid=gone.pid))

    assert not is_held(tmp_path)
    RunLock(tmp_path).take(0.0)


def test_a_holder_on_another_machine_holds_until_it_has_been_silent(tmp_path: Path) -> None:
    far = replace(own(tmp_path), host="far", kernel="another start of another machine")
    name(tmp_path, far)

    assert holder(tmp_path) == far
    with pytest.raises(RunBusy, match="on far"):
        RunLock(tmp_path).take(0.0)
    name(tmp_path, far, seconds_ago=run_lock.SILENT_SECONDS + 1)
    assert not is_held(tmp_path)
    RunLock(tmp_path).take(0.0)


def test_a_holder_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "LIFE_SIGN_SECONDS", 0.01)
    path = tmp_path / LOCK_FILE
    with RunLock(tmp_path):
        os.utime(path, (0, 0))
        until = time.monotonic() + 10
        while path.stat().st_mtime == 0 and time.monotonic() < until:
            time.sleep(0.01)

        assert path.stat().st_mtime > 0


@pytest.mark.parametrize(
    ("change", "is_alive"),
    [({}, True), ({"started": 7}, False), ({"pid": 2**22 - 1}, False)],
    ids=["the process", "another process of its number", "no process"],
)
def test_without_locks_the_process_that_is_named_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, int], is_alive: bool
) -> None:
    monkeypatch.setattr(run_lock, "SETTLE_SECONDS", 0.0)
    me = own(tmp_path)
    monkeypatch.setattr(fcntl, "flock", no_locks)
    name(tmp_path, Holder(**{**asdict(me), **change}))

    assert is_held(tmp_path) is is_alive
    if is_alive:
        with pytest.raises(RunBusy):
            RunLock(tmp_path).take(0.0)
    else:
        with RunLock(tmp_path):
            assert holder(tmp_path) is not None
        assert not is_held(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\0" * 99, b"[" * 4000, b'{"pid": "x"}\n', b"\xff\n"])
def test_a_lock_that_says_nothing_is_free_unless_it_is_locked(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / LOCK_FILE).write_bytes(content)

    assert not is_held(tmp_path)
    with RunLock(tmp_path):
        (tmp_path / LOCK_FILE).write_bytes(content)
        assert is_held(tmp_path)
        with pytest.raises(RunBusy, match="an unknown process"):
            RunLock(tmp_path).take(0.0)


def test_a_lock_whose_file_was_taken_away_keeps_nobody_in_a_false_belief(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RunBusy, match=r"run\.lock cannot be opened"):
        RunLock(tmp_path).take(0.0)


def test_a_pipe_in_its_place_hangs_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK_FILE)

    with pytest.raises(RunBusy, match="is not a file"):
        RunLock(tmp_path).take(0.0)
    holder(tmp_path)
