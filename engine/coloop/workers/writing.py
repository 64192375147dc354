"""What one node writes, on its way through an engine: prompts in, texts out while others go on."""

import time
from collections import Counter
from collections.abc import Sequence

from coloop.data.arrays import ids_of
from coloop.data.tables import Tokens
from coloop.workers.encoder import Encoder
from coloop.workers.episodes import Episode
from coloop.workers.messages import (
    Observation,
    Pause,
    PromptRequest,
    Reply,
    Sampling,
    Silence,
    TurnEnd,
    too_long,
)
from coloop.workers.rollout import (
    Batch,
    GenerationRequest,
    IsEnough,
    Post,
    Progress,
    RolloutEngine,
    ShouldStop,
)

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


Name = tuple[int, int, tuple[int, ...]]
"""Of a text: places of its request and of its seed, and its number wherever it branched."""


class Writing:
    """Requests of one node, each a prompt with the seeds of its completions."""

    def __init__(
        self,
        engine: RolloutEngine,
        encoder: Encoder,
        node: str,
        sampling: Sampling,
        *,
        post: Post | None = None,
        is_exact: bool = False,
    ) -> None:
        """
        Args:
            post: where others write with the engine as well.
            is_exact: log-probs of texts that paused, or that were written while others paused, are
                those of the text read alone. Who is written beside whom depends on how long others
                spoke, and so does their rounding.
        """
        self._engine = engine
        self._is_exact = is_exact and (sampling.has_turns or sampling.is_beside)
        self._batch = Batch(engine, post)
        self._limit = engine.max_length
        self._encoder = encoder
        self._node = node
        self._sampling = sampling
        self._taken = 0
        self._wanted: dict[int, int] = {}
        """Texts of each request, by its place among all that were taken."""
        self._finished: dict[int, dict[Name, Tokens]] = {}
        """Those of each request that are finished."""
        self._drawing: dict[int, tuple[Name, Episode]] = {}
        """By the number in the batch."""
        self._pausing: dict[Name, Episode] = {}
        """Texts that wait until somebody has spoken."""
        self._shared: Counter[int] = Counter()
        """By ticket, how many more texts go on behind a kept one."""
        self._pauses: list[Pause] = []
        """Those that were not told yet."""
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

    def hear(self, said: Sequence[Observation]) -> None:
        """Texts that pause go on behind what was said to them, by themselves or as several; where
        there is no room for more, a text is cut."""
        for one in said:
            name = one.place, one.k, one.branch
            episode = self._pausing.pop(name)
            if one.text is None:
                self._ends(name, episode)
                continue
            heard = self._encoder.said(one.text) if isinstance(one.text, str) and one.text else []
            heard = heard[: self._sampling.heard_tokens]
            has_room = too_long(episode.length_with(len(heard)), self._limit) is None
            if one.text is Silence.CUT or not has_room or not episode.left:
                episode.cut()
                self._ends(name, episode)
                continue
            if isinstance(one.text, str):
                episode.heard(heard)
            if episode.left_in_turn:
                self._go_on(name, episode, one.seeds)
            elif "length" in self._sampling.turn_ends:
                self._pauses.append(self._paused(name, episode, "length"))
            else:
                episode.cut()
                self._ends(name, episode)

    def _go_on(self, name: Name, episode: Episode, seeds: Sequence[int]) -> None:
        """A text is written on, or what it branches into: what was computed of it is kept until the
        last of them has gone on."""
        if not seeds:
            self._send(name, episode)
            return
        place, k, branch = name
        self._wanted[place] += len(seeds) - 1
        assert episode.ticket is not None, "a text that pauses is kept"
        self._shared[episode.ticket] += len(seeds) - 1
        for number, seed in enumerate(seeds):
            self._send((place, k, (*branch, number)), episode.branched(seed))

    def write(
        self,
        progress: Progress,
        should_stop: ShouldStop,
        is_enough: IsEnough | None = None,
    ) -> tuple[list[tuple[int, Reply]], list[Pause]]:
        """Writes until nothing is left to be drawn, or it is enough for now; the replies that
        became whole meanwhile, by the places of their requests, and the texts that pause."""
        for number, drawn in self._batch.write(progress, should_stop, is_enough):
            name, episode = self._drawing.pop(number)
            self._let_go(episode.ticket)
            episode.wrote(drawn)
            end = episode.paused_at(self._encoder)
            if end is None:
                self._ends(name, episode)
            else:
                self._pauses.append(self._paused(name, episode, end))
        found, self._ready = self._ready, []
        pauses, self._pauses = self._pauses, []
        return sorted(found, key=lambda one: one[0]), pauses

    def _paused(self, name: Name, episode: Episode, end: TurnEnd) -> Pause:
        """A text that waits from now on."""
        self._pausing[name] = episode
        place, k, branch = name
        text = episode.turn_text(self._encoder)
        return Pause(place=place, k=k, branch=branch, text=text, end=end, turn=episode.turn)

    def give_up(self) -> None:
        """Forgets what is unfinished."""
        self._pausing.clear()
        self._pauses.clear()
        self._shared.clear()
        self._batch.give_up()

    def _take(self, request: PromptRequest) -> None:
        sampling, place = self._sampling, self._taken
        prompt = self._prompt(request)
        self._taken += 1
        problem = too_long(len(prompt) + sampling.max_new_tokens, self._limit)
        if problem is not None or not request.seeds:
            self._ready.append((place, [] if problem is None else problem))
            return
        self._wanted[place], self._finished[place] = len(request.seeds), {}
        first, begun = None, request.begun
        shared_ids = ids_of(prompt) if begun is None else begun.prompt_ids
        token_ids = [] if begun is None else begun.token_ids.tolist()
        scripts = [self._script(text) for text in request.scripts] or [()] * len(request.seeds)
        for k, (seed, script) in enumerate(zip(request.seeds, scripts, strict=True)):
            episode = Episode.behind(
                token_ids,
                prompt_ids=prompt,
                shared_ids=shared_ids,
                id=request.id,
                seed=seed,
                script=script,
                sampling=sampling,
            )
            first = self._send((place, k, ()), episode, first)

    def _prompt(self, request: PromptRequest) -> list[int]:
        """What completions stand behind."""
        begun = request.begun
        if begun is None:
            return self._encoder.prompt(request.prompt, request.tools)
        self._encoder.check_ids(request.id, begun.writer, begun.tokenizer)
        ids: list[int] = begun.prompt_ids.tolist()
        return ids

    def _script(self, text: str | None) -> tuple[int, ...]:
        """Tokens of what a completion is to say, its end included."""
        return () if text is None else tuple(self._encoder.target(text))

    def _send(
        self, name: Name, episode: Episode, sibling: GenerationRequest | None = None
    ) -> GenerationRequest:
        """The engine writes on; what it was asked for."""
        request = episode.request(sibling)
        self._drawing[self._batch.submit(request)] = (name, episode)
        return request

    def _ends(self, name: Name, episode: Episode) -> None:
        """A text is finished; so is its request, if it was the last."""
        self._let_go(episode.ticket)
        if self._is_exact:
            ids = [*episode.prompt_ids, *episode.token_ids]
            [log_probs] = self._engine.score([ids], self._sampling.temperature or 1.0)
            episode.measured(log_probs[len(episode.prompt_ids) :])
        place, texts = name[0], self._finished[name[0]]
        texts[name] = episode.tokens(self._encoder, self._node)
        if len(texts) == self._wanted[place]:
            del self._wanted[place], self._finished[place]
            self._ready.append((place, [texts[each] for each in sorted(texts)]))

    def _let_go(self, ticket: int | None) -> None:
        """A text no longer goes on behind a kept one."""
        if ticket is not None and self._shared[ticket]:
            self._shared[ticket] -= 1
        else:
            self._batch.release(ticket)
