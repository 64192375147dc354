"""The cluster inside this process: each pool's host works in a thread of its own (`--local`)."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from coloop.cluster.protocol import TICK_SECONDS, Deadlines, Tick
from coloop.cluster.turns import Turns
from coloop.cluster.watchdog import Watchdog
from coloop.errors import PlacementTimeout, WorkerDied
from coloop.hosts.host import HostSettings, PoolHost, gpus_here
from coloop.plan.types import Plan, PoolPlan

logger = logging.getLogger(__name__)


class LocalCluster:
    """Hosts in threads of the driver."""

    def __init__(
        self, plan: Plan, settings: Mapping[str, HostSettings], deadlines: Deadlines | None = None
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._deadlines = deadlines or Deadlines()
        self._hosts: dict[str, PoolHost] = {}
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._turns = Turns(pool.name for pool in plan.pools)

    def start(self) -> None:
        for pool in self._plan.pools:
            _check_capacity(pool)
        try:
            for pool in self._plan.pools:
                self._threads[pool.name] = ThreadPoolExecutor(
                    1, thread_name_prefix=f"pool-{pool.name}"
                )
                self._hosts[pool.name] = PoolHost(self._settings[pool.name])
            for pool in self._plan.pools:
                self.call(pool.name, "build")
        except BaseException:
            self.close()
            raise

    def call(self, pool: str, method: str, *arguments: Any, tick: Tick | None = None) -> Any:
        host = self._hosts[pool]
        with self._turns.turn(pool, tick):
            future: Future[Any] = self._threads[pool].submit(getattr(host, method), *arguments)
            watchdog = Watchdog(f"{pool}: {method}", self._deadlines.stalled_after_seconds)
            ticked = time.monotonic()
            while not (future.done() or wait([future], TICK_SECONDS).done):
                if tick is not None and time.monotonic() - ticked >= TICK_SECONDS:
                    ticked = time.monotonic()
                    poll = host.poll()
                    watchdog.seen(poll)
                    if tick(poll):
                        host.interrupt()
        try:
            return future.result()
        except SystemExit as error:  # a library that ends its process ends a worker, not the driver
            message = f"pool {pool}: its worker asked to end, with code {error.code}"
            raise WorkerDied(message) from error

    def close(self) -> None:
        for host in self._hosts.values():
            host.interrupt()
        for threads in self._threads.values():
            threads.shutdown(wait=True, cancel_futures=True)
        for host in self._hosts.values():
            host.close()
        self._hosts.clear()
        self._threads.clear()


def _check_capacity(pool: PoolPlan) -> None:
    there = gpus_here()
    if pool.gpus > there:
        raise PlacementTimeout(
            f"pool {pool.name} wants {pool.gpus} GPU, this machine has {there}; choose another "
            "`hardware.preset`, or run on a cluster"
        )
