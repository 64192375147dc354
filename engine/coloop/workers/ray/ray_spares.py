"""Hosts on Ray that load before the run is known.

What a host computes with takes seconds to load; the pools of the run take hosts that have done so.
For a Ray of one machine: a spare host stands where Ray put it, outside of any placement group.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError

from coloop.workers import collecting
from coloop.workers.cluster.environment import environment_of, forwarded
from coloop.workers.messages import Poll
from coloop.workers.packing import Packed
from coloop.workers.settings import HostSettings

logger = logging.getLogger(__name__)


@dataclass
class SpareHosts:
    """Actors that wait for their settings."""

    actors: list[Any] = field(default_factory=list)
    forwarded: dict[str, str] = field(default_factory=dict)
    """What they found in their environment of this process's own."""

    def load(self, count: int) -> None:
        """Start so many hosts; returns while they load."""
        self._dismiss_strangers()
        self.forwarded = forwarded()
        remote = ray.remote(RayWorker).options(
            num_cpus=0,  # a pool's placement group holds what its host works with
            max_concurrency=2,
            runtime_env={"env_vars": {**self.forwarded, **environment_of(1)}},
        )
        self.actors += [remote.remote() for _ in range(count)]

    def take(self, settings: HostSettings, seconds: float) -> Any | None:
        """A host with these settings, once it has loaded; None where none is left that found what
        one would that starts now."""
        self._dismiss_strangers()
        while self.actors:
            actor = self.actors.pop()
            try:
                ray.get(actor.settle.remote(settings), timeout=seconds)
                return actor
            except RayError as error:
                logger.info("a host that was loaded ahead is not used: %s", error)
                ray.kill(actor)
        return None

    def _dismiss_strangers(self) -> None:
        """End those that found in their environment what is not in this one's any more."""
        if self.actors and self.forwarded != forwarded():
            logger.info("the environment has changed: hosts that were loaded ahead are not used")
            self.dismiss()

    def dismiss(self) -> None:
        """End those that nobody has taken."""
        for actor in self.actors:
            ray.kill(actor)
        self.actors.clear()


SPARES = SpareHosts()
"""Of this process. A driver that was not loaded ahead has none."""


# A host in an actor of Ray, as the driver knows it: what computes is loaded where it computes.


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
