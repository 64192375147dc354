"""What one node writes, on its way through an engine: prompts in, texts out while others go on."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Final

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
from coloop.workers.rollout import Generation, RolloutEngine
from coloop.workers.rollout.generate import Batch, IsEnough, Post, Progress, ShouldStop
from coloop.workers.rollout.protocol import Reason

# One completion on its way, a `Generation` that grows by one request at a time; what is drawn does
# not depend on how long a pause was.
#     request ──drawn──► ended
#        ▲         └───► pauses ──heard──┐    what a tool says: read, never trained
#        └───────────────────────────────┘    continues: nothing is encoded or computed again
#        └───── several, each its own seed ───── branches

ENDS: Final[Mapping[Reason | None, TurnEnd]] = {"stop": "call", "eos": "end", "length": "length"}
"""With what a turn ends, by what ended a request."""


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
        self._shared_ids: dict[int, Ids] = {}
        """The prompt of each request, one array for all its texts."""
        self._drawing: dict[int, tuple[Name, Generation]] = {}  # by the number in the batch
        self._pausing: dict[Name, Generation] = {}  # texts that wait until somebody has spoken
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

    def hear(self, observations: Sequence[Observation]) -> None:
        """Continue paused texts behind what was said to them, or cut them where room is short."""
        for observation in observations:
            name = observation.place, observation.k, observation.branch
            text, words = self._pausing.pop(name), observation.text
            if words is None:
                self._ends(name, text)
                continue
            heard = self._encoder.said(words) if isinstance(words, str) and words else []
            heard = heard[: self._sampling.heard_tokens]
            length = len(text.prompt_ids) + len(text.token_ids) + len(heard) + self._left(text)
            has_room = too_long(length, self._limit) is None
            if words is Silence.CUT or not has_room or not self._left(text):
                self._cut(name, text)
                continue
            if isinstance(words, str):
                first = len(text.token_ids)
                text.token_ids += heard
                text.log_probs += [0.0] * len(heard)
                text.heard = (*text.heard, slice(first, len(text.token_ids)))
            if self._left_in_turn(text):
                self._go_on(name, text, observation.seeds)
            elif "length" in self._sampling.turn_ends:
                self._pauses.append(self._paused(name, text, "length"))
            else:
                self._cut(name, text)

    def _cut(self, name: Name, text: Generation) -> None:
        text.reason = "aborted"
        self._ends(name, text)

    def _left(self, text: Generation) -> int:
        """Tokens that it may still draw."""
        return self._sampling.max_new_tokens - drawn_tokens(text)

    def _left_in_turn(self, text: Generation) -> int:
        """Tokens that it may still draw before it is spoken to."""
        left, most = self._left(text), self._sampling.turn_tokens
        return left if most is None else min(left, most - len(text.token_ids) + turn_start(text))

    def _go_on(self, name: Name, text: Generation, seeds: Sequence[int]) -> None:
        """Continue a text or its branches; its cache is kept until the last of them goes on."""
        if not seeds:
            self._send(name, text)
            return
        index, k, branch = name
        self._wanted[index] += len(seeds) - 1
        assert text.ticket, "a text that pauses is kept"
        self._shared[text.ticket] += len(seeds) - 1
        for number, seed in enumerate(seeds):
            ids, log_probs = [*text.token_ids], [*text.log_probs]
            other = replace(text, seed=seed, token_ids=ids, log_probs=log_probs)
            self._send((index, k, (*branch, number)), other)

    def write(
        self, progress: Progress, should_stop: ShouldStop, is_enough: IsEnough | None = None
    ) -> tuple[list[tuple[int, Reply]], list[Pause]]:
        """Write until all is done or time is up; complete replies by request number, and pauses."""
        for number, drawn in self._batch.write(progress, should_stop, is_enough):
            name, text = self._drawing.pop(number)
            self._let_go(text.ticket)
            add_request(text, drawn)
            end = self._turn_end(text)
            if end is None:
                self._ends(name, text)
            else:
                self._pauses.append(self._paused(name, text, end))
        replies, self._ready = self._ready, []
        pauses, self._pauses = self._pauses, []
        return sorted(replies, key=itemgetter(0)), pauses

    def _turn_end(self, text: Generation) -> TurnEnd | None:
        """With what the turn ends, where somebody is to speak now."""
        sampling = self._sampling
        if not sampling.has_turns or (text.reason == "length" and not self._left(text)):
            return None
        end = ENDS.get(text.reason)
        if end == "call" and any(stop in self._turn_text(text) for stop in sampling.stop):
            end = "stop"
        return end if end == "call" or end in sampling.turn_ends else None

    def _turn_text(self, text: Generation) -> str:
        """What was drawn in this turn."""
        return self._encoder.text(text.token_ids[turn_start(text) :])

    def _paused(self, name: Name, text: Generation, end: TurnEnd) -> Pause:
        self._pausing[name] = text
        index, k, branch = name
        words, turn = self._turn_text(text), len(text.heard)
        return Pause(place=index, k=k, branch=branch, text=words, end=end, turn=turn)

    def give_up(self) -> None:
        self._pausing.clear()
        self._pauses.clear()
        self._shared.clear()
        self._batch.give_up()

    def _take(self, request: PromptRequest) -> None:
        sampling, index = self._sampling, self._taken
        prompt = self._prompt(request)
        self._taken += 1
        problem = too_long(len(prompt) + sampling.max_new_tokens, self._limit)
        if problem is not None or not request.seeds:
            self._ready.append((index, [] if problem is None else problem))
            return
        begun = request.begun
        self._wanted[index], self._finished[index] = len(request.seeds), {}
        self._shared_ids[index] = ids_of(prompt) if begun is None else begun.prompt_ids
        token_ids = [] if begun is None else begun.token_ids.tolist()
        scripts = [
            () if text is None else tuple(self._encoder.target(text)) for text in request.scripts
        ] or [()] * len(request.seeds)
        first = Generation(
            id=request.id,
            prompt_ids=prompt,
            seed=request.seeds[0],
            max_new_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            stop=(*sampling.stop, *sampling.pauses),
            greedy=sampling.temperature == 0,
            keep=sampling.has_turns,
            on_load=sampling.on_sync,
            begun=len(token_ids),
        )
        sibling = None
        for k, (seed, script) in enumerate(zip(request.seeds, scripts, strict=True)):
            text = first.unwritten(
                seed=seed,
                script=script,
                token_ids=[*token_ids],
                log_probs=[0.0] * len(token_ids),
            )
            sibling = self._send((index, k, ()), text, sibling)

    def _prompt(self, request: PromptRequest) -> list[int]:
        begun = request.begun
        if begun is None:
            return self._encoder.prompt(request.prompt, request.tools)
        self._encoder.check_ids(request.id, begun.writer, begun.tokenizer)
        ids: list[int] = begun.prompt_ids.tolist()
        return ids

    def _send(self, name: Name, text: Generation, sibling: Generation | None = None) -> Generation:
        """Ask for what is to be written next; `sibling`: the first request for the same prompt."""
        script = text.script[drawn_tokens(text) :]
        if sibling is not None:
            request = sibling.unwritten(seed=text.seed, script=script)
        else:
            start = len(text.prompt_ids)
            request = text.unwritten(
                prompt_ids=[*text.prompt_ids, *text.token_ids]
                if text.token_ids
                else text.prompt_ids,
                max_new_tokens=self._left_in_turn(text),
                seed_from=start + text.begun if text.ticket else None,
                continues=text.ticket or None,
                script=script,
            )
        self._drawing[self._batch.submit(request)] = (name, text)
        return request

    def _ends(self, name: Name, text: Generation) -> None:
        self._let_go(text.ticket)
        if self._is_exact:
            self._measure(text)
        index, texts = name[0], self._finished[name[0]]
        texts[name] = self._tokens(text, self._shared_ids[index])
        if len(texts) == self._wanted[index]:
            del self._wanted[index], self._finished[index], self._shared_ids[index]
            self._ready.append((index, [texts[each] for each in sorted(texts)]))

    def _measure(self, text: Generation) -> None:
        """How likely its tokens are, read once more."""
        ids = [*text.prompt_ids, *text.token_ids]
        [log_probs] = self._engine.score([ids], self._sampling.temperature or 1.0)
        text.log_probs = log_probs[len(text.prompt_ids) :]
        for foreign in (slice(0, text.begun), *text.heard):
            text.log_probs[foreign] = [0.0] * (foreign.stop - foreign.start)

    def _tokens(self, text: Generation, prompt_ids: Ids) -> Tokens:
        is_trained = _all_own(len(text.token_ids))
        tagged = self._encoder.tagged(text.token_ids, self._sampling.mask)
        untrained = [slice(text.begun), *text.heard, *tagged]
        if text.begun or len(untrained) > 1:
            is_trained = is_trained.copy()
            for part in untrained:
                is_trained[part] = False
        return Tokens.of_all(
            prompt_ids=prompt_ids,
            token_ids=fresh(text.token_ids, np.int32),
            loss_mask=mask_of(is_trained),
            log_probs=fresh(text.log_probs, np.float32),
            temperature=self._sampling.temperature or 1.0,
            writer=self._node,
            tokenizer=self._encoder.mark,
            text=self._encoder.text(text.token_ids),
            finished=text.finished,
            version=text.versions[0][1],
            switches=text.versions[1:],
            heard=heard_tokens(text),
        )

    def _let_go(self, ticket: int) -> None:
        if ticket and self._shared[ticket]:
            self._shared[ticket] -= 1
        else:
            self._batch.release(ticket)


def heard_tokens(text: Generation) -> int:
    """Tokens that others have said."""
    return sum(part.stop - part.start for part in text.heard)


def drawn_tokens(text: Generation) -> int:
    """Tokens that the policy has drawn, those that were there before included."""
    return len(text.token_ids) - heard_tokens(text)


def turn_start(text: Generation) -> int:
    """Where the turn began, in the completion."""
    return text.heard[-1].stop if text.heard else text.begun


def add_request(text: Generation, drawn: Generation) -> None:
    """What the engine has written in one request goes to the whole text."""
    first = len(text.token_ids)
    text.token_ids += drawn.token_ids
    text.log_probs += drawn.log_probs
    for token, version in drawn.versions:
        if not text.versions or text.versions[-1][1] != version:
            text.versions = (*text.versions, (first + token, version))
    assert drawn.reason is not None, "it has ended"
    text.ticket, text.reason = drawn.ticket, drawn.reason
