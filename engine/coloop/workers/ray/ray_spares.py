"""Hosts on a Ray of one machine that load before the run is known, which takes seconds; pools take
them."""

import logging
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError

from coloop.workers import collecting
from coloop.workers.messages import Poll
from coloop.workers.packing import Packed
from coloop.workers.settings import HostSettings, environment_of, forwarded

logger = logging.getLogger(__name__)


@dataclass
class SpareHosts:
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
        """A loaded host with these settings, if one has what a new one would find."""
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
        for actor in self.actors:
            ray.kill(actor)
        self.actors.clear()


SPARES = SpareHosts()  # of this process. A driver that was not loaded ahead has none.


# A host in an actor of Ray, as the driver knows it: what computes is loaded where it computes.


class RayWorker:
    """The calls of a `RemoteWorker`, for the driver, which must not load its imports."""

    def __init__(self, settings: HostSettings | None = None) -> None:
        """`settings`: None: only imports are loaded, ahead of `settle`."""
        with collecting.not_while_loading():
            from coloop.workers.cluster.rank_process import RemoteWorker

        self._begin = RemoteWorker
        if settings is not None:
            self.settle(settings)

    def settle(self, settings: HostSettings) -> None:
        """Become the host of a pool. Before any other call; answered before the next is sent."""
        self._host = self._begin(settings)

    def run(self, number: int, method: str, arguments: Packed) -> Packed:
        return self._host.run(number, method, arguments)

    def give_up(self, number: int) -> None:
        self._host.give_up(number)

    def poll_of(self, number: int) -> Poll:
        return self._host.poll_of(number)
