"""Hostile answers, ends and starts: whoever asks gets a UserCodeError in time and loses nothing."""

import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.attack.test_sandbox import FORGE, ISOLATIONS, stands_here

from coloop.errors import UserCodeError
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import Sandbox

pytestmark = pytest.mark.attack

ONE: dict[str, list[Any]] = {"prompts": [""], "completions": [""]}
HONEST = "def reward(prompts, completions): return [1.0]"
RAW = """
def raw(data):
    import os, struct
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">Q", len(data)))
            left = memoryview(data)
            while left: left = left[os.write(fd, left):]
        except OSError: pass
"""


def box(code: str, **options: Any) -> Sandbox:
    return Sandbox(code, function="reward", node="evil", **{"timeout_seconds": 20, **options})


def told(code: str, **options: Any) -> str:
    with box(code, **options) as child, pytest.raises(UserCodeError) as caught:
        child.score(ONE, 1)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrote", "says"),
    [
        ("b'[' * 9_000_000", "too many values"),
        ("b'[' + b'[],' * 4_000_000 + b'1]'", "too many values"),
        ("b'[' + b'{\"\":0},' * 2_000_000 + b'1]'", "too many values"),
        ("b'[' * 5000 + b']' * 5000", "invalid response"),
        ("b'1' * 5000", "invalid response"),
        ("b'{\"id\": ' + b'9' * 4000 + b'}'", "invalid response"),
        ("'{}'.encode('utf-16')", "invalid response"),
        ("'{}'.encode('utf-32')", "invalid response"),
        ("b'\\xff\\xfe'", "invalid response"),
        ("b''", "invalid response"),
        ("b'x' * 18 * 2**20", "more than 17 MiB"),
    ],
)
def test_an_answer_that_would_hurt_the_reader_is_refused(wrote: str, says: str) -> None:
    code = RAW + f"def reward(prompts, completions):\n    raw({wrote})\n    while True: pass\n"

    assert says in told(code)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        "{'ok': False, 'message': [[[1]]] * 9}",
        "{'ok': False, 'message': '\\ud800', 'trace': '\\ud800', 'printed': '\\ud800'}",
        "{'ok': False, 'row': 10 ** 4000, 'message': 'x'}",
        "{'ok': False, 'row': 1, 'message': 'x'}",
        "{'ok': False, 'row': True}",
        "{'ok': 1, 'value': [1.0]}",
    ],
)
def test_a_complaint_is_a_text_about_a_row_that_was_asked_about(reply: str) -> None:
    code = FORGE + (
        "def reward(prompts, completions):\n"
        f"    send({{**{reply}, 'id': number()}})\n"
        "    while True: pass\n"
    )
    with box(code) as child:
        with pytest.raises(UserCodeError) as caught:
            child.score(ONE, 1)

        assert caught.value.row is None
        f"{caught.value}{caught.value.traceback}{child.printed}".encode()
        assert "[" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        "{'a': '\\ud800'}",
        "{'a': [{'b': '\\udfff'}]}",
        "{'a': {'\\ud800': 1}}",
        "{'\\ud800': 1}",
        "{'': 1}",
        "{'judge.score': 1}",
        "{'a\\nb': 1}",
        "{'a' * 300: 1}",
        "{'a': 10 ** 4000}",
        "{'a': -2 ** 1024}",
        "{'a': [float('inf')]}",
    ],
)
@pytest.mark.parametrize("is_forged", [False, True])
def test_columns_that_no_file_could_hold_are_refused(column: str, is_forged: bool) -> None:
    answer = f"send({{'ok': True, 'value': [{column}], 'id': number()}})" if is_forged else "0"
    code = FORGE + f"def write(**columns):\n    {answer}\n    return {column}\n"
    with (
        Sandbox(code, function="write", node="evil") as child,
        pytest.raises(UserCodeError, match="evil"),
    ):
        child.write([{"n": 1}])


def test_it_ticks_while_bytes_trickle() -> None:
    """Bytes that never stop coming are no reason not to look whether a run was stopped."""

    class Enough(Exception):
        pass

    def tick() -> None:
        raise Enough

    code = (
        "import os, struct\n"
        "def reward(prompts, completions):\n"
        "    pipe = max(fd for fd in range(3, 64) if is_open(fd))\n"
        "    os.write(pipe, struct.pack('>Q', 16 * 2**20))\n"
        "    while True: os.write(pipe, b' ')\n"
        "def is_open(fd):\n"
        "    try: os.write(fd, b''); return True\n"
        "    except OSError: return False\n"
    )
    start = time.monotonic()
    with box(code, tick=tick) as child, pytest.raises(Enough):
        child.score(ONE, 1)

    assert time.monotonic() - start < 15


@pytest.mark.parametrize("error", [OSError("a full disk"), ValueError("x"), RecursionError()])
def test_what_the_tick_raises_is_not_laid_upon_the_code(error: Exception) -> None:
    def tick() -> None:
        raise error

    code = "def reward(prompts, completions):\n    while True: pass"
    with box(code, tick=tick) as child, pytest.raises(type(error)) as caught:
        child.score(ONE, 1)

    assert caught.value is error


@pytest.mark.parametrize("number", [40, signal.SIGXCPU])
def test_every_end_by_a_signal_is_told(number: int) -> None:
    stands_here(Isolation.CALLS)
    code = (
        "import ctypes, os, time\n"
        "def reward(prompts, completions):\n"
        f"    ctypes.CDLL(None).kill(os.getpid(), {int(number)})\n"
        "    time.sleep(9)\n"
    )

    assert "ended by" in told(code, isolation=Isolation.CALLS)


