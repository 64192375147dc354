"""What runs in the process of a rank, a copy of its fork server or
`python -m coloop.workers.cluster.rank_process <work> <control>`, the numbers of its sockets."""

import logging
import os
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from coloop.errors import StopRequested
from coloop.workers.cluster.environment import environment_of
from coloop.workers.cluster.processes import END, POLL, receive, send
from coloop.workers.cluster.remote_worker import RemoteWorker
from coloop.workers.packing import Packed, pack, unpack

logger = logging.getLogger(__name__)

UNHEARD = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def rank_main(work: Connection, control: Connection) -> None:
    """Do what is asked until nothing more is, or nobody is there to ask."""
    settings = work.recv()
    os.environ.update(environment_of(settings.threads))  # for what is loaded from here on
    host = RemoteWorker(settings)
    threading.Thread(target=_listen, args=(control, host), daemon=True).start()
    while True:
        (number, method), arguments = receive(work)
        if method == END:
            host.close()
            return
        is_error, answer = _answer(host, number, method, arguments)
        send(work, is_error, answer)


def _answer(host: RemoteWorker, number: int, method: str, arguments: Packed) -> tuple[bool, Any]:
    """Whether it failed, and the answer or the error."""
    try:
        return False, host.run(number, method, arguments)
    except (Exception, SystemExit) as error:
        if not isinstance(error, StopRequested):
            logger.exception("%s failed", method)
        return True, _packed(error)


def _packed(error: BaseException) -> Packed:
    """An error that the driver can read, with where it came up."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        packed = pack(error)
        unpack(packed)
    except Exception:  # errors of libraries need not survive a pickle
        packed = pack(RuntimeError(f"{type(error).__name__}: {error}"))
    return packed


def _listen(control: Connection, host: RemoteWorker) -> None:
    """Say how far the host is, and pass on which call is not wanted any more, until the driver is
    gone."""
    try:
        while True:
            what, number = control.recv()
            if what == POLL:
                control.send(host.poll_of(number))
            else:
                host.give_up(number)
    except (EOFError, OSError):
        os._exit(1)


def leave_stops_to_the_driver() -> None:
    """Whoever stops a run may tell all of its processes. The driver hears it, writes what is to be
    kept and ends its ranks; programs that these start hear signals as ever."""
    for number in UNHEARD:
        signal.signal(number, lambda *_: None)


def serve(work: Connection, control: Connection) -> NoReturn:
    """`main`, with which the process ends."""
    leave_stops_to_the_driver()
    try:
        rank_main(work, control)
    except (EOFError, ConnectionError):  # the driver is gone
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    serve(*(Connection(int(number)) for number in sys.argv[1:]))
