"""Weights on their way between homes, as the driver sees them: who sends to whom, whether it
arrived, and which engines are behind.

    trainer ──send──> transfer ──receive──> rollout generator    a sync; of another pool
    trainer ──sync──> rollout generator                          a sync within one process
    source  ──send──> transfer ──take─────> its snapshot         of another pool
    trainer ──invite──> place <── deliver, receive at once       a sync from GPUs to GPUs

A transfer goes through a folder that both ends see, and never outlives its delivery. The driver
stops the run where the ends' checksums differ or did not move.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from coloop.errors import ColoopError, WeightsNotUpdated
from coloop.plan.settings.settings import Channel
from coloop.plan.types import Plan, WeightsPlan
from coloop.plan.weight_buckets import CPU_BYTES
from coloop.spec.model import ComputeDtype
from coloop.workers.sync import (
    CHANNELS,
    MEETINGS,
    ChecksumVerifier,
    GroupChannel,
    WeightChecksum,
    WeightTransfer,
)
from coloop.workers.sync.checksums import check_bits
from coloop.workers.sync.folders import TransferFolders
from coloop.workers.worker_api import PoolCall, WorkerApi

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How weights go from one pool to others."""

    places: Sequence[Path]  # folders that the sender may use, the best first
    is_shared: bool  # all ends see them; else the driver carries what lies there


class WeightSync:
    """Sends weights to engines and tracks which are outdated, for a whole run."""

    def __init__(self, plan: Plan, folders: TransferFolders) -> None:
        """`folders`: through which weights go from pool to pool."""
        self._weights: Mapping[str, WeightsPlan] = {
            weights.name: weights for weights in plan.weights
        }
        self._folders = folders
        self._ways: dict[frozenset[str], _Way] = {}
        self._verifiers: dict[tuple[str, str], ChecksumVerifier] = defaultdict(ChecksumVerifier)
        self._processes = {pool.name: pool.workers for pool in plan.pools}
        self._round = 0  # of meetings; grows where processes are other ones than before
        self._writing = {
            engine.pool: threading.Lock() for weights in plan.weights for engine in weights.engines
        }
        """By pool, held while texts are written that new weights must not touch."""
        self._behind: set[tuple[str, str]] = set()
        """Engines (group, pool) whose weights were changed by something else than learning."""

    def check_ways(self, call: PoolCall) -> None:
        """Raises `WeightsNotUpdated` where weights cannot reach an engine that writes with them."""
        for weights in self._weights.values():
            others = [engine.pool for engine in weights.engines if engine.pool != weights.pool]
            if others:
                self._way(call, weights.pool, others)

    def writing_pool(self, group: str, node: str) -> str:
        return next(
            engine.pool for engine in self._weights[group].engines if node in engine.writers
        )

    def sync(self, call: PoolCall, group: str) -> Mapping[str, float]:
        """The group's weights for all its engines, with proof that they arrived."""
        return self._sync(call, group, [engine.pool for engine in self._weights[group].engines])

    def make_current(self, call: PoolCall, group: str, pool: str) -> None:
        """Before an engine of ours writes: give it weights that were loaded or followed others."""
        if (group, pool) in self._behind and not self._weights[group].is_elsewhere:
            self._sync(call, group, [pool])

    def undisturbed(self, pool: str) -> AbstractContextManager[Any]:
        """Held while texts are written to their end; new weights wait."""
        return self._writing[pool]

    def all_are_behind(self) -> None:
        for group in self._weights:
            self._fall_behind(group)

    def pool_is_new(self, pool: str) -> None:
        """A pool has new processes: its engines need weights, and routes are searched again."""
        self._round += 1
        self._ways = {everyone: way for everyone, way in self._ways.items() if pool not in everyone}
        for group, weights in self._weights.items():
            self._behind.update((group, pool) for engine in weights.engines if engine.pool == pool)

    def follow(
        self, call: PoolCall, group: str, source: str, *, ema: float, folder: str | None
    ) -> None:
        """new = ema * old + (1 - ema) * the source's, a group or a checkpoint folder."""
        here, there = self._weights[group].pool, self._weights[source].pool
        if folder is not None:
            call(here, WorkerApi.follow_folder, group, source, ema, folder)
        elif here == there:
            call(here, WorkerApi.follow, group, source, ema)
        else:
            adapter = self._weights[group].follows_adapter
            with self._sent(call, source, [here], is_adapter=adapter) as (transfers, sent):
                arrived = call(here, WorkerApi.take, group, source, transfers[here], ema)
            check_bits(sent, arrived, f"the weights that {group} got from {source}")
        self._fall_behind(group)

    def _sync(self, call: PoolCall, group: str, pools: Sequence[str]) -> Mapping[str, float]:
        weights = self._weights[group]
        given: list[tuple[str, WeightChecksum, WeightChecksum]] = []
        if weights.pool in pools:
            ends = call(weights.pool, WorkerApi.sync, group)
            given += [(weights.pool, *ends)] if ends is not None else []
        by_channel: dict[Channel, list[str]] = {}
        for engine in weights.engines:
            if engine.pool in pools and engine.pool != weights.pool:
                by_channel.setdefault(engine.channel, []).append(engine.pool)
        for channel, others in by_channel.items():
            if channel in MEETINGS:
                given += self._at_once(call, group, channel, others)
                continue
            with self._sent(call, group, others, weights.dtypes.engine) as (transfers, sent):
                for pool in others:
                    with self.undisturbed(pool):
                        received = call(pool, WorkerApi.receive, group, transfers[pool], sent.probe)
                    given.append((pool, sent, received))
        differences = [
            self._verifiers[group, pool].check(sent, received).difference
            for pool, sent, received in given
        ]
        self._behind.difference_update((group, pool) for pool in pools)
        return {"sync/difference": max(differences)} if differences else {}

    def _at_once(
        self, call: PoolCall, group: str, channel: Channel, pools: Sequence[str]
    ) -> list[tuple[str, WeightChecksum, WeightChecksum]]:
        """Weights over a channel whose ends work together; what both ends of each pool say."""
        weights = self._weights[group]
        receivers = sum(self._processes[pool] for pool in pools)
        ends = f"{group} from {weights.pool} to {' and '.join(pools)}"
        with ExitStack() as held:
            for pool in sorted(pools):
                held.enter_context(self.undisturbed(pool))
            asked = group, channel, ends, self._round, receivers, weights.dtypes.engine
            transfer, probe = call(weights.pool, WorkerApi.invite, *asked)
            assert transfer is not None, "rank 0 sets the address"
            lanes = held.enter_context(ThreadPoolExecutor(1 + len(pools), "weights"))
            dtype = weights.dtypes.engine
            give = partial(call, weights.pool, WorkerApi.deliver, group, transfer, dtype)
            giving = lanes.submit(give)
            taking = {
                pool: lanes.submit(call, pool, WorkerApi.receive, group, transfer, probe)
                for pool in pools
            }
            every = [giving, *taking.values()]
            first = wait(every, return_when=FIRST_EXCEPTION).done
            for reason in (future.exception() for future in first):
                if reason is not None:
                    self._round += 1
                    GroupChannel.give_up(transfer, str(reason))
                    raise _cause([future.exception() for future in every])
            sent = giving.result()
            return [(pool, sent, taken.result()) for pool, taken in taking.items()]

    @contextmanager
    def _sent(
        self,
        call: PoolCall,
        group: str,
        pools: Sequence[str],
        dtype: ComputeDtype | None = None,
        *,
        is_adapter: bool = False,
    ) -> Iterator[tuple[Mapping[str, WeightTransfer], WeightChecksum]]:
        """Send a group's weights, or its adapter, to other pools; the transfer for each."""
        home = self._weights[group].pool
        way = self._way(call, home, pools)
        transfer, sent = call(home, WorkerApi.send, group, way.places, dtype, is_adapter)
        assert transfer is not None, "rank 0 sends"
        transfers = {home: transfer}
        try:
            if way.is_shared:
                transfers |= dict.fromkeys(pools, transfer)
            else:
                for pool in pools:
                    transfers[pool] = landing(call, transfer, pool)
                    carry(call, transfers, home, pool)
            yield transfers, sent
        finally:
            if way.is_shared:
                CHANNELS[transfer.channel]().forget(transfer)
            else:
                _forget(call, transfers)

    def _way(self, call: PoolCall, home: str, pools: Sequence[str]) -> "_Way":
        everyone = frozenset((home, *pools))
        if everyone not in self._ways:
            seen = (
                (folder, [call(pool, WorkerApi.can_use, folder) for pool in sorted(everyone)])
                for folder in self._folders.paths
            )
            places = [folder for folder, uses in seen if all(uses)]
            is_shared = bool(places)
            if not is_shared:
                own = {
                    pool: [
                        folder
                        for folder in call(pool, WorkerApi.own_places)
                        if call(pool, WorkerApi.can_use, folder)
                    ]
                    for pool in sorted(everyone)
                }
                places = own[home] if all(own.values()) else []
            if not places:
                raise WeightsNotUpdated(
                    f"weights cannot go from pool {home} to {', '.join(pools)}: there is no folder "
                    "that all of them can access, and not every one has its own; set `run.storage` "
                    "to a folder on a disk shared by all machines"
                )
            self._ways[everyone] = _Way(places=places, is_shared=is_shared)
        return self._ways[everyone]

    def _fall_behind(self, group: str) -> None:
        self._behind.update((group, engine.pool) for engine in self._weights[group].engines)


