"""A host in a process of its own: calls come packed and numbered, and only what is heard of an
answer is sent back."""

import gc
from dataclasses import replace

from coloop.workers import collecting
from coloop.workers.messages import Poll
from coloop.workers.packing import Packed, pack, unpack
from coloop.workers.settings import HostSettings
from coloop.workers.worker import Worker
from coloop.workers.worker_api import is_heard


class RemoteWorker(Worker):
    """A host whose calls arrive packed. Ray's own way to pack asks a Python function about every
    object, which costs more than the rest of the call where rows come by the hundred; buffers it
    carries without a copy."""

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
        collecting.from_now_on()

    def run(self, number: int, method: str, arguments: Packed) -> Packed:
        """Call a method; everything in and out is packed.

        Args:
            number: of the call, from 1; each is greater than the one before.
        """
        self._number = number
        answer = getattr(self, method)(*unpack(arguments))
        return pack(answer if is_heard(method, self._rank) else None)

    def poll_of(self, number: int) -> Poll:
        """How far this call is, which may still be to come: a call begins at nothing, wherever the
        one before has ended."""
        own = self.poll()
        return own if number == self._begun else replace(own, done=0, total=0, unit="")

    def give_up(self, number: int) -> None:
        """`interrupt` of this call alone, whether it has begun here, is still to come or is over;
        so nobody has to wait until the wish has arrived."""
        self._given_up = number
        if number == self._number:
            self.interrupt()

    def _begin(self) -> None:
        super()._begin()
        self._begun = self._number
        if self._given_up == self._number:
            self.interrupt()
