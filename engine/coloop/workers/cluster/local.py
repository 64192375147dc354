"""The cluster on this machine (`--local`): a thread of the driver for a pool of one host, processes
for larger pools, and for each host where several pools have GPUs."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from coloop.errors import PlacementTimeout
from coloop.plan.types import Plan, PoolPlan
from coloop.workers import collecting
from coloop.workers.cluster.fork_server import ForkServer, RankHandle
from coloop.workers.cluster.processes import (
    LOCALHOST,
    ProcessCrew,
    last_words_in,
    start_alone,
    start_fork_server,
)
from coloop.workers.cluster.ranks import Cluster, Crew, Deadlines
from coloop.workers.messages import Poll
from coloop.workers.settings import HostSettings, gpus_here, keep_memory, set_cpu_threads


class LocalCluster(Cluster):
    def __init__(
        self, plan: Plan, settings: Mapping[str, HostSettings], deadlines: Deadlines | None = None
    ) -> None:
        super().__init__((pool.name for pool in plan.pools), deadlines or Deadlines())
        self._plan = plan
        self._settings = settings
        self._fork_servers: list[ForkServer] = []

    def start(self) -> None:
        _check_capacity(self._plan.pools)
        if all(not self._is_thread(pool) for pool in self._plan.pools):
            # Threads of the driver would wait for cores at which its processes are at work.
            set_cpu_threads(1)
        try:
            for pool in self._plan.pools:
                self._add(pool.name, self._crew(pool))
            for pool in self._plan.pools:
                self._open(pool.name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        super().close()
        for fork_server in self._fork_servers:
            fork_server.close()
        self._fork_servers.clear()

    def restart(self, pool: str) -> None:
        planned = next(plan for plan in self._plan.pools if plan.name == pool)
        self._replace(pool, lambda: self._crew(planned))

    def _crew(self, pool: PoolPlan) -> Crew:
        settings = self._settings[pool.name]
        if self._is_thread(pool):
            keep_memory()
            return ThreadCrew(pool.name, settings)
        ranks = [replace(settings, rank=r, ranks=pool.workers) for r in range(pool.workers)]
        gpus = self._gpus_of(pool) or [""] * pool.workers
        last_words = last_words_in(settings.log)
        fork_server = None if pool.gpus else self._living_fork_server(settings)

        def start(rank: int, *sockets: int) -> RankHandle:
            if fork_server is not None:
                return fork_server.start(*sockets)
            return start_alone(settings, gpus[rank], *sockets)

        return ProcessCrew(pool.name, ranks, start, last_words)

    def _is_thread(self, pool: PoolPlan) -> bool:
        with_gpus = [other for other in self._plan.pools if other.gpus]
        return pool.workers == 1 and not (pool.gpus and len(with_gpus) > 1)

    def _living_fork_server(self, settings: HostSettings) -> ForkServer | None:
        """The parent of all ranks without GPUs; a new one if it has ended or does not answer."""
        for fork_server in [server for server in self._fork_servers if server.has_ended]:
            fork_server.close()
            self._fork_servers.remove(fork_server)
        living = next(
            (server for server in reversed(self._fork_servers) if not server.is_behind), None
        )
        if living is None and (living := start_fork_server(settings.log)) is not None:
            self._fork_servers.append(living)
        return living

    def _gpus_of(self, pool: PoolPlan) -> list[str]:
        named = os.environ.get("CUDA_VISIBLE_DEVICES")
        every = named.split(",") if named else [str(number) for number in range(gpus_here())]
        names = [other.name for other in self._plan.pools]
        first = sum(other.gpus for other in self._plan.pools[: names.index(pool.name)])
        return every[first : first + pool.gpus]


class ThreadCrew:
    size = 1

    def __init__(self, name: str, settings: HostSettings) -> None:
        with collecting.not_while_loading():
            from coloop.workers.worker import Worker  # models are loaded only where a host computes

        self._threads = ThreadPoolExecutor(1, thread_name_prefix=f"pool-{name}")
        self._host = Worker(replace(settings, log=None))  # the driver writes it
        self._asked: Future[Any] | None = None

    def address(self) -> str:
        return LOCALHOST

    def begin(self, method: str, arguments: tuple[Any, ...]) -> list[Future[Any]]:
        self._asked = self._threads.submit(getattr(self._host, method), *arguments)
        return [self._asked]

    def answer(self, ticket: Future[Any]) -> Any:
        return ticket.result()

    def polls(self) -> list[Poll | None]:
        return [self._host.poll()]

    def interrupt(self) -> None:
        self._host.interrupt()

    @property
    def has_ended(self) -> bool:
        return self._asked is None or self._asked.done()

    def kill(self) -> None:
        """A thread can only be asked to end."""
        self._host.interrupt()
        if self.has_ended:
            self.close()

    def close(self) -> None:
        self._host.interrupt()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._host.close()


def _check_capacity(pools: Sequence[PoolPlan]) -> None:
    wanted, there = {pool.name: pool.gpus for pool in pools if pool.gpus}, gpus_here()
    if sum(wanted.values()) <= there:
        return
    who = f"pool {next(iter(wanted))} needs {sum(wanted.values())} GPUs"
    if len(wanted) > 1:
        each = ", ".join(f"{name} {gpus}" for name, gpus in wanted.items())
        who = f"the pools need {sum(wanted.values())} GPUs together ({each})"
    raise PlacementTimeout(
        f"{who}, this machine has {there}; choose another `hardware.preset`, or run on a cluster"
    )
