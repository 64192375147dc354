"""A fork server: `python -m coloop.workers.cluster.fork_server_process ORDERS` (a socket's number).

It forks only while it has a single thread, as another's locks would stay locked; if a library
starts one, each rank loads in an interpreter of its own.
"""

import gc
import os
import pickle
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from multiprocessing.connection import Connection

from coloop.workers import collecting

with collecting.not_while_loading():
    from coloop.workers.cluster import rank_process

SOCKETS = 2  # of a rank: work and control


def main(orders: socket.socket) -> None:
    """Start a rank for every order and say when it ends, until the driver is gone."""
    rank_process.leave_stops_to_the_driver()
    ended, has_ended = socket.socketpair()
    has_ended.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # else nothing wakes up
    signal.set_wakeup_fd(has_ended.fileno())
    is_copied = len(os.listdir("/proc/self/task")) == 1
    gc.collect()
    gc.freeze()  # collecting would change the pages of all that lives
    sys.stdout.flush()
    ranks: dict[int, int] = {}
    selector = selectors.DefaultSelector()
    for watched in (orders, ended):
        selector.register(watched, selectors.EVENT_READ)
    while True:
        ready = [key.fileobj for key, _ in selector.select()]
        if ended in ready:
            ended.recv(4096)
            for pid, code in _ended():
                orders.send(pickle.dumps((ranks.pop(pid), "ended", code)))
        if orders in ready:
            order, sockets, _, _ = socket.recv_fds(orders, 64, SOCKETS)
            if not order:
                return
            ours = (orders, ended, has_ended, selector)
            pid = _copy(sockets, ours) if is_copied else _fresh(sockets)
            for number in sockets:
                os.close(number)
            ranks[pid] = int(order)
            orders.send(pickle.dumps((int(order), "began", pid)))


def _copy(sockets: list[int], ours: Iterable[socket.socket | selectors.BaseSelector]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for resource in ours:
            resource.close()
        rank_process.serve(*(Connection(number) for number in sockets))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _fresh(sockets: list[int]) -> int:
    command = [
        sys.executable,
        "-P",
        "-m",
        "coloop.workers.cluster.rank_process",
        *map(str, sockets),
    ]
    for number in sockets:
        os.set_inheritable(number, True)
    return os.posix_spawn(sys.executable, command, os.environ, setsid=True)


def _ended() -> list[tuple[int, int]]:
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended.append((pid, os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    try:
        main(socket.socket(fileno=int(sys.argv[1])))
    except ConnectionError:  # the driver is gone
        os._exit(1)
    os._exit(0)
