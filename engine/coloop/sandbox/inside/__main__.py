"""Main program of the sandbox: a watcher process, and the worker that runs the code.

    Sandbox --Popen--> watcher: isolates itself, forks --> worker: finishes the isolation,
                       kills the worker when the                   runs the code
                       Sandbox is gone, and exits like it

Arguments: descriptors of requests and replies, bytes of memory, the isolation, folders to import
from. It reports whether the isolation works before it reads the code, so the code cannot choose a
weaker one.
"""

import os
import select
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from coloop.sandbox.inside import harness
from coloop.sandbox.inside.isolation import (
    SHARED_THREADS,
    Isolation,
    die_with_parent,
    enter,
    limit,
    shut,
)
from coloop.sandbox.inside.modules import import_named

UNHEARD = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Ignored signals: they may reach all processes of a run at once, and the run ends its sandboxes
itself."""


def main() -> None:
    for number in UNHEARD:
        signal.signal(number, signal.SIG_IGN)
    requests, replies, memory_bytes = (int(text) for text in sys.argv[1:4])
    isolation = Isolation(sys.argv[4])
    libraries = [path for path in sys.path[1:] if os.path.isabs(path)] + sys.argv[5:]
    sys.path[:] = libraries
    starter = os.pidfd_open(os.getppid()) if hasattr(os, "pidfd_open") else None
    try:
        most_threads = enter(isolation, libraries)
    except OSError as error:
        say(replies, {"ok": False, "refused": str(error)})
        return
    worker = os.fork()
    if worker == 0:
        die_with_parent()
        if starter is not None:
            os.close(starter)
        limits = (memory_bytes, most_threads)
        work(requests, replies, limits, isolation, libraries)
        os._exit(0)
    say(replies, {"ok": True, "worker": worker})
    watch(worker, requests, starter)


def say(replies: int, message: dict[str, object]) -> None:
    with os.fdopen(replies, "wb") as writing:
        harness.send(writing, message)


def work(
    requests: int, replies: int, limits: tuple[int, int], isolation: Isolation, libraries: list[str]
) -> None:
    """Read the code, finish the isolation, serve requests; `limits`: bytes of memory, threads."""
    reading, writing = os.fdopen(requests, "rb"), os.fdopen(replies, "wb")
    first = harness.receive(reading)
    if first is None:
        return
    sources = {**(first.get("modules") or {}), harness.MODULE: first["source"]}
    try:
        shut(isolation, libraries, *limits, lambda: import_named(sources))
    except OSError as error:
        harness.send(writing, {"ok": False, "refused": str(error), "id": first["id"]})
        return
    harness.fence(libraries, is_alone=isolation is Isolation.NONE and not first["is_ours"])
    harness.serve(reading, writing, first)


def watch(worker: int, requests: int, starter: int | None) -> None:
    """Wait until the worker ends, and exit like it; kill it when nobody can send it requests.

    Args:
        starter: pidfd of the process with the `Sandbox`, because its end of the pipe may stay open
            in a process that it forked.
    """
    handle = os.pidfd_open(worker) if hasattr(os, "pidfd_open") else None
    poll = select.poll()
    poll.register(requests, 0)
    for descriptor in (handle, starter):
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    while True:
        ready = dict(poll.poll(None if handle is not None else 200))
        is_left = ready.get(requests, 0) & (select.POLLHUP | select.POLLERR)
        if is_left or (starter is not None and starter in ready):
            os.kill(worker, signal.SIGKILL)
        ended, status = os.waitpid(worker, 0 if ready else os.WNOHANG)
        if ended:
            end_as(status)


def end_as(status: int) -> None:
    """Exit with the worker's status or signal, which the `Sandbox` reads from this process."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        limit(2**40, SHARED_THREADS)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
