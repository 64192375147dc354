"""The driver's handles to the workers: calls go to the pool that holds a weights group, generation
to the pools of its engines, and new weights from one to the other."""

import platform
import shutil
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from coloop.algorithms.batch import Pair
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, Numbers
from coloop.data.files.marks import Mark
from coloop.errors import CheckpointError, StopRequested, StorageFull
from coloop.spec.heads import Reading
from coloop.workers.messages import (
    DRIVERS_WORD,
    Answer,
    Branches,
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
from coloop.workers.shortage import Call, Shortages, Tell, untold
from coloop.workers.weight_sync import WeightSync
from coloop.workers.worker_api import PoolCall, Tick, WorkerApi

LANES = 8  # tools that work at once, at most
TICK_SECONDS = 0.1

P = ParamSpec("P")
R = TypeVar("R")


class Listeners:
    """The paused texts of one stage: tools answer them in threads, while others are written."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._lanes = ThreadPoolExecutor(LANES, thread_name_prefix="tool")  # none runs before work
        self._waiting: dict[Future[Word], Pause] = {}

    def hear(self, pauses: Sequence[Pause]) -> None:
        for pause in pauses:
            self._waiting[self._lanes.submit(self._answer, pause)] = pause

    def said(self, unfinished: int, tick: Callable[[], None]) -> list[Observation]:
        """The answers since the last call; raises what a tool raised. Waits for one if all
        unfinished texts pause; `tick` is called meanwhile and may end the wait."""
        while True:
            tick()
            is_idle = len(self._waiting) == unfinished
            done = wait(self._waiting, TICK_SECONDS if is_idle else 0, FIRST_COMPLETED).done
            if done or not is_idle:
                ended = [future for future in self._waiting if future in done]
                return [_said(self._waiting.pop(future), future.result()) for future in ended]

    def close(self) -> None:
        """Wait for running tools and drop the rest."""
        self._lanes.shutdown(wait=True, cancel_futures=True)


def _said(pause: Pause, answer: Word) -> Observation:
    text, seeds = (answer.text, answer.seeds) if isinstance(answer, Branches) else (answer, ())
    return Observation(place=pause.place, k=pause.k, branch=pause.branch, text=text, seeds=seeds)


class Replacements:
    """Gives pools new processes in place of those that have died or hang; this one gives none."""

    def __init__(self) -> None:
        self.shortages = Shortages()  # what the new ones are to hold at once

    def lives(self) -> Mapping[str, int]:
        """How often each pool was given new processes so far."""
        return {}

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        """The pool that an error says has died, once new processes hold what it held; else None.
        `lives`: before the failed call; another caller may have met the same dead pool."""
        del error, lives
        return None


class Pools(Protocol):
    def asking(self, tick: Tick | None = None) -> PoolCall: ...


@dataclass(frozen=True, eq=False)
class WorkerGroup:
    """The processes that hold weights, asked by weights group."""

    cluster: Pools
    pools: Mapping[str, str]  # by weights group
    weight_sync: WeightSync
    tick: Tick | None = None
    """Called while an answer is waited for; true asks the worker to give up."""
    tell: Tell = untold
    """Called with what a person should know, in the thread in which it came up."""
    replacements: Replacements = field(default_factory=Replacements)
    """Of processes that die during a call."""

    def with_tick(self, tick: Tick) -> "WorkerGroup":
        """The same workers for another caller, whose `tick` gets the progress of its calls."""
        return replace(self, tick=tick)

    @cached_property
    def _ask(self) -> PoolCall:
        return self.cluster.asking(self.tick)

    def check_ways(self) -> None:
        """Before a run starts: raises `WeightsNotUpdated` if weights cannot reach an engine."""
        self.weight_sync.check_ways(self._ask)

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
        pool = self.weight_sync.writing_pool(group, node)
        replies: dict[int, Reply] = {}
        call = Call(pool=pool, verb="generate", group=group, node=node)
        asked = requests, sampling, hand_on, answer, replies
        self._retry(partial(self._generate, call, *asked), call)
        return [replies[index] for index in range(len(requests))]

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        asked = group, node, list(texts), temperature, reading
        return self._call(group, node, WorkerApi.score, *asked)

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        return self._call(group, node, WorkerApi.score_pairs, group, node, list(pairs))

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        asked = group, node, list(token_ids), separator
        return self._call(group, node, WorkerApi.step_ends, *asked)

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        return self._ask(self.pools[group], WorkerApi.lengths, group, node, list(texts))

    def learn(self, order: LearnRequest) -> LearnReply:
        return self._call(order.group, order.group, WorkerApi.learn, order)

    def has_changed(self, group: str) -> bool:
        return self._ask(self.pools[group], WorkerApi.has_changed, group)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        return self._call(order.group, order.group, WorkerApi.evaluate, order)

    def sync(self, group: str) -> Mapping[str, float]:
        return self._retry(partial(self.weight_sync.sync, self._ask, group))

    def refresh(
        self, group: str, source: str, *, ema: float = 0.0, folder: str | None = None
    ) -> None:
        """Give a group the weights of another one, or those in a checkpoint folder."""
        self.weight_sync.follow(self._ask, group, source, ema=ema, folder=folder)

    def reset_optimizer(self, group: str) -> None:
        self._ask(self.pools[group], WorkerApi.reset_optimizer, group)

    def version(self, group: str) -> int:
        return self._ask(self.pools[group], WorkerApi.version, group)

    def narrow_again(self) -> None:
        """When a run starts again: pools hold no more at once than before."""
        self.replacements.shortages.again(self._ask)

    def check_folder(self, folder: Path) -> None:
        """Raises `CheckpointError` where a pool does not see the driver's checkpoints."""
        check_shared(self._ask, dict.fromkeys(self.pools.values()), folder)

    def save(self, folder: str, earlier: str | None = None) -> Mapping[str, Mark]:
        """Save every group in a folder each, without files that `earlier` has; each file's mark."""
        return self._retry(partial(self._save, folder, earlier))

    def load(self, folder: str) -> None:
        for pool in dict.fromkeys(self.pools.values()):
            self._ask(pool, WorkerApi.load, folder)
        self.weight_sync.all_are_behind()

    def _generate(
        self,
        call: Call,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None,
        answer: Answer | None,
        replies: dict[int, Reply],
    ) -> None:
        left = [index for index in range(len(requests)) if index not in replies]
        if replies and not left:
            return
        wanted = [requests[index] for index in left]
        self.weight_sync.make_current(self._ask, call.group, call.pool)
        finishes = sampling.on_sync == "finish"
        if hand_on is None and answer is None and finishes:
            asked = call.group, call.node, wanted, sampling
            whole = self._ask(call.pool, WorkerApi.generate, *asked)
            replies.update(zip(left, whole, strict=True))
            return

        def respond(pause: Pause) -> Word:
            assert answer is not None, "texts that pause need a listener"
            return answer(replace(pause, place=left[pause.place]))

        with (
            self.weight_sync.undisturbed(call.pool) if finishes else nullcontext(),
            closing(Listeners(respond)) as listeners,
            closing(self._written(call, wanted, sampling, listeners)) as moments,
        ):
            for finished in moments:
                fresh = tuple((left[index], reply) for index, reply in finished.replies)
                replies.update(fresh)
                if hand_on is not None and fresh:
                    hand_on(fresh)

    def _written(
        self,
        call: Call,
        requests: list[PromptRequest],
        sampling: Sampling,
        listeners: Listeners,
    ) -> Generator[Finished, None, None]:
        """What a worker finishes, slice by slice; between two of them others may call it."""
        observations: list[Observation] = []
        try:
            while True:
                asked = call.group, call.node, requests, sampling, observations
                finished = self._ask(call.pool, WorkerApi.write, *asked)
                yield finished
                if not finished.unfinished:
                    return
                requests = []
                listeners.hear(finished.pauses)
                go_on = partial(self._go_on, call.node, finished.poll)
                observations = listeners.said(finished.unfinished, go_on)
        except BaseException:
            with suppress(Exception):  # the error is raised; a worker that is gone has nothing
                self.cluster.asking()(call.pool, WorkerApi.stop_writing, call.group)
            raise

    def _go_on(self, node: str, poll: Poll) -> None:
        if self.tick is not None and self.tick(poll):
            raise StopRequested(f"while {node} was generating")

    def _save(self, folder: str, earlier: str | None) -> Mapping[str, Mark]:
        files: dict[str, Mark] = {}
        for pool in dict.fromkeys(self.pools.values()):
            files |= self._ask(pool, WorkerApi.save, folder, earlier)
        return files

    def _call(
        self,
        group: str,
        node: str,
        method: Callable[Concatenate[Any, P], R],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> R:
        pool = self.pools[group]
        make = partial(self._ask, pool, method, *arguments, **named)
        return self._retry(make, Call(pool=pool, verb=method.__name__, group=group, node=node))

    def _retry(self, make: Callable[[], R], call: Call | None = None) -> R:
        """A call's result, made a second time after a replaced process or short memory. `call`:
        None: it is not made again for want of memory."""
        lives = self.replacements.lives()
        try:
            return make()
        except Exception as error:
            self._recover(error, lives, call)
        return make()

    def _recover(self, error: Exception, lives: Mapping[str, int], call: Call | None) -> None:
        shortages = self.replacements.shortages
        try:
            if call is not None and shortages.narrowed(error, self._ask, self.tell, call):
                return
        except Exception as later:  # the pool has ended meanwhile
            error = later
        pool = self.replacements.replaced(error, lives)
        if pool is None:
            raise error
        self.weight_sync.pool_is_new(pool)
        shortages.again(self._ask, pool)


def check_shared(ask: PoolCall, pools: Iterable[str], folder: Path) -> None:
    """Driver and pools each write a word that the other reads, so that all mean the same folder.
    Raises `CheckpointError` for a pool that writes or reads elsewhere, `StorageFull`."""
    word = uuid.uuid4().hex
    tried = folder / f".seen-{word}"
    try:
        tried.mkdir(parents=True)
        (tried / DRIVERS_WORD).write_text(word, encoding="utf-8")
        for pool in pools:
            sight = ask(pool, WorkerApi.see, tried)
            theirs = tried / pool
            if sight.word != word or not theirs.is_file() or theirs.read_text("utf-8") != word:
                raise CheckpointError(
                    f"pool {pool}, on {sight.machine}, does not see the folder of the checkpoints, "
                    f"{folder} on {platform.node()}: set `run.storage` to a folder on a disk that "
                    "all machines of the cluster share"
                )
    except OSError as error:
        raise StorageFull(f"nothing can be written to {folder}: {error}") from error
    finally:
        shutil.rmtree(tried, ignore_errors=True)
