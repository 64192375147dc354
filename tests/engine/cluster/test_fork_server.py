"""Ranks stem from one process: what it has loaded lies in memory once, and whatever ends is heard
of."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from tests.engine.rank_processes import fork_servers_of

from coloop.workers.cluster.fork_server import ForkedRank, ForkServer
from coloop.workers.cluster.processes import start_fork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

LONG = 120.0
MIB = 2**20


@pytest.fixture
def fork_server(tmp_path: Path) -> Iterator[ForkServer]:
    """One of the test's own."""
    started = start_fork_server(tmp_path / "engine.log")
    assert started is not None
    with closing(started):
        yield started


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """One that no test ends."""
    started = start_fork_server(tmp_path_factory.mktemp("fork_server") / "engine.log")
    assert started is not None
    with closing(started):
        yield started


def rank_of(fork_server: ForkServer) -> tuple[ForkedRank, list[socket.socket]]:
    """A rank that nobody asks anything, and our ends of its sockets."""
    pairs = [socket.socketpair() for _ in range(2)]
    rank = fork_server.start(*(theirs.fileno() for _, theirs in pairs))
    for _, theirs in pairs:
        theirs.close()
    return rank, [ours for ours, _ in pairs]


def anonymous(pid: int) -> tuple[int, int]:
    """Anonymous bytes that a process sees, and its part of them."""
    words = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    known = {one[0]: int(one[1]) * 1024 for one in words if len(one) == 3}
    return known["Anonymous:"], known["Pss_Anon:"]


@pytest.mark.slow
def test_who_stops_a_run_ends_its_ranks_through_the_driver_alone(lasting: ForkServer) -> None:
    rank, ours = rank_of(lasting)
    pids = [rank.pid.result(LONG), fork_servers_of(psutil.Process())[-1].pid]

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        for pid in pids:
            os.kill(pid, number)

    late, _ = rank_of(lasting)
    assert psutil.pid_exists(late.pid.result(LONG))
    assert (rank.poll(), lasting.has_ended) == (None, False)
    assert len(ours) == 2


@pytest.mark.slow
def test_ranks_share_what_was_loaded_and_every_end_is_heard_of(fork_server: ForkServer) -> None:
    ranks, ours = zip(*(rank_of(fork_server) for _ in range(3)), strict=True)
    pids = [rank.pid.result(LONG) for rank in ranks]

    assert {psutil.Process(pid).ppid() for pid in pids} == {
        fork_servers_of(psutil.Process())[-1].pid
    }
    sees, has = anonymous(pids[0])
    assert sees > 100 * MIB, "numpy, torch and transformers are loaded"
    assert has < 0.5 * sees, "four processes have them together"
    assert [rank.poll() for rank in ranks] == [None] * 3

    ranks[0].kill()
    assert ranks[0].wait(LONG) == -signal.SIGKILL
    for one in ours[1]:
        one.close()  # as if the driver were gone
    assert ranks[1].wait(LONG) == 1
    fork_server.kill()
    assert ranks[2].wait(LONG) == -signal.SIGKILL
    psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], LONG)
    assert not any(psutil.pid_exists(pid) for pid in pids)

    late, _ = rank_of(fork_server)
    assert fork_server.has_ended
    assert late.wait(LONG) == -signal.SIGKILL


@pytest.mark.slow
def test_a_rank_that_is_given_up_before_it_begins_ends_alone(lasting: ForkServer) -> None:
    first, _sockets = rank_of(lasting)
    pid = first.pid.result(LONG)
    process = fork_servers_of(psutil.Process())[-1]
    process.suspend()
    late, _others = rank_of(lasting)

    late.kill()

    assert late.wait(LONG) == -signal.SIGKILL
    assert lasting.is_behind
    process.resume()
    ended = late.pid.result(LONG)
    assert not lasting.is_behind
    psutil.wait_procs([psutil.Process(ended)] if psutil.pid_exists(ended) else [], LONG)
    assert not psutil.pid_exists(ended)
    assert not lasting.has_ended
    assert first.poll() is None
    assert psutil.pid_exists(pid)
    again, _more = rank_of(lasting)
    assert again.pid.result(LONG) != pid


@pytest.mark.slow
def test_where_loading_starts_a_thread_each_rank_loads_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    code = (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    )
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    fork_server = request.getfixturevalue("fork_server")

    rank, ours = rank_of(fork_server)

    pid = rank.pid.result(LONG)
    assert "coloop.workers.cluster.rank_process" in psutil.Process(pid).cmdline()
    for one in ours:
        one.close()
    assert rank.wait(LONG) == 1
