"""The driver's handle to the workers. Calls go to the pool that holds a weights group, generation
goes to the pools of its rollout engines, and new weights go from the one to the others."""

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
from coloop.data.distributions import Teacher, Words
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

LANES = 8  # most tool calls at once
TICK_SECONDS = 0.1

P = ParamSpec("P")
R = TypeVar("R")


class ToolCalls:
    """Runs tools for the paused texts of one stage, in threads, while other texts are generated."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._lanes = ThreadPoolExecutor(LANES, thread_name_prefix="tool")
        self._waiting: dict[Future[Word], Pause] = {}

    def submit(self, pauses: Sequence[Pause]) -> None:
        for pause in pauses:
            self._waiting[self._lanes.submit(self._answer, pause)] = pause

    def finished(self, unfinished: int, tick: Callable[[], None]) -> list[Observation]:
        """Observations since the last call; raises what a tool raised. If all unfinished texts are
        paused, it waits for one; `tick` is called meanwhile and may raise to end the wait."""
        while True:
            tick()
            is_idle = len(self._waiting) == unfinished
            done = wait(self._waiting, TICK_SECONDS if is_idle else 0, FIRST_COMPLETED).done
            if done or not is_idle:
                ended = [future for future in self._waiting if future in done]
                return [
                    _observation(self._waiting.pop(future), future.result()) for future in ended
                ]

    def close(self) -> None:
        """Wait for running tools; those not started are dropped."""
        self._lanes.shutdown(wait=True, cancel_futures=True)


def _observation(pause: Pause, answer: Word) -> Observation:
    text, seeds = (answer.text, answer.seeds) if isinstance(answer, Branches) else (answer, ())
    return Observation(place=pause.place, k=pause.k, branch=pause.branch, text=text, seeds=seeds)


class Replacements:
    """Replaces processes of pools that have died or hang; this base class replaces none."""

    def __init__(self) -> None:
        self.shortages = Shortages()  # limits that new processes keep

    def lives(self) -> Mapping[str, int]:
        """How often the processes of each pool were replaced; empty: never."""
        return {}

    def replaced(self, error: Exception, lives: Mapping[str, int]) -> str | None:
        """Replace the processes of the pool whose death caused an error; returns the pool, or None
        if no pool died. `lives`: before the call; another caller may have replaced it since."""
        del error, lives
        return None


class Pools(Protocol):
    def asking(self, tick: Tick | None = None) -> PoolCall: ...


@dataclass(frozen=True, eq=False)
class WorkerGroup:
    """Handle to the workers of all pools; its methods name a weights group."""

    cluster: Pools
    pools: Mapping[str, str]  # by weights group
    weight_sync: WeightSync
    tick: Tick | None = None
    """Called while a call runs; true asks the worker to give it up."""
    tell: Tell = untold
    """Called with alerts for the user, in the thread of the call."""
    replacements: Replacements = field(default_factory=Replacements)
    """Replaces processes that die during a call."""

    def with_tick(self, tick: Tick) -> "WorkerGroup":
        """The same workers for another caller, whose `tick` gets the progress of its calls."""
        return replace(self, tick=tick)

    @cached_property
    def _ask(self) -> PoolCall:
        return self.cluster.asking(self.tick)

    def check_ways(self) -> None:
        """Raises `WeightsNotUpdated` if weights cannot reach an engine; called before a run."""
        self.weight_sync.check_ways(self._ask)

    def tokenizer(self, group: str, node: str) -> tuple[str, int]:
        """The mark of a node's tokenizer, and its number of tokens."""
        return self._ask(self.pools[group], WorkerApi.tokenizer, group, node)

    def generate(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None = None,
        answer: Answer | None = None,
    ) -> list[Reply]:
        """Completions for each request; `TooLong` for a prompt that leaves no room for them.

        Args:
            hand_on: called with complete replies while others are still being generated.
            answer: returns the response to a paused text; called in threads.
        """
        pool = self.weight_sync.writing_pool(group, node)
        replies: dict[int, Reply] = {}
        call = Call(pool=pool, verb="generate", group=group, node=node)
        arguments = requests, sampling, hand_on, answer, replies
        self._retry(partial(self._generate, call, *arguments), call)
        return [replies[index] for index in range(len(requests))]

    def score(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        reading: Reading = "log_probs",
    ) -> list[Numbers | TooLong]:
        arguments = group, node, list(texts), temperature, reading
        return self._retry(*self._call(group, node, WorkerApi.score, *arguments))

    def distributions(
        self,
        group: str,
        node: str,
        texts: Sequence[TokenSequence],
        temperature: float,
        words: Words,
    ) -> list[Teacher | TooLong]:
        arguments = group, node, list(texts), temperature, words
        return self._retry(*self._call(group, node, WorkerApi.distributions, *arguments))

    def score_pairs(
        self, group: str, node: str, pairs: Sequence[Pair]
    ) -> list[dict[str, Numbers] | TooLong]:
        return self._retry(
            *self._call(group, node, WorkerApi.score_pairs, group, node, list(pairs))
        )

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        arguments = group, node, list(token_ids), separator
        return self._retry(*self._call(group, node, WorkerApi.step_ends, *arguments))

    def lengths(self, group: str, node: str, texts: Sequence[str]) -> list[int]:
        return self._ask(self.pools[group], WorkerApi.lengths, group, node, list(texts))

    def learn(self, order: LearnRequest) -> LearnReply:
        return self._retry(*self._call(order.group, order.group, WorkerApi.learn, order))

    def has_changed(self, group: str) -> bool:
        return self._ask(self.pools[group], WorkerApi.has_changed, group)

    def evaluate(self, order: LearnRequest) -> LearnReply:
        return self._retry(*self._call(order.group, order.group, WorkerApi.evaluate, order))

    def sync(self, group: str) -> Mapping[str, float]:
        return self._retry(partial(self.weight_sync.sync, self._ask, group))

    def refresh(
        self, group: str, source: str, *, ema: float = 0.0, folder: str | None = None
    ) -> None:
        """Blend another group's weights, or those in a checkpoint folder, into a group's own."""
        self.weight_sync.follow(self._ask, group, source, ema=ema, folder=folder)

    def reset_optimizer(self, group: str) -> None:
        self._ask(self.pools[group], WorkerApi.reset_optimizer, group)

    def version(self, group: str) -> int:
        return self._ask(self.pools[group], WorkerApi.version, group)

    def narrow_again(self) -> None:
        """Apply the memory limits found before to all pools; called when a run starts again."""
        self.replacements.shortages.again(self._ask)

    def check_folder(self, folder: Path) -> None:
        """Raises `CheckpointError` if a pool does not see the driver's checkpoints."""
        check_shared(self._ask, dict.fromkeys(self.pools.values()), folder)

    def save(self, folder: str, earlier: str | None = None) -> Mapping[str, Mark]:
        """Save each group in its own subfolder; returns the mark of each file. `earlier`: a folder
        saved before, whose files are not written again."""
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
        missing = [index for index in range(len(requests)) if index not in replies]
        if replies and not missing:
            return
        missing_requests = [requests[index] for index in missing]
        self.weight_sync.make_current(self._ask, call.group, call.pool)
        finishes = sampling.on_sync == "finish"
        if hand_on is None and answer is None and finishes:
            arguments = call.group, call.node, missing_requests, sampling
            results = self._ask(call.pool, WorkerApi.generate, *arguments)
            replies.update(zip(missing, results, strict=True))
            return

        def respond(pause: Pause) -> Word:
            assert answer is not None, "texts that pause need `answer`"
            return answer(replace(pause, place=missing[pause.place]))

        with (
            self.weight_sync.undisturbed(call.pool) if finishes else nullcontext(),
            closing(ToolCalls(respond)) as tool_calls,
            closing(self._generate_slices(call, missing_requests, sampling, tool_calls)) as slices,
        ):
            for finished in slices:
                new_replies = tuple((missing[index], reply) for index, reply in finished.replies)
                replies.update(new_replies)
                if hand_on is not None and new_replies:
                    hand_on(new_replies)

    def _generate_slices(
        self,
        call: Call,
        requests: list[PromptRequest],
        sampling: Sampling,
        tool_calls: ToolCalls,
    ) -> Generator[Finished, None, None]:
        """Generate in slices of time; yields what each has finished. Between two slices, the worker
        is free for other calls."""
        observations: list[Observation] = []
        try:
            while True:
                arguments = call.group, call.node, requests, sampling, observations
                finished = self._ask(call.pool, WorkerApi.write, *arguments)
                yield finished
                if not finished.unfinished:
                    return
                requests = []
                tool_calls.submit(finished.pauses)
                check_stop = partial(self._check_stop, call.node, finished.poll)
                observations = tool_calls.finished(finished.unfinished, check_stop)
        except BaseException:
            with suppress(Exception):  # a dead worker has nothing to stop; the first error counts
                self.cluster.asking()(call.pool, WorkerApi.stop_writing, call.group)
            raise

    def _check_stop(self, node: str, poll: Poll) -> None:
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
    ) -> tuple[Callable[[], R], Call]:
        """What `_retry` takes: a call of a group's workers, and its name."""
        pool = self.pools[group]
        do_call = partial(self._ask, pool, method, *arguments, **named)
        return do_call, Call(pool=pool, verb=method.__name__, group=group, node=node)

    def _retry(self, do_call: Callable[[], R], call: Call | None = None) -> R:
        """The result of `do_call`. It is repeated once if a process was replaced or, when `call` is
        given, if memory was short."""
        lives = self.replacements.lives()
        try:
            return do_call()
        except Exception as error:
            self._recover(error, lives, call)
        return do_call()

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
    """Check that driver and pools see the same folder: each writes a word that the other reads.
    Raises `CheckpointError` for a pool that does not see it, `StorageFull` if writing fails."""
    word = uuid.uuid4().hex
    test_folder = folder / f".seen-{word}"
    try:
        test_folder.mkdir(parents=True)
        (test_folder / DRIVERS_WORD).write_text(word, encoding="utf-8")
        for pool in pools:
            sight = ask(pool, WorkerApi.see, test_folder)
            reply = test_folder / pool
            if sight.word != word or not reply.is_file() or reply.read_text("utf-8") != word:
                raise CheckpointError(
                    f"pool {pool}, on {sight.machine}, does not see the folder of the checkpoints, "
                    f"{folder} on {platform.node()}: set `run.storage` to a folder on a disk that "
                    "all machines of the cluster share"
                )
    except OSError as error:
        raise StorageFull(f"nothing can be written to {folder}: {error}") from error
    finally:
        shutil.rmtree(test_folder, ignore_errors=True)
