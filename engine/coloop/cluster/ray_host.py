"""A host in an actor of Ray, as the driver knows it: what computes is loaded where it computes."""

from coloop import collecting
from coloop.hosts.messages import Poll
from coloop.hosts.packing import Packed
from coloop.hosts.settings import HostSettings


class RayPoolHost:
    """The calls of a `RemotePoolHost`. Ray asks for the class in the driver as well, which would
    hold models and what they stand on for nothing, and wait for them at every start."""

    def __init__(self, settings: HostSettings) -> None:
        with collecting.not_while_loading():
            from coloop.cluster.remote_host import RemotePoolHost

        self._host = RemotePoolHost(settings)

    def run(self, number: int, method: str, arguments: Packed) -> Packed:
        """See `RemotePoolHost`."""
        return self._host.run(number, method, arguments)

    def give_up(self, number: int) -> None:
        """See `RemotePoolHost`."""
        self._host.give_up(number)

    def poll_of(self, number: int) -> Poll:
        """See `RemotePoolHost`."""
        return self._host.poll_of(number)