def test_a_caller_with_thousands_of_descriptors_is_served() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this user may not have so many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with box(HONEST) as child:
            assert child.score(ONE, 1) == [1.0]
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_caller_without_descriptors_loses_none() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with box(HONEST) as child:
        child.load()
    before = sorted(os.listdir("/proc/self/fd"), key=int)
    highest = int(before[-1])
    try:
        for room in range(9):
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + room, hard))
            child = box(HONEST)
            try:
                child.score(ONE, 1)
            except OSError:
                assert child.process_id is None
            child.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert sorted(os.listdir("/proc/self/fd"), key=int) == before


REAPER = f"""
import ctypes, os
from coloop.errors import UserCodeError
from coloop.sandbox.process import Sandbox
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for code in (["{HONEST}"] * 6 + ["def reward(prompts, completions): 1 / 0"] * 2):
    with Sandbox(code, function="reward", node="n") as child:
        try: child.score({ONE}, 1)
        except UserCodeError: pass
try: print("left", os.waitpid(-1, 0))
except ChildProcessError: print("nothing left")
"""


@pytest.mark.slow
def test_the_first_process_of_a_container_is_left_nothing_to_bury() -> None:
    """A server that is process 1 inherits orphans and waits for none of them."""
    shown = subprocess.run(
        [sys.executable, "-c", REAPER], capture_output=True, text=True, timeout=120, check=False
    )

    assert shown.stdout == "nothing left\n", shown.stderr


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_code_does_not_outlive_its_watcher(isolation: Isolation) -> None:
    stands_here(isolation)
    with box(HONEST, isolation=isolation) as child:
        child.load()
        assert child.process_id is not None
        assert child._worker is not None

        os.kill(child.process_id, signal.SIGKILL)
        ready, _, _ = select.select([child._worker], [], [], 20)

    assert ready


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_who_stops_a_run_does_not_stop_its_code_beside_it(isolation: Isolation) -> None:
    stands_here(isolation)
    with box(HONEST, isolation=isolation) as child:
        child.load()
        assert child.process_id is not None
        watcher = psutil.Process(child.process_id)

        for process in (watcher, *watcher.children(recursive=True)):
            process.send_signal(signal.SIGTERM)

        assert child.score(ONE, 1) == [1.0]


FORKED = """
import os, sys, time
from coloop.sandbox.process import Sandbox
box = Sandbox("def reward(prompts, completions): return [1.0]", function="reward", node="n")
box.load()
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print(box.process_id, flush=True)
time.sleep(600)
"""


def test_a_pipe_that_a_fork_of_the_starter_holds_keeps_nothing_alive() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        handle = os.pidfd_open(int(starter.stdout.readline()))
        starter.kill()
        ready, _, _ = select.select([handle], [], [], 20)
        os.close(handle)
        assert starter.stdin is not None
        starter.stdin.close()

    assert ready


def test_starts_side_by_side_all_stand() -> None:
    answers: list[object] = []

    def one() -> None:
        with box(HONEST, timeout_seconds=60) as child:
            answers.append(child.score(ONE, 1))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [[1.0]] * 8


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_worker_holds_no_right(isolation: Isolation) -> None:
    """As the kernel tells it to others."""
    stands_here(isolation)
    with box(HONEST, isolation=isolation) as child:
        child.score(ONE, 1)
        number = worker_of(child)
        text = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
        status = dict(line.split(":", 1) for line in text.splitlines())
        holds = len(os.listdir(f"/proc/{number}/fd")) if os.geteuid() == 0 else 5

    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    assert len(set(status["Uid"].split())) == 1
    assert holds == 5
    if os.geteuid() == 0:
        assert status["Uid"].split()[0] not in ("0", "65534")
        assert status["Groups"].strip() == ""


def worker_of(child: Sandbox) -> str:
    """The process id, as its watcher's descriptor tells it."""
    info = Path(f"/proc/self/fdinfo/{child._worker}").read_text(encoding="utf-8")
    return dict(line.split(":") for line in info.splitlines())["Pid"].strip()


def spent(number: str) -> int:
    """Ticks of the clock that a process worked."""
    told = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(told[11]) + int(told[12])


GOES_ON = """
import ctypes, hashlib, os, signal, threading
threading.stack_size(65536)
kill = ctypes.CDLL(None).kill
signal.signal(signal.SIGCONT, lambda *given: None)
signal.signal(signal.SIGALRM, lambda *given: kill(os.getpid(), 18))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
def work():
    while True: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200000)
def go_on():
    while True: kill(os.getpid(), 18)
for what in [work] * 20 + [go_on] * 5:
    threading.Thread(target=what, daemon=True).start()
def reward(prompts, completions):
    return [1.0]
"""


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_threads_that_tell_each_other_to_go_on_stand_still(isolation: Isolation) -> None:
    """A SIGCONT takes back a SIGSTOP that has not come to every thread yet."""
    stands_here(isolation)
    moved = []
    with box(GOES_ON, isolation=isolation, memory_mib=2048) as child:
        for _ in range(8):
            child.score(ONE, 1)
            time.sleep(0.2)  # until the stop has come to all
            before = spent(worker_of(child))
            time.sleep(0.5)
            moved.append(spent(worker_of(child)) - before)

    assert moved == [0] * 8
