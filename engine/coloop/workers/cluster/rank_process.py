"""What runs in the process of a rank, a copy of its fork server or
`python -m coloop.workers.cluster.rank_process <work> <control>`, the numbers of its sockets."""

import gc
import logging
import os
import signal
import sys
import threading
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from coloop.errors import StopRequested
from coloop.workers import collecting
from coloop.workers.cluster.processes import END, POLL, receive, send
from coloop.workers.messages import Poll
from coloop.workers.packing import Packed, pack, unpack
from coloop.workers.settings import HostSettings, environment_of
from coloop.workers.worker import Worker
from coloop.workers.worker_api import is_heard


class RemoteWorker(Worker):
    """A host with packed calls: Ray's own pickling of rows costs more than the rest of a call."""

    def __init__(self, settings: HostSettings) -> None:
        super().__init__(settings)
        self._rank = settings.rank
        self._number = 0
        self._begun = 0  # the call that the progress is of
        self._given_up = 0

    def build(self) -> None:
        """See `Worker`; what is built lives as long as the process, which has no other work."""
        super().build()
        gc.collect()
        collecting.less_often_until_exit()

    def run(self, number: int, method: str, arguments: Packed) -> Packed:
        """Call a method; everything in and out is packed. `number` of the call grows from 1."""
        self._number = number
        answer = getattr(self, method)(*unpack(arguments))
        return pack(answer if is_heard(method, self._rank) else None)

    def poll_of(self, number: int) -> Poll:
        """The progress of a call, which may not have begun yet."""
        own = self.poll()
        return own if number == self._begun else replace(own, done=0, total=0, unit="")

    def give_up(self, number: int) -> None:
        """`interrupt` of this call alone, whether it runs, is over or has yet to begin."""
        self._given_up = number
        if number == self._number:
            self.interrupt()

    def _begin(self) -> None:
        super()._begin()
        self._begun = self._number
        if self._given_up == self._number:
            self.interrupt()


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
    try:
        return False, host.run(number, method, arguments)
    except (Exception, SystemExit) as error:
        if not isinstance(error, StopRequested):
            logger.exception("%s failed", method)
        return True, _packed(error)


def _packed(error: BaseException) -> Packed:
    error.add_note("".join(traceback.format_exception(error)))
    try:
        packed = pack(error)
        unpack(packed)
    except Exception:  # errors of libraries need not survive a pickle
        packed = pack(RuntimeError(f"{type(error).__name__}: {error}"))
    return packed


def _listen(control: Connection, host: RemoteWorker) -> None:
    """Answer polls and take interrupts until the driver is gone."""
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
    """Ignore stop signals here, not in child programs; the driver ends its ranks."""
    for number in UNHEARD:
        signal.signal(number, lambda *_: None)


def serve(work: Connection, control: Connection) -> NoReturn:
    leave_stops_to_the_driver()
    try:
        rank_main(work, control)
    except (EOFError, ConnectionError):  # the driver is gone
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    serve(*(Connection(int(number)) for number in sys.argv[1:]))
