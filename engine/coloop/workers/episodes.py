"""One completion on its way: written in one request or, where others speak in between, in several.

    request ──drawn──► ended
       ▲         └───► pauses ──heard──┐    what a tool says: read, never trained
       └───────────────────────────────┘    continues: nothing is encoded or computed twice
       └───── several, each its own seed ───── branches

Draws belong to positions of the text, so what is drawn does not depend on how long a pause was, nor
on what else is written meanwhile. A completion that never pauses is one request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np

from coloop.data.arrays import Ids, Mask, fresh, mask_of
from coloop.data.tables import Tokens
from coloop.workers.encoder import Encoder
from coloop.workers.messages import Sampling, TurnEnd
from coloop.workers.rollout import Generation, GenerationRequest
from coloop.workers.rollout.protocol import Reason

ENDS: Final[Mapping[Reason, TurnEnd]] = {"stop": "call", "eos": "end", "length": "length"}
"""With what a turn ends, by what ended a request."""


@dataclass(slots=True, kw_only=True)
class Episode:
    """One completion in progress, generated in one or several requests."""

    id: str
    """Name of the row, for messages."""
    prompt_ids: list[int]
    shared_ids: Ids
    """The same, one array for all completions of the prompt."""
    seed: int
    sampling: Sampling
    script: tuple[int, ...] = ()
    """Tokens that it says first, whatever would be drawn."""
    ticket: int | None = None
    """Of the request that the engine ended last; what it computed for it is kept."""
    begun: int = 0
    """Tokens of it that were there before it was asked for."""
    _ids: list[int] = field(default_factory=list)
    _heard: list[slice] = field(default_factory=list)
    """Parts of it that others have said."""
    _log_probs: list[float] = field(default_factory=list)
    _drawn: int = 0
    _turn: int = 0
    """Where the turn began, in the completion."""
    _versions: list[tuple[int, int]] = field(default_factory=list)
    """(token, version): from this token on this version drew."""
    _finished: bool = False
    _reason: Reason = "aborted"
    """What ended the last request."""

    @classmethod
    def behind(cls, token_ids: Sequence[int], **fields: Any) -> Self:
        """A completion that goes on with tokens that are there; none: it begins behind its
        prompt."""
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
        """What is to be written next.

        Args:
            sibling: the first request for another completion of the prompt, of whose like this one
                is.
        """
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
        self.ticket = drawn.ticket
        assert drawn.reason is not None
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
