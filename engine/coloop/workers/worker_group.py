"""The driver's way to the hosts: each weights group is asked for in the pool where it is held, its
engines in the pools where they write, and new weights go from one to the other.

Two pools may be asked at the same time, from two threads; one pool does one thing at a time.
"""

import platform
import shutil
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, Numbers
from coloop.data.files.marks import Mark
from coloop.errors import CheckpointError, StopRequested, StorageFull
from coloop.spec.heads import Reading
from coloop.workers.listeners import Listeners
from coloop.workers.messages import (
    DRIVERS_WORD,
    Answer,
    Finished,
    HandOn,
    LearnReply,
    LearnRequest,
    Observation,
    Pause,
    Poll,
    PromptRequest,
    Reply,
    Sampling,
    TooLong,
    Word,
)
from coloop.workers.shortage import Shortages, Tell, untold
from coloop.workers.weight_sync import WeightSync
from coloop.workers.worker_api import PoolCall, Tick, WorkerApi

# What the hosts' callers need where the processes of a pool are replaced while a run goes on.


class Replacements(Protocol):
    """Gives pools new processes in place of those that have died or hang."""

    @property
    def shortages(self) -> Shortages:
        """What the new ones are to hold at once."""
        ...

    def lives(self) -> Mapping[str, int]:
        """How often each pool was given new processes so far."""
        ...

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        """The pool that an error says has died, once it has new processes that hold what the old
        ones held; None where the error says nothing of the kind, or the pool held what is lost.

        Args:
            lives: before the call that broke; another caller may have met the same dead pool.
        """
        ...


class Irreplaceable:
    """No process is replaced."""

    def __init__(self) -> None:
        self.shortages = Shortages()

    def lives(self) -> Mapping[str, int]:
        return {}

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        del error, lives
        return None


R = TypeVar("R")


class Pools(Protocol):
    """Carries calls to the workers of a pool."""

    def asking(self, tick: Tick | None = None) -> PoolCall: ...


