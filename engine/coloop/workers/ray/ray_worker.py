"""A host in an actor of Ray, as the driver knows it: what computes is loaded where it computes."""

from coloop.workers import collecting
from coloop.workers.messages import Poll
from coloop.workers.packing import Packed
from coloop.workers.settings import HostSettings


class RayWorker:
    """The calls of a `RemoteWorker`. Ray asks for the class in the driver as well, which would
    hold models and what they stand on for nothing, and wait for them at every start."""

    def __init__(self, settings: HostSettings | None = None) -> None:
        """
        Args:
            settings: None loads what hosts compute with, ahead of `settle`.
        """
        with collecting.not_while_loading():
            from coloop.workers.cluster.remote_worker import RemoteWorker

        self._begin = RemoteWorker
        if settings is not None:
            self.settle(settings)

    def settle(self, settings: HostSettings) -> None:
        """Become the host of a pool. Before any other call; answered before the next is sent."""
        self._host = self._begin(settings)

    def run(self, number: int, method: str, arguments: Packed) -> Packed:
        """See `RemoteWorker`."""
        return self._host.run(number, method, arguments)

    def give_up(self, number: int) -> None:
        """See `RemoteWorker`."""
        self._host.give_up(number)

    def poll_of(self, number: int) -> Poll:
        """See `RemoteWorker`."""
        return self._host.poll_of(number)
