"""What one node writes, on its way through an engine: prompts in, texts out while others go on."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np

from coloop.data.arrays import Ids, Mask, fresh, ids_of, mask_of
from coloop.data.tables import Tokens
from coloop.workers.encoder import Encoder
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
from coloop.workers.rollout import Generation, GenerationRequest, RolloutEngine
from coloop.workers.rollout.generate import Batch, IsEnough, Post, Progress, ShouldStop
from coloop.workers.rollout.protocol import Reason

# One completion on its way; what is drawn does not depend on how long a pause was.
#     request ──drawn──► ended
#        ▲         └───► pauses ──heard──┐    what a tool says: read, never trained
#        └───────────────────────────────┘    continues: nothing is encoded or computed again
#        └───── several, each its own seed ───── branches

ENDS: Final[Mapping[Reason, TurnEnd]] = {"stop": "call", "eos": "end", "length": "length"}
"""With what a turn ends, by what ended a request."""


@dataclass(slots=True, kw_only=True)
class Episode:
    """One completion in progress, generated in one or several requests."""

    id: str  # name of the row, for messages
    prompt_ids: list[int]
    shared_ids: Ids  # the same, one array for all completions of the prompt
    seed: int
    sampling: Sampling
    script: tuple[int, ...] = ()  # tokens that it says first, whatever would be drawn
    ticket: int | None = None
    """Of the request that the engine ended last; what it computed for it is kept."""
    begun: int = 0  # tokens of it that were there before it was asked for
    _ids: list[int] = field(default_factory=list)
    _heard: list[slice] = field(default_factory=list)  # parts of it that others have said
    _log_probs: list[float] = field(default_factory=list)
    _drawn: int = 0
    _turn: int = 0  # where the turn began, in the completion
    _versions: list[tuple[int, int]] = field(default_factory=list)
    """(token, version): from this token on this version drew."""
    _finished: bool = False
    _reason: Reason = "aborted"  # what ended the last request

    @classmethod
    def behind(cls, token_ids: Sequence[int], **fields: Any) -> Self:
        """A completion that continues given tokens; none: it begins behind its prompt."""
        count = len(token_ids)
        return cls(
            begun=count,
            _ids=[*token_ids],
            _log_probs=[0.0] * count,
            _drawn=count,
            _turn=count,
            **fields,
        )

    @property
    def turn(self) -> int:
        """How often it was spoken to."""
        return len(self._heard)

    @property
    def left(self) -> int:
        """Tokens that it may still draw."""
        return self.sampling.max_new_tokens - self._drawn

    @property
    def left_in_turn(self) -> int:
        """Tokens that it may still draw before it is spoken to."""
        most = self.sampling.turn_tokens
        return self.left if most is None else min(self.left, most - len(self._ids) + self._turn)

    def length_with(self, heard: int) -> int:
        """Tokens of the whole text, where so many are heard and all that is left is drawn."""
        return len(self.prompt_ids) + len(self._ids) + heard + self.left

    def request(self, sibling: GenerationRequest | None = None) -> GenerationRequest:
        """What is to be written next; `sibling`: the first request for the same prompt."""
        if sibling is not None:
            return sibling.with_seed(self.seed, self.script[self._drawn :])
        sampling, goes_on = self.sampling, self.ticket is not None
        is_begun = goes_on or self.begun > 0
        return GenerationRequest(
            id=self.id,
            prompt_ids=[*self.prompt_ids, *self._ids] if is_begun else self.prompt_ids,
            seed=self.seed,
            max_new_tokens=self.left_in_turn,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            stop=(*sampling.stop, *sampling.pauses),
            greedy=sampling.temperature == 0,
            seed_from=len(self.prompt_ids) + self.begun if goes_on else None,
            continues=self.ticket,
            keep=sampling.has_turns,
            on_load=sampling.on_sync,
            script=self.script[self._drawn :],
        )

    def wrote(self, drawn: Generation) -> None:
        """The engine has ended the request."""
        first = len(self._ids)
        self._ids += drawn.token_ids
        self._log_probs += drawn.log_probs
        self._drawn += len(drawn.token_ids)
        for token, version in drawn.versions:
            if not self._versions or self._versions[-1][1] != version:
                self._versions.append((first + token, version))
        assert drawn.reason is not None, "it has ended"
        self.ticket = drawn.ticket
        self._finished, self._reason = drawn.finished, drawn.reason

    def turn_text(self, encoder: Encoder) -> str:
        """What was drawn in this turn."""
        return encoder.text(self._ids[self._turn :])

    def paused_at(self, encoder: Encoder) -> TurnEnd | None:
        """With what the turn ends, where somebody is to speak now."""
        sampling = self.sampling
        if not sampling.has_turns or (self._reason == "length" and not self.left):
            return None
        end = ENDS.get(self._reason)
        if end == "call" and any(stop in self.turn_text(encoder) for stop in sampling.stop):
            end = "stop"
        return end if end == "call" or end in sampling.turn_ends else None

    def heard(self, token_ids: list[int]) -> None:
        """Somebody else has spoken: a turn is over."""
        self._heard.append(slice(len(self._ids), len(self._ids) + len(token_ids)))
        self._ids += token_ids
        self._log_probs += [0.0] * len(token_ids)
        self._turn = len(self._ids)

    @property
    def token_ids(self) -> Sequence[int]:
        """Of the completion as it is now."""
        return self._ids

    def measured(self, log_probs: Sequence[float]) -> None:
        """How likely its tokens are, read once more; L."""
        self._log_probs = list(log_probs)
        for foreign in (slice(0, self.begun), *self._heard):
            self._log_probs[foreign] = [0.0] * (foreign.stop - foreign.start)

    def branched(self, seed: int) -> "Episode":
        """A text that begins with all of this one and goes on with draws of its own."""
        return replace(
            self,
            seed=seed,
            _ids=list(self._ids),
            _heard=list(self._heard),
            _log_probs=list(self._log_probs),
            _versions=list(self._versions),
        )

    def cut(self) -> None:
        """There is no room for more."""
        self._finished = False

    def tokens(self, encoder: Encoder, node: str) -> Tokens:
        """The completion as it is now."""
        is_trained = _all_own(len(self._ids))
        untrained = [
            slice(self.begun),
            *self._heard,
            *encoder.tagged(self._ids, self.sampling.mask),
        ]
        if self.begun or len(untrained) > 1:
            is_trained = is_trained.copy()
            for part in untrained:
                is_trained[part] = False
        return Tokens.of_all(
            prompt_ids=self.shared_ids,
            token_ids=fresh(self._ids, np.int32),
            loss_mask=mask_of(is_trained),
            log_probs=fresh(self._log_probs, np.float32),
            temperature=self.sampling.temperature or 1.0,
            writer=node,
            tokenizer=encoder.mark,
            text=encoder.text(self._ids),
            finished=self._finished,
            version=self._versions[0][1],
            switches=tuple(self._versions[1:]),
            heard=sum(part.stop - part.start for part in self._heard),
        )


@lru_cache(maxsize=64)
def _all_own(tokens: int) -> Mask:
    """The mask of a text in which nobody else has spoken; texts of one length share it."""
    return mask_of(np.ones(tokens, dtype=np.bool_))


SLICE_SECONDS = 0.25  # for so long an engine writes on before it is asked again
SOON_SECONDS = 0.05  # for so long where something has finished meanwhile


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
        """`post`: others write with the engine too. `is_exact`: log-probs around pauses are those
        of texts read alone; who is written beside whom, and so rounding, depends on pauses."""
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
        self._drawing: dict[int, tuple[Name, Episode]] = {}  # by the number in the batch
        self._pausing: dict[Name, Episode] = {}  # texts that wait until somebody has spoken
        self._shared: Counter[int] = Counter()
        """By ticket, how many more texts go on behind a kept one."""
        self._pauses: list[Pause] = []  # those that were not told yet
        self._ready: list[tuple[int, Reply]] = []  # replies that are whole and were not given yet

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
        """Continue paused texts behind what was said to them, or cut them where room is short."""
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
        """Continue a text or its branches; its cache is kept until the last of them goes on."""
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
        self, progress: Progress, should_stop: ShouldStop, is_enough: IsEnough | None = None
    ) -> tuple[list[tuple[int, Reply]], list[Pause]]:
        """Write until all is done or time is up; complete replies by request number, and pauses."""
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
        scripts = [
            () if text is None else tuple(self._encoder.target(text)) for text in request.scripts
        ] or [()] * len(request.seeds)
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
        begun = request.begun
        if begun is None:
            return self._encoder.prompt(request.prompt, request.tools)
        self._encoder.check_ids(request.id, begun.writer, begun.tokenizer)
        ids: list[int] = begun.prompt_ids.tolist()
        return ids

    def _send(
        self, name: Name, episode: Episode, sibling: GenerationRequest | None = None
    ) -> GenerationRequest:
        request = episode.request(sibling)
        self._drawing[self._batch.submit(request)] = (name, episode)
        return request

    def _ends(self, name: Name, episode: Episode) -> None:
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
        if ticket is not None and self._shared[ticket]:
            self._shared[ticket] -= 1
        else:
            self._batch.release(ticket)