def _cause(errors: Sequence[BaseException | None]) -> BaseException:
    """Of ends that broke off, the error of the first that says more than that nothing came."""
    told = [error for error in errors if error is not None]
    return min(told, key=lambda error: isinstance(error, WeightsNotUpdated))


def _forget(call: PoolCall, transfers: Mapping[str, WeightTransfer]) -> None:
    for pool, transfer in transfers.items():
        try:
            call(pool, WorkerApi.forget, transfer)
        except ColoopError as error:
            logger.warning("weights in transfer were not cleaned up in pool %s: %s", pool, error)


# Weights between machines that share no folder: the driver carries their files, a part at a time.
# All weights pass it once for each pool, so a shared folder is faster.


def landing(call: PoolCall, transfer: WeightTransfer, pool: str) -> WeightTransfer:
    """The transfer as another pool will have it, in a folder of its own; `call`: of its workers."""
    folder, files = transfer.place
    own = call(pool, WorkerApi.own_place, transfer.size_bytes, transfer.version)
    return replace(transfer, place=(str(own / Path(folder).name), files))


def carry(call: PoolCall, transfers: Mapping[str, WeightTransfer], home: str, pool: str) -> None:
    """Bring the files of a transfer from the pool in which they are to where another has it."""
    folder, files = transfers[home].place
    target = transfers[pool].place[0]
    for name, size in files:
        for start in range(0, size, CPU_BYTES):
            part = call(home, WorkerApi.read_part, Path(folder) / name, start, CPU_BYTES)
            call(pool, WorkerApi.write_part, Path(target) / name, start, part)
