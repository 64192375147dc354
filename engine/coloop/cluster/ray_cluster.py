"""The cluster on Ray: a placement group for each pool, one actor process for each of its slots.

    driver ──call──> host actor (thread 1: the stage)        one stage at a time
           ──poll──> host actor (thread 2: how far)          at most every tick
           ──interrupt──> host actor (thread 2)

The host's threads are set in its environment before torch is imported there. An impossible
placement group stays pending in Ray without an error, so capacity is compared first and the wait
has a deadline. Nothing here calls `ray stop`; what was started is ended by its handle.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from coloop.cluster.protocol import TICK_SECONDS, Deadlines, Tick
from coloop.cluster.turns import Turns
from coloop.cluster.watchdog import Watchdog
from coloop.errors import PlacementTimeout, WorkerDied
from coloop.hosts.host import HostSettings, PoolHost
from coloop.hosts.packing import Packed, pack, unpack
from coloop.plan.types import Plan, PoolPlan
from coloop.ray_settings import AT_EVEN_PRIORITY

logger = logging.getLogger(__name__)

KEEP_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""glibc gives freed tensors back to the system and gets them again, page by page, some 50,000 times
a second of training; a host's process keeps its memory. Who sets these differently is obeyed."""


class RemotePoolHost(PoolHost):
    """A host whose calls arrive packed. Ray's own way to pack asks a Python function about every
    object, which costs more than the rest of the call where rows come by the hundred; buffers it
    carries without a copy."""

    def run(self, method: str, arguments: Packed) -> Packed:
        """Call a method; everything in and out is packed."""
        return pack(getattr(self, method)(*unpack(arguments)))


class RayCluster:
    """Hosts as Ray actors."""

    def __init__(
        self,
        plan: Plan,
        settings: Mapping[str, HostSettings],
        *,
        address: str | None = None,
        run_id: str,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._address = address
        self._run_id = run_id
        self._deadlines = deadlines or Deadlines()
        self._groups: dict[str, PlacementGroup] = {}
        self._hosts: dict[str, Any] = {}
        self._turns = Turns(pool.name for pool in plan.pools)
        self._owns_ray = False

    def start(self) -> None:
        try:
            self._connect()
            for pool in self._plan.pools:
                self._place(pool)
            for pool in self._plan.pools:
                self._hosts[pool.name] = self._actor(pool)
            for pool in self._plan.pools:
                self.call(pool.name, "build")
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        if ray.is_initialized():
            return
        self._owns_ray = True
        if self._address is None:
            os.environ.update(AT_EVEN_PRIORITY | os.environ)
        with kept_signals():
            ray.init(
                address=self._address,
                log_to_driver=False,
                logging_level=logging.WARNING,
                include_dashboard=False if self._address is None else None,
                configure_logging=False,
            )

    def _place(self, pool: PoolPlan) -> None:
        threads = self._settings[pool.name].threads
        bundle = {"CPU": float(threads)} | ({"GPU": 1.0} if pool.gpus else {})
        bundles = [dict(bundle) for _ in range(pool.workers)]
        self._check_capacity(pool, bundles)
        group = placement_group(bundles, strategy="PACK", name=f"coloop-{self._run_id}-{pool.name}")
        self._groups[pool.name] = group
        if not group.wait(timeout_seconds=self._deadlines.placement_seconds):
            raise PlacementTimeout(
                f"pool {pool.name}: wanted {_amounts(bundles)} within "
                f"{self._deadlines.placement_seconds:.0f} s; free now: {_free()}"
            )

    def _check_capacity(self, pool: PoolPlan, bundles: list[dict[str, float]]) -> None:
        whole: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        for resource in bundles[0]:
            wanted = sum(bundle[resource] for bundle in bundles)
            if wanted > whole.get(resource, 0.0):
                raise PlacementTimeout(
                    f"pool {pool.name} wants {wanted:g} {resource}, the whole cluster has "
                    f"{whole.get(resource, 0.0):g}; give the pool fewer workers or add nodes"
                )

    def _actor(self, pool: PoolPlan) -> Any:
        settings = self._settings[pool.name]
        strategy = PlacementGroupSchedulingStrategy(
            placement_group=self._groups[pool.name], placement_group_bundle_index=0
        )
        threads = str(settings.threads)
        environment = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        environment |= {name: os.environ.get(name, value) for name, value in KEEP_MEMORY.items()}
        path = os.environ.get("PYTHONPATH")
        if path:
            environment["PYTHONPATH"] = path
        return (
            ray.remote(RemotePoolHost)
            .options(
                name=f"coloop-{self._run_id}-{pool.name}",
                num_cpus=settings.threads,
                num_gpus=1 if pool.gpus else 0,
                max_concurrency=2,
                scheduling_strategy=strategy,
                runtime_env={"env_vars": environment},
            )
            .remote(settings)
        )

    def call(self, pool: str, method: str, *arguments: Any, tick: Tick | None = None) -> Any:
        host = self._hosts[pool]
        with self._turns.turn(pool, tick):
            reference = host.run.remote(method, pack(arguments))
            watchdog = Watchdog(f"{pool}: {method}", self._deadlines.stalled_after_seconds)
            polled: Any = None
            while not ray.wait([reference], timeout=TICK_SECONDS)[0]:
                polled, poll = self._poll(pool, host, polled)
                watchdog.seen(poll)
                if tick is not None and tick(poll):
                    self._interrupt(host)
            return unpack(self._result(pool, reference))

    def _interrupt(self, host: Any) -> None:
        """Waits until the host knows, so that what is called next is not hit by an old wish."""
        with suppress(RayActorError):
            ray.get(host.interrupt.remote(), timeout=self._deadlines.start_seconds)

    def _poll(self, pool: str, host: Any, pending: Any) -> tuple[Any, Any]:
        pending = pending if pending is not None else host.poll.remote()
        ready, _ = ray.wait([pending], timeout=0)
        if not ready:
            return pending, None
        return None, self._result(pool, pending)

    def _result(self, pool: str, reference: Any) -> Any:
        try:
            return ray.get(reference, timeout=self._deadlines.start_seconds)
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, BaseException) else error from None
        except RayActorError as error:
            raise WorkerDied(f"pool {pool}: its worker process ended: {error}") from error
        except GetTimeoutError as error:
            raise WorkerDied(f"pool {pool}: its result could not be fetched: {error}") from error

    def close(self) -> None:
        for host in self._hosts.values():
            ray.kill(host)
        self._hosts.clear()
        for group in self._groups.values():
            remove_placement_group(group)
        self._groups.clear()
        if self._owns_ray and ray.is_initialized():
            ray.shutdown()


@contextmanager
def kept_signals() -> Iterator[None]:
    """Who wanted SIGTERM before wants it afterwards: Ray takes it when it is connected to, and then
    it ends the process in the middle of a stage instead of asking the run to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _amounts(bundles: list[dict[str, float]]) -> str:
    return f"{len(bundles)} x {bundles[0]}"


def _free() -> str:
    free: dict[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
    return ", ".join(f"{free.get(name, 0.0):g} {name}" for name in ("CPU", "GPU"))
