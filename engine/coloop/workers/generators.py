"""The rollout generators of a worker: which of them writes, which part of the texts is this rank's,
and from which weights one is built when it writes first."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from coloop.algorithms.batch import Prompt
from coloop.data.arrays import Ids
from coloop.workers.initial_weights import Home
from coloop.workers.messages import Finished, Observation, Poll, PromptRequest, Reply, Sampling
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.training import Hooks, Ranks

# How far the running call of a worker is, and whether it is to be given up; another thread reads
# it.


class CallProgress:
    """Of one worker, whose calls come one by one."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        """Set where the running call is to be given up."""
        self.now = (0, 0, "")
        """Done, of how many, of what."""
        self.others = 0
        """Texts of the running call that other ranks write."""

    def begin(self) -> None:
        self.interrupted.clear()
        self.now = (0, 0, "")

    @property
    def hooks(self) -> Hooks:
        """For what learns or scores."""
        return Hooks(progress=self._count_rows, should_stop=self.interrupted.is_set)

    def count_texts(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None:
        """For what writes; see `coloop.workers.rollout.Progress`."""
        del tokens_done
        self.now = (rows_done, rows_total + self.others, "rows")

    def _count_rows(self, done: int, total: int) -> None:
        self.now = (done, total, "rows")


class Generators:
    """Of one worker; its methods are those of `WorkerApi`."""

    def __init__(
        self,
        engines: Mapping[str, RolloutGenerator],
        homes: Mapping[str, Home],
        ranks: Ranks,
        progress: CallProgress,
    ) -> None:
        """
        Args:
            engines: by weights group; may still be empty.
            homes: by weights group, who holds its weights here; may still be empty.
        """
        self._engines = engines
        self._homes = homes
        self._ranks = ranks
        self._progress = progress
        self._places: tuple[int, ...] = ()
        """Of the requests that are written a moment at a time."""

    def generate(
        self, group: str, node: str, requests: Sequence[PromptRequest], sampling: Sampling
    ) -> list[Reply]:
        generator = self._ready(group)
        own = own_requests(requests, sampling.max_new_tokens, self._ranks)
        self._progress.others = _texts_of(requests) - _texts_of(own.values())
        written = generator.write(
            node,
            list(own.values()),
            sampling,
            self._progress.count_texts,
            self._progress.interrupted.is_set,
        )
        replies: list[Reply] = [[] for _ in requests]
        for index, reply in zip(own, written, strict=True):
            replies[index] = reply
        return replies

    def write(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        said: Sequence[Observation],
        poll: Callable[[], Poll],
    ) -> Finished:
        """
        Args:
            poll: how far this worker is.
        """
        generator = self._ready(group)
        if requests:
            own = own_requests(requests, sampling.max_new_tokens, self._ranks, is_whole=True)
            self._progress.others = _texts_of(requests) - _texts_of(own.values())
            self._places, begun = tuple(own), list(own.values())
        else:
            begun = []
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
            self._progress.count_texts,
            self._progress.interrupted.is_set,
        )
        return Finished(
            replies=tuple((self._places[index], reply) for index, reply in replies),
            pauses=tuple(replace(pause, place=self._places[pause.place]) for pause in pauses),
            unfinished=unfinished,
            poll=poll(),
        )

    def step_ends(
        self, group: str, node: str, token_ids: Sequence[Ids], separator: str
    ) -> list[list[int]]:
        home = self._homes.get(group)
        encoder = self._engines[group].encoder(node) if home is None else home.weights.encoder(node)
        own = own_part([len(ids) for ids in token_ids], self._ranks)
        return [encoder.step_ends(ids, separator) for ids in token_ids[own]]

    def rest(self) -> None:
        """All sleep while others work here."""
        for generator in self._engines.values():
            generator.rest()

    def close(self) -> None:
        """Give back what they hold of this process."""
        for generator in self._engines.values():
            generator.close()

    def _ready(self, group: str) -> RolloutGenerator:
        """The generator of a group, which is built here where nothing was written yet."""
        generator = self._engines[group]
        if generator.version is None:
            weights = self._homes[group].weights
            generator.build(weights.whole(generator.dtype), weights.version)
        return generator


def _texts_of(requests: Iterable[PromptRequest]) -> int:
    return sum(len(request.seeds) for request in requests)


# Which part of a stage's texts a rank of a pool works on.
#
# Every rank is given the whole stage and finds its part by itself: texts in their order, cut
# where the expected lengths add up to equal parts. A prompt's completions stay together but where
# a cut falls between them, so a prompt is read by one rank; and a rank without a part does
# nothing.


def own_requests(
    requests: Sequence[PromptRequest],
    max_new_tokens: int,
    ranks: Ranks,
    *,
    is_whole: bool = False,
) -> dict[int, PromptRequest]:
    """What this rank writes: requests by their places, with the seeds of its own completions.

    Args:
        is_whole: all completions of a request belong to one rank.
    """
    every = list(enumerate(requests))
    if ranks.size == 1:
        return dict(every)
    if is_whole:
        lengths = [
            len(one.seeds) * (characters_of(one.prompt) + max_new_tokens) for one in requests
        ]
        return dict(every[own_part(lengths, ranks)])
    texts = [(place, seed) for place, one in enumerate(requests) for seed in one.seeds]
    lengths = [characters_of(one.prompt) + max_new_tokens for one in requests for _ in one.seeds]
    seeds: dict[int, list[int]] = {}
    for place, seed in texts[own_part(lengths, ranks)]:
        seeds.setdefault(place, []).append(seed)
    return {place: replace(requests[place], seeds=tuple(own)) for place, own in seeds.items()}


def own_part(lengths: Sequence[int], ranks: Ranks) -> slice:
    """This rank's texts among those of these expected lengths, one part beside the other.

    A text belongs to the part in which its middle lies.
    """
    total = sum(lengths)
    ends = accumulate(lengths)
    owners = [
        min((2 * end - length) * ranks.size // (2 * total), ranks.size - 1) if total else 0
        for length, end in zip(lengths, ends, strict=True)
    ]
    first = sum(owner < ranks.rank for owner in owners)
    return slice(first, first + owners.count(ranks.rank))


def characters_of(prompt: Prompt) -> int:
    """Characters of a prompt: hardly fewer than its tokens, and known without encoding it."""
    if isinstance(prompt, str):
        return len(prompt)
    return sum(len(str(message.get("content", ""))) for message in prompt)
