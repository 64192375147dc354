"""What one node writes, on its way through an engine: prompts in, texts out while others go on."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from coloop.arrays import ids_of
from coloop.hosts.encoder import Encoder
from coloop.hosts.episodes import Episode
from coloop.hosts.messages import Pause, PromptRequest, Reply, Said, Sampling, too_long
from coloop.rollout import Batch, IsEnough, Progress, RolloutEngine, ShouldStop
from coloop.tables import Tokens

SLICE_SECONDS = 0.25
"""For so long an engine writes on before it is asked again."""
SOON_SECONDS = 0.05
"""For so long where something has finished meanwhile."""


def for_a_moment() -> IsEnough:
    """Ends a call after a slice of time."""
    began = time.monotonic()

    def is_enough(finished: int) -> bool:
        return time.monotonic() - began >= (SOON_SECONDS if finished else SLICE_SECONDS)

    return is_enough


@dataclass(slots=True)
class _Asked:
    """A request on its way."""

    wanted: int
    texts: dict[int, Tokens] = field(default_factory=dict)
    """Those that are finished, by the place of their seed."""


class Writing:
    """Requests of one node, each a prompt with the seeds of its completions."""

    def __init__(
        self, engine: RolloutEngine, encoder: Encoder, node: str, sampling: Sampling
    ) -> None:
        self._batch = Batch(engine)
        self._limit = engine.max_length
        self._encoder = encoder
        self._node = node
        self._sampling = sampling
        self._taken = 0
        self._asked: dict[int, _Asked] = {}
        """By the place of the request among all that were taken."""
        self._drawing: dict[int, tuple[int, int, Episode]] = {}
        """(place of the request, place of the seed, text) by its number in the batch."""
        self._pausing: dict[tuple[int, int], Episode] = {}
        """By these places, texts that wait until somebody has spoken."""
        self._ready: list[tuple[int, Reply]] = []
        """Replies that are whole and were not given yet."""

    @property
    def unfinished(self) -> int:
        """Texts that are still to be written."""
        return self._batch.unfinished + len(self._pausing)

    def take(self, requests: Sequence[PromptRequest]) -> None:
        """Requests join those on their way; where one is refused, all are given up."""
        try:
            for request in requests:
                self._take(request)
        except BaseException:
            self.give_up()
            raise

    def hear(self, said: Sequence[Said]) -> None:
        """Texts that pause go on behind what was said to them; where there is no room for more, a
        text is cut."""
        for one in said:
            episode = self._pausing.pop((one.place, one.k))
            heard = [] if one.text is None else self._encoder.said(one.text)
            problem = too_long(episode.length_with(len(heard)), self._limit)
            if one.text is None:
                self._ends(one.place, one.k, episode)
            elif problem is not None or not episode.left:
                episode.cut()
                self._ends(one.place, one.k, episode)
            else:
                episode.heard(heard)
                self._send(one.place, one.k, episode)

    def write(
        self,
        progress: Progress,
        should_stop: ShouldStop,
        is_enough: IsEnough | None = None,
    ) -> tuple[list[tuple[int, Reply]], list[Pause]]:
        """Writes until nothing is left to be drawn, or it is enough for now; the replies that
        became whole meanwhile, by the places of their requests, and the texts that pause."""
        pauses: list[Pause] = []
        for number, drawn in self._batch.write(progress, should_stop, is_enough):
            place, k, episode = self._drawing.pop(number)
            self._batch.release(episode.ticket)
            episode.wrote(drawn)
            text = episode.paused_at(self._encoder)
            if text is None:
                self._ends(place, k, episode)
            else:
                self._pausing[place, k] = episode
                pauses.append(Pause(place=place, k=k, text=text))
        found, self._ready = self._ready, []
        return sorted(found, key=lambda one: one[0]), pauses

    def give_up(self) -> None:
        """Forgets what is unfinished."""
        self._pausing.clear()
        self._batch.give_up()

    def _take(self, request: PromptRequest) -> None:
        prompt, sampling, place = self._encoder.prompt(request.prompt), self._sampling, self._taken
        self._taken += 1
        problem = too_long(len(prompt) + sampling.max_new_tokens, self._limit)
        if problem is not None or not request.seeds:
            self._ready.append((place, [] if problem is None else problem))
            return
        self._asked[place] = _Asked(len(request.seeds))
        shared = ids_of(prompt)
        for k, seed in enumerate(request.seeds):
            episode = Episode(
                id=request.id,
                prompt_ids=prompt,
                shared_ids=shared,
                seed=seed,
                sampling=sampling,
            )
            self._send(place, k, episode)

    def _send(self, place: int, k: int, episode: Episode) -> None:
        """The engine writes on."""
        self._drawing[self._batch.submit(episode.request())] = (place, k, episode)

    def _ends(self, place: int, k: int, episode: Episode) -> None:
        """A text is finished; so is its request, if it was the last."""
        self._batch.release(episode.ticket)
        asked = self._asked[place]
        asked.texts[k] = episode.tokens(self._encoder, self._node)
        if len(asked.texts) == asked.wanted:
            del self._asked[place]
            self._ready.append((place, [asked.texts[k] for k in range(asked.wanted)]))