class WorkerGroup:
    """The processes that hold weights, asked by weights group."""

    def __init__(
        self,
        cluster: Pools,
        pools: Mapping[str, str],
        weight_sync: WeightSync,
        tick: Tick | None = None,
        tell: Tell = untold,
        replacements: Replacements | None = None,
    ) -> None:
        """
        Args:
            pools: by weights group, the pool in which it is held.
            weight_sync: how weights go from end to end, of the whole run.
            tick: called while an answer is waited for; true asks the host to give up.
            tell: told of what a person should know, in the thread in which it came up.
            replacements: of processes that die while they are asked.
        """
        self._cluster = cluster
        self._pools = pools
        self._weight_sync = weight_sync
        self._tick = tick
        self._ask = cluster.asking(tick)
        self._tell = tell
        self._replacements = replacements or Irreplaceable()

    def with_tick(self, tick: Tick) -> "WorkerGroup":
        """The same for one stage: `tick` is told how far its calls are, and says whether they shall
        give up."""
        return WorkerGroup(
            self._cluster,
            self._pools,
            self._weight_sync,
            tick,
            self._tell,
            self._replacements,
        )

    def check_ways(self) -> None:
        """Before a run begins: weights can reach every pool that writes with them."""
        self._weight_sync.check_ways(self._ask)

    def generate(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None = None,
        answer: Answer | None = None,
    ) -> list[Reply]:
        """Completions for each request; a prompt that leaves no room for what may be written has
        none.

        Args:
            hand_on: told of what is complete while others are still written.
            answer: finds what is said to texts that pause.
        """
        pool = self._weight_sync.writing_pool(group, node)
        replies: dict[int, Reply] = {}
        write = partial(
            self._generate, pool, group, node, requests, sampling, hand_on, answer, replies
        )
        self._retry(write, self._half_of("generate", pool, group, node))
        return [replies[place] for place in range(len(requests))]

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        """See `WorkerApi.score`."""
        pool = self._pools[group]
        asked = group, node, list(texts), temperature, reading
        score = partial(self._ask, pool, WorkerApi.score, *asked)
        return self._retry(score, self._half_of("score", pool, group, node))

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        pool = self._pools[group]
        score = partial(self._ask, pool, WorkerApi.score_pairs, group, node, list(pairs))
        return self._retry(score, self._half_of("score_pairs", pool, group, node))

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        pool = self._pools[group]
        asked = group, node, list(token_ids), separator
        find = partial(self._ask, pool, WorkerApi.step_ends, *asked)
        return self._retry(find, self._half_of("step_ends", pool, group, node))

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        return self._ask(self._pools[group], WorkerApi.lengths, group, node, list(texts))

    def learn(self, order: LearnRequest) -> LearnReply:
        pool = self._pools[order.group]
        learn = partial(self._ask, pool, WorkerApi.learn, order)
        return self._retry(learn, self._half_of("learn", pool, order.group, order.group))

    def has_changed(self, group: str) -> bool:
        """See `WorkerApi.has_changed`."""
        return self._ask(self._pools[group], WorkerApi.has_changed, group)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        pool = self._pools[order.group]
        evaluate = partial(self._ask, pool, WorkerApi.evaluate, order)
        return self._retry(evaluate, self._half_of("evaluate", pool, order.group, order.group))

    def sync(self, group: str) -> Mapping[str, float]:
        """The group's weights for all its engines, with proof that they arrived."""
        return self._retry(partial(self._weight_sync.sync, self._ask, group))

    def refresh(
        self, group: str, source: str, *, ema: float = 0.0, folder: str | None = None
    ) -> None:
        """Give a group the weights of another one, or those that a checkpoint folder holds of
        it."""
        self._weight_sync.follow(self._ask, group, source, ema=ema, folder=folder)

    def reset_optimizer(self, group: str) -> None:
        self._ask(self._pools[group], WorkerApi.reset_optimizer, group)

    def version(self, group: str) -> int:
        return self._ask(self._pools[group], WorkerApi.version, group)

    def narrow_again(self) -> None:
        """Where a run begins anew: pools hold no more at once than before."""
        self._replacements.shortages.again(self._ask)

    def check_folder(self, folder: Path) -> None:
        """Before a run begins: what pools save there can be read by the driver, and the other way
        round. Raises `CheckpointError` with the pool that does not see it."""
        check_shared(self._ask, dict.fromkeys(self._pools.values()), folder)

    def save(self, folder: str, earlier: str | None = None) -> Mapping[str, Mark]:
        """Every group's weights and trainer state, one folder each; the mark of each file, by its
        path in the folder. What an earlier folder has already is not written again."""
        return self._retry(partial(self._save, folder, earlier))

    def load(self, folder: str) -> None:
        """Bring every group back to what `save` wrote."""
        for pool in dict.fromkeys(self._pools.values()):
            self._ask(pool, WorkerApi.load, folder)
        self._weight_sync.all_are_behind()

    def _generate(
        self,
        pool: str,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None,
        answer: Answer | None,
        replies: dict[int, Reply],
    ) -> None:
        """Have those requests written that have no reply yet, by their places."""
        left = [place for place in range(len(requests)) if place not in replies]
        if replies and not left:
            return
        wanted = [requests[place] for place in left]
        self._weight_sync.make_current(self._ask, group, pool)
        if hand_on is None and answer is None and sampling.on_sync == "finish":
            whole = self._ask(pool, WorkerApi.generate, group, node, wanted, sampling)
            replies.update(zip(left, whole, strict=True))
            return
        finishes = sampling.on_sync == "finish"

        def said(pause: Pause) -> Word:
            assert answer is not None, "texts that pause need a listener"
            return answer(replace(pause, place=left[pause.place]))

        with (
            self._weight_sync.undisturbed(pool) if finishes else nullcontext(),
            closing(Listeners(said)) as listeners,
            closing(self._written(pool, group, node, wanted, sampling, listeners)) as moments,
        ):
            for finished in moments:
                fresh = tuple((left[place], reply) for place, reply in finished.replies)
                replies.update(fresh)
                if hand_on is not None and fresh:
                    hand_on(fresh)

    def _written(
        self,
        pool: str,
        group: str,
        node: str,
        requests: list[PromptRequest],
        sampling: Sampling,
        listeners: Listeners,
    ) -> Generator[Finished, None, None]:
        """What a host finishes, moment by moment; between two of them others may call it."""
        said: list[Observation] = []
        try:
            while True:
                asked = group, node, requests, sampling, said
                finished = self._ask(pool, WorkerApi.write, *asked)
                yield finished
                if not finished.unfinished:
                    return
                requests = []
                listeners.hear(finished.pauses)
                said = listeners.said(
                    finished.unfinished, partial(self._go_on, node, finished.poll)
                )
        except BaseException:
            with suppress(Exception):  # what went wrong is told; a host that is gone has nothing
                self._cluster.asking()(pool, WorkerApi.stop_writing, group)
            raise

    def _go_on(self, node: str, poll: Poll) -> None:
        """Tells how far it is; raises `StopRequested` where it is to be given up."""
        if self._tick is not None and self._tick(poll):
            raise StopRequested(f"while {node} was generating")

    def _save(self, folder: str, earlier: str | None) -> Mapping[str, Mark]:
        files: dict[str, Mark] = {}
        for pool in dict.fromkeys(self._pools.values()):
            files |= self._ask(pool, WorkerApi.save, folder, earlier)
        return files

    def _half_of(self, verb: str, pool: str, group: str, node: str) -> Callable[[Exception], bool]:
        """Where memory was short in a call for a node: whether it can be made again, since its
        worker holds half at once from here on."""
        return partial(
            self._replacements.shortages.narrowed,
            ask=self._ask,
            tell=self._tell,
            pool=pool,
            verb=verb,
            group=group,
            node=node,
        )

    def _retry(self, call: Callable[[], R], narrow: Callable[[Exception], bool] | None = None) -> R:
        """What a call gives, which is made a second time where the first one broke off because a
        process had died that could be replaced, or memory was short.

        Args:
            narrow: says whether less is held at once from here on; None: the call is not made
                again for want of memory.
        """
        lives = self._replacements.lives()
        try:
            return call()
        except Exception as error:
            self._recover(error, lives, narrow)
        return call()

    def _recover(
        self, error: Exception, lives: Mapping[str, int], narrow: Callable[[Exception], bool] | None
    ) -> None:
        """Make way for the second call; raises where there is to be none."""
        try:
            if narrow is not None and narrow(error):
                return
        except Exception as later:  # the pool has ended meanwhile
            error = later
        pool = self._replacements.replaced(error, lives)
        if pool is None:
            raise error
        self._weight_sync.pool_is_new(pool)
        self._replacements.shortages.again(self._ask, pool)


# Whether the pools that save and the driver see the same folder: one that only looks the same, on
# a machine of its own, would hold checkpoints that nobody can put together.


def check_shared(ask: PoolCall, pools: Iterable[str], folder: Path) -> None:
    """Driver and pools each write a word that the other reads.

    Args:
        ask: calls a method of a pool's workers.

    Raises:
        CheckpointError: a pool writes elsewhere, or cannot read what is written here.
        StorageFull: nothing can be written here.
    """
    word = uuid.uuid4().hex
    place = folder / f".seen-{word}"
    try:
        place.mkdir(parents=True)
        (place / DRIVERS_WORD).write_text(word, encoding="utf-8")
        for pool in pools:
            sight = ask(pool, WorkerApi.see, place)
            if sight.word != word or _word_of(place / pool) != word:
                raise CheckpointError(
                    f"pool {pool}, on {sight.machine}, does not see the folder of the checkpoints, "
                    f"{folder} on {platform.node()}: set `run.storage` to a folder on a disk that "
                    "all machines of the cluster share"
                )
    except OSError as error:
        raise StorageFull(f"nothing can be written to {folder}: {error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _word_of(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
