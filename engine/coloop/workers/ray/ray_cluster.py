"""The cluster on Ray: a placement group for each pool, one actor process for each of its slots.

    driver ──call──> host actors (thread 1: the stage)       one stage at a time
           ──poll──> host actors (thread 2: how far)         at most every tick
           ──give up──> host actors (thread 2)

A call's data is in the object store once. An impossible placement group stays pending without an
error, so capacity is compared first and the wait has a deadline. Nothing here calls `ray stop`.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import (
    GetTimeoutError,
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
)
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from coloop.errors import PlacementTimeout, RayNotStarted
from coloop.plan.types import Plan, PoolPlan
from coloop.workers.cluster.ranks import Cluster, Crew, Deadlines, RankEnded
from coloop.workers.messages import Poll
from coloop.workers.packing import pack, unpack
from coloop.workers.ray.ray_joining import join, kept_signals, named_ray
from coloop.workers.ray.ray_patience import wait_for_slow_nodes
from coloop.workers.ray.ray_remains import RayWatcher
from coloop.workers.ray.ray_settings import (
    AT_EVEN_PRIORITY,
    AUTHENTICATION,
    PATIENCE,
    busy_words,
    default_ray_folder,
    ray_folder,
)
from coloop.workers.ray.ray_spares import SPARES, RayWorker
from coloop.workers.settings import HostSettings, environment_of, forwarded, set_cpu_threads

logger = logging.getLogger(__name__)


class RayCluster(Cluster):
    def __init__(
        self,
        plan: Plan,
        settings: Mapping[str, HostSettings],
        *,
        address: str | None = None,
        nodes: int = 1,
        run_id: str,
        deadlines: Deadlines | None = None,
    ) -> None:
        names = (pool.name for pool in plan.pools)
        super().__init__(names, deadlines or Deadlines(), _wait)
        self._plan = plan
        self._settings = settings
        self._address = address
        self._nodes = nodes
        self._run_id = run_id
        self._groups: dict[str, PlacementGroup] = {}
        self._bundles: dict[str, list[int]] = {}
        """By pool, the bundle of its group in which each rank stands."""
        self._lives: Counter[str] = Counter()  # how often a pool was restarted
        self._owns_ray = False
        self._watcher: RayWatcher | None = None

    def start(self) -> None:
        # Threads of the driver would wait for cores at which its hosts are at work.
        set_cpu_threads(1)
        try:
            self._connect()
            for pool in self._plan.pools:
                self._place(pool)
            for pool in self._plan.pools:
                self._add(pool.name, self._crew(pool))
            SPARES.dismiss()
            for pool in self._plan.pools:
                self._open(pool.name)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        if ray.is_initialized():
            return
        self._owns_ray = True
        if self._address in (None, "local"):
            self._start_ray()
        else:
            join(named_ray(self._address), self._nodes, self._deadlines.start_seconds)

    def _start_ray(self) -> None:
        elsewhere = os.environ.get("RAY_ADDRESS")
        if elsewhere not in (None, "", "local"):
            logger.warning(
                "this run starts its own Ray and does not join the one at RAY_ADDRESS (%s); use "
                "`--address auto` to join it",
                elsewhere,
            )
        os.environ.update(AT_EVEN_PRIORITY | PATIENCE | os.environ)
        # It asks for its token, whatever the environment says: its ports are open to the network,
        # and who reaches it runs code.
        os.environ.pop(AUTHENTICATION, None)
        folder = ray_folder()
        wait_for_slow_nodes()
        self._watcher = RayWatcher(folder)
        try:
            with kept_signals():
                ray.init(
                    address="local",
                    log_to_driver=False,
                    logging_level=logging.WARNING,
                    include_dashboard=False,
                    configure_logging=False,
                    _temp_dir=None if folder == default_ray_folder() else str(folder),
                )
        except Exception as error:
            # Ray raises a plain one for a node that does not start.
            if type(error) is Exception or isinstance(error, RuntimeError | OSError | ValueError):
                raise not_started(error) from error
            raise

    def _place(self, pool: PoolPlan) -> None:
        bundles = [self._bundle(pool) for _ in range(pool.workers)]
        self._check_capacity(pool, bundles[0])
        group = placement_group(bundles, strategy="PACK", name=f"coloop-{self._run_id}-{pool.name}")
        self._groups[pool.name] = group
        if not group.wait(timeout_seconds=self._deadlines.placement_seconds):
            raise PlacementTimeout(
                f"pool {pool.name}: requested {len(bundles)} x {bundles[0]}, not available within "
                f"{self._deadlines.placement_seconds:.0f} s; free now: {_free()}"
            )
        told: dict[str, Any] = placement_group_table(group)
        nodes: Mapping[int, str] = told["bundles_to_node_id"]
        self._bundles[pool.name] = by_node(nodes)
        self._check_engines(pool, [nodes[bundle] for bundle in self._bundles[pool.name]])

    def _check_engines(self, pool: PoolPlan, nodes: Sequence[str]) -> None:
        """Ranks that share an engine, which are neighbours, must be on one node; `nodes`: of each
        rank."""
        engines = (engine for weights in self._plan.weights for engine in weights.engines)
        shared = {engine.tensor_parallel for engine in engines if engine.pool == pool.name}
        for degree in shared:
            starts = range(0, len(nodes), degree)
            if any(len(set(nodes[start : start + degree])) > 1 for start in starts):
                counts = ", ".join(map(str, Counter(nodes).values()))
                raise PlacementTimeout(
                    f"pool {pool.name}: each engine needs {degree} GPUs of one node "
                    f"(`rollout.tensor_parallel`), but Ray placed its {len(nodes)} processes on "
                    f"{len(set(nodes))} nodes, {counts} on each; free the GPUs of whole nodes, or "
                    f"lower `rollout.tensor_parallel`. Free now: {_free()}"
                )

    def _bundle(self, pool: PoolPlan) -> dict[str, float]:
        threads = self._settings[pool.name].threads
        return {"CPU": float(threads)} | ({"GPU": 1.0} if pool.gpus else {})

    def _check_capacity(self, pool: PoolPlan, bundle: dict[str, float]) -> None:
        whole: dict[str, float] = ray.cluster_resources()
        for resource in sorted(bundle, reverse=True):  # GPUs first: they are what is dear
            each = {
                other.name: other.workers * self._bundle(other).get(resource, 0.0)
                for other in self._plan.pools
            }
            there = whole.get(resource, 0.0)
            remedy = "give the pool fewer workers, or add nodes"
            if resource == "GPU":
                remedy = "choose other hardware for the loop, or add nodes with GPUs"
            if each[pool.name] > there:
                raise PlacementTimeout(
                    f"pool {pool.name} needs {each[pool.name]:g} {resource}s, but the whole "
                    f"cluster has {there:g}; {remedy}"
                )
            if sum(each.values()) > there:
                told = ", ".join(f"{name} {wanted:g}" for name, wanted in each.items())
                raise PlacementTimeout(
                    f"the pools need {sum(each.values()):g} {resource}s together ({told}), but the "
                    f"whole cluster has {there:g}; {remedy}"
                )

    def restart(self, pool: str) -> None:
        planned = next(plan for plan in self._plan.pools if plan.name == pool)

        def elsewhere() -> Crew:
            remove_placement_group(self._groups.pop(pool))
            self._lives[pool] += 1
            self._place(planned)
            return self._crew(planned)

        self._replace(pool, elsewhere)

    def _crew(self, pool: PoolPlan) -> Crew:
        hosts = [self._actor(pool, rank) for rank in range(pool.workers)]
        return RayCrew(hosts, self._deadlines.start_seconds)

    def _actor(self, pool: PoolPlan, rank: int) -> Any:
        settings = replace(self._settings[pool.name], rank=rank, ranks=pool.workers)
        if not pool.gpus and (loaded := SPARES.take(settings, self._deadlines.start_seconds)):
            return loaded
        strategy = PlacementGroupSchedulingStrategy(
            placement_group=self._groups[pool.name],
            placement_group_bundle_index=self._bundles[pool.name][rank],
        )
        environment = {**forwarded(), **environment_of(settings.threads)}
        parts = ["coloop", self._run_id, pool.name]
        parts += [str(rank)] if pool.workers > 1 else []
        lives = self._lives[pool.name]
        parts += [f"life-{lives + 1}"] if lives else []  # a name is free some time after its end
        return (
            ray.remote(RayWorker)
            .options(
                name="-".join(parts),
                num_cpus=settings.threads,
                num_gpus=1 if pool.gpus else 0,
                max_concurrency=2,
                scheduling_strategy=strategy,
                runtime_env={"env_vars": environment},
            )
            .remote(settings)
        )

    def close(self) -> None:
        super().close()
        for group in self._groups.values():
            remove_placement_group(group)
        self._groups.clear()
        if self._owns_ray and ray.is_initialized():
            ray.shutdown()
        if self._watcher is not None:
            self._watcher.end()
            self._watcher = None


class RayCrew:
    """The ranks of a pool, each in an actor; see `Crew`."""

    def __init__(self, hosts: Sequence[Any], fetch_seconds: float) -> None:
        """`fetch_seconds`: in which an answer that is there may come here."""
        self._hosts = hosts
        self._fetch_seconds = fetch_seconds
        self._asked: list[tuple[int, Any] | None] = [None] * len(hosts)
        """By rank, the call whose progress was asked for, and where the answer comes."""
        self._number = 0
        self._given_up = 0

    @property
    def size(self) -> int:
        return len(self._hosts)

    def address(self) -> str:
        asked = self._hosts[0].__ray_call__.remote(_address_here)
        try:
            return str(ray.get(asked, timeout=self._fetch_seconds))
        except (RayActorError, GetTimeoutError) as error:
            raise RankEnded(str(error)) from error

    def begin(self, method: str, arguments: tuple[Any, ...]) -> list[Any]:
        self._number += 1
        packed: Any = pack(arguments)
        given = packed if self.size == 1 else ray.put(packed)
        return [host.run.remote(self._number, method, given) for host in self._hosts]

    def answer(self, ticket: Any) -> Any:
        try:
            return unpack(ray.get(ticket, timeout=self._fetch_seconds))
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, BaseException) else error from None
        except (RayActorError, NodeDiedError) as error:
            raise RankEnded(str(error)) from error
        except (GetTimeoutError, ObjectLostError) as error:
            raise RankEnded(f"its result could not be fetched: {error}") from error

    def polls(self) -> list[Poll | None]:
        return [self._poll(rank) for rank in range(self.size)]

    def interrupt(self) -> None:
        if self._given_up != self._number:
            self._given_up = self._number
            for host in self._hosts:
                host.give_up.remote(self._number)

    @property
    def has_ended(self) -> bool:
        """Ray ends a process that it is told to kill, whatever the process does."""
        return True

    def kill(self) -> None:
        for host in self._hosts:
            ray.kill(host)

    def close(self) -> None:
        self.kill()

    def _poll(self, rank: int) -> Poll | None:
        number, answer = self._asked[rank] or (
            self._number,
            self._hosts[rank].poll_of.remote(self._number),
        )
        self._asked[rank] = (number, answer)
        if not ray.wait([answer], timeout=0)[0]:
            return None
        self._asked[rank] = None
        try:
            poll: Poll = ray.get(answer, timeout=self._fetch_seconds)
        except (RayActorError, GetTimeoutError):  # who waits for its answer is told
            return None
        return poll if number == self._number else None


def _wait(answers: Sequence[Any], seconds: float) -> tuple[list[Any], list[Any]]:
    there, others = ray.wait([*answers], num_returns=len(answers), timeout=seconds)
    return there, others


def _address_here(host: object) -> str:
    address: str = ray.util.get_node_ip_address()
    return address


def by_node(nodes: Mapping[int, str]) -> list[int]:
    """The bundles of a group, those of one node (`nodes`) side by side, for its tensor groups."""
    order = {
        node: index for index, node in reversed(list(enumerate(nodes[b] for b in sorted(nodes))))
    }
    return sorted(nodes, key=lambda bundle: (order[nodes[bundle]], bundle))


def _free() -> str:
    free: dict[str, float] = ray.available_resources()
    return ", ".join(f"{free.get(name, 0.0):g} {name}" for name in ("CPU", "GPU"))


def not_started(error: Exception) -> RayNotStarted:
    """Why no Ray started on this machine, in one sentence with a way out."""
    reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    busy = f" ({load})" if (load := busy_words()) else ""
    return RayNotStarted(
        f"Ray could not be started on this machine{busy}: {reason}; `--local` runs the loop in one "
        "process without Ray"
    )
