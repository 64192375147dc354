"""The rollout generators of a worker: which of them writes, which part of the texts is this rank's,
and from which weights one is built when it writes first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from coloop.data.arrays import Ids
from coloop.workers.beginnings import Home
from coloop.workers.call_progress import CallProgress
from coloop.workers.messages import Finished, Observation, Poll, PromptRequest, Reply, Sampling
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.shares import own_part, own_requests
from coloop.workers.training import Ranks


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
    """Texts that requests ask for."""
    return sum(len(request.seeds) for request in requests)
