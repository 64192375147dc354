"""What a worker holds, and how it generates its rank's part of the texts."""

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

import psutil
import torch

from coloop.algorithms.batch import Prompt
from coloop.data.arrays import Ids
from coloop.spec.graph import LoopSpec
from coloop.workers.initial_weights import Home
from coloop.workers.messages import Finished, Observation, Poll, PromptRequest, Reply, Sampling
from coloop.workers.rollout.generate import Progress
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.settings import HostSettings
from coloop.workers.training import Hooks, Ranks
from coloop.workers.worker_api import WorkerApi


class CallProgress:
    """Progress of a worker's running call, and whether to give it up; another thread reads it."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        self.now = (0, 0, "")  # done, of how many, unit
        self.others = 0  # texts of the running call that other ranks write

    def begin(self) -> None:
        self.interrupted.clear()
        self.now = (0, 0, "")

    @property
    def hooks(self) -> Hooks:
        return Hooks(progress=self._count_rows, should_stop=self.interrupted.is_set)

    def count_texts(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None:
        """For generation; see `coloop.workers.rollout.Progress`."""
        del tokens_done
        self.now = (rows_done, rows_total + self.others, "rows")

    def _count_rows(self, done: int, total: int) -> None:
        self.now = (done, total, "rows")


class WorkerState(WorkerApi):
    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._spec: LoopSpec = settings.spec
        self._plans = {weights.name: weights for weights in settings.weights}
        self._homes: dict[str, Home] = {}  # by weights group, who holds its weights here
        self._engines: dict[str, RolloutGenerator] = {}
        """By weights group, who generates with them here."""
        self._ranks = Ranks(rank=settings.rank, size=settings.ranks)
        self._process = psutil.Process(os.getpid())
        self._progress = CallProgress()

    def poll(self) -> Poll:
        """Progress of the running call; from any thread."""
        done, total, unit = self._progress.now
        memory, held = self._process.memory_info().rss, None
        if self._settings.device == "cpu":
            held = memory
        elif torch.cuda.is_available():
            free, whole = torch.cuda.mem_get_info()
            held = whole - free
        pid = self._process.pid
        return Poll(done=done, total=total, unit=unit, pid=pid, rss_bytes=memory, held_bytes=held)

    def interrupt(self) -> None:
        """Give up the running call, from any thread, where that leaves everything as it was."""
        self._progress.interrupted.set()

    def _begin(self) -> None:
        self._progress.begin()


class Generators(WorkerState):
    _places: tuple[int, ...] = ()

    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> list[Reply]:
        self._begin()
        generator = self._ready(group)
        own = own_requests(requests, sampling.max_new_tokens, generator.ranks)
        self._progress.others = _texts_of(requests) - _texts_of(own.values())
        written = generator.write(
            node,
            list(own.values()),
            sampling,
            self._counting(generator),
            self._progress.interrupted.is_set,
        )
        replies: list[Reply] = [[] for _ in requests]
        if not generator.ranks.speaks:
            return replies
        for index, reply in zip(own, written, strict=True):
            replies[index] = reply
        return replies

    def write(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation] = (),
    ) -> Finished:
        before = self._progress.now
        self._begin()
        if not requests:
            self._progress.now = before
        generator = self._ready(group)
        begun: list[PromptRequest] = []
        if requests:
            own = own_requests(requests, sampling.max_new_tokens, generator.ranks, is_whole=True)
            self._progress.others = _texts_of(requests) - _texts_of(own.values())
            self._places, begun = tuple(own), list(own.values())
        heard = [
            replace(observation, place=self._places.index(observation.place))
            for observation in said
            if observation.place in self._places
        ]
        replies, pauses, unfinished = generator.write_on(
            node,
            begun,
            sampling,
            heard,
            self._counting(generator),
            self._progress.interrupted.is_set,
        )
        if not generator.ranks.speaks:
            return Finished(replies=(), pauses=(), unfinished=0, poll=self.poll())
        return Finished(
            replies=tuple((self._places[index], reply) for index, reply in replies),
            pauses=tuple(replace(pause, place=self._places[pause.place]) for pause in pauses),
            unfinished=unfinished,
            poll=self.poll(),
        )

    def stop_writing(self, group: str) -> None:
        self._engines[group].stop_writing()

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        self._begin()
        home = self._homes.get(group)
        encoder = self._engines[group].encoder(node) if home is None else home.weights.encoder(node)
        own = own_part([len(ids) for ids in token_ids], self._ranks)
        return [encoder.step_ends(ids, separator) for ids in token_ids[own]]

    def _counting(self, generator: RolloutGenerator) -> Progress:
        """Of ranks that share an engine, one counts its texts."""
        return self._progress.count_texts if generator.ranks.speaks else _not_counted

    def _ready(self, group: str) -> RolloutGenerator:
        generator = self._engines[group]
        if generator.version is None:
            weights = self._homes[group].weights
            generator.build(weights.whole(generator.dtype), weights.version)
        return generator


def _not_counted(*, rows_done: int, rows_total: int, tokens_done: int) -> None:
    del rows_done, rows_total, tokens_done


def _texts_of(requests: Iterable[PromptRequest]) -> int:
    return sum(len(request.seeds) for request in requests)


# Every rank is given the whole stage and finds its part: texts in order, cut into equal parts by
# expected lengths, so that a prompt is nearly always read by one rank.


def own_requests(
    requests: Sequence[PromptRequest], max_new_tokens: int, ranks: Ranks, *, is_whole: bool = False
) -> dict[int, PromptRequest]:
    """Requests that this rank writes, by place; `is_whole`: each with all its completions. Ranks
    that share an engine have the same."""
    every = list(enumerate(requests))
    if ranks.parts == 1:
        return dict(every)
    sizes = [characters_of(request.prompt) + max_new_tokens for request in requests]
    if is_whole:
        lengths = [len(request.seeds) * sizes[index] for index, request in every]
        return dict(every[own_part(lengths, ranks)])
    texts = [(index, seed) for index, request in every for seed in request.seeds]
    lengths = [sizes[index] for index, _ in texts]
    seeds: dict[int, list[int]] = {}
    for index, seed in texts[own_part(lengths, ranks)]:
        seeds.setdefault(index, []).append(seed)
    return {index: replace(requests[index], seeds=tuple(own)) for index, own in seeds.items()}


def own_part(lengths: Sequence[int], ranks: Ranks) -> slice:
    """This rank's share of texts of these expected lengths: those whose middle lies in it."""
    total = sum(lengths)
    ends = accumulate(lengths)
    owners = [
        min((2 * end - length) * ranks.parts // (2 * total), ranks.parts - 1) if total else 0
        for length, end in zip(lengths, ends, strict=True)
    ]
    first = sum(owner < ranks.part for owner in owners)
    return slice(first, first + owners.count(ranks.part))


def characters_of(prompt: Prompt) -> int:
    """Characters of a prompt: hardly fewer than its tokens, and known without encoding it."""
    if isinstance(prompt, str):
        return len(prompt)
    return sum(len(str(message.get("content", ""))) for message in prompt)
