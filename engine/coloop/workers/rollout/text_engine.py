"""What every engine that computes by itself has in common: tickets, versions, kept texts, and what
becomes of unfinished ones when new weights come.

Who computes (`Writer`) takes texts in and gives ended ones out; it knows nothing of tickets given
back, versions or loads.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Protocol

from torch import Tensor

from coloop.errors import RequestRefused, WeightsNotUpdated
from coloop.workers.rollout.kept import KeptTexts
from coloop.workers.rollout.protocol import Generation, GenerationRequest
from coloop.workers.rollout.texts import are_siblings, takes_likeliest


class Writer(Protocol):
    """Texts on their way."""

    def __len__(self) -> int:
        """How many they are."""
        ...

    def texts(self) -> list[Generation]: ...

    def written(self) -> int:
        """Tokens that they have so far."""
        ...

    def add(self, text: Generation) -> None: ...

    def step(self) -> list[Generation]:
        """About one token more for each; those that ended."""
        ...

    def take_out(self, tickets: Collection[int]) -> tuple[list[Generation], list[Generation]]:
        """Takes texts out as they are: these, and what else had ended."""
        ...

    def clear(self) -> None:
        """Forgets every text, whatever has happened."""
        ...


class TextEngine(ABC):
    """The part of `RolloutEngine` that is the same whoever computes."""

    def __init__(
        self,
        writer: Writer,
        kept: KeptTexts,
        *,
        version: int,
        max_length: int | None,
        vocabulary: int,
    ) -> None:
        self._writer = writer
        self._kept = kept
        self._max_length = max_length
        self._vocabulary = vocabulary
        self._version, self._is_whole = version, True
        self._ready: list[Generation] = []
        self._tickets = 0
        self._served: GenerationRequest | None = None
        """The last one that was found to be in order."""

    @property
    def version(self) -> int:
        """Version of the weights held."""
        self._check_whole()
        return self._version

    @property
    def max_length(self) -> int | None:
        """Most tokens of a prompt and what may be written to it; None: no limit."""
        return self._max_length

    # Writing

    @property
    def unfinished(self) -> int:
        """Requests submitted and not given back yet."""
        return len(self._writer) + len(self._ready)

    def submit(self, request: GenerationRequest) -> int:
        """Takes a request and gives its ticket."""
        self._check_whole()
        if self._served is None or not are_siblings(request, self._served):
            check_request(request, self._max_length, self._vocabulary, self._kept)
            self._served = request if request.continues is None else None
        self._tickets += 1
        self._writer.add(Generation(self._tickets, request))
        return self._tickets

    def step(self) -> list[Generation]:
        """Writes on; the texts that ended since the last call."""
        self._check_whole()
        self._advance()
        ready, self._ready = self._ready, []
        return ready

    def written(self) -> int:
        """Tokens that the unfinished requests have so far."""
        return self._writer.written() + sum(len(row.token_ids) for row in self._ready)

    def abort(self, tickets: Iterable[int]) -> list[Generation]:
        """Takes requests out as they are."""
        order = {ticket: place for place, ticket in enumerate(tickets)}
        found = [row for row in self._ready if row.ticket in order]
        self._ready = [row for row in self._ready if row.ticket not in order]
        found += [self._generation(text) for text in self._take_out(order)]
        self.release(row.ticket for row in found)
        return sorted(found, key=lambda row: order[row.ticket])

    def release(self, tickets: Iterable[int]) -> None:
        """Forgets kept texts."""
        self._kept.release(tickets)

    def _advance(self) -> None:
        """One step; where it fails, nothing is left to go on with."""
        try:
            self._ready += [self._generation(text) for text in self._writer.step()]
        except BaseException:
            self._forget_all()
            raise

    def _take_out(self, tickets: Collection[int]) -> list[Generation]:
        """Texts as they are; what else had ended is ready."""
        taken, others = self._writer.take_out(tickets)
        self._ready += [self._generation(text) for text in others]
        return taken

    def _forget_all(self) -> None:
        self._writer.clear()
        self._ready = []

    def _generation(self, text: Generation) -> Generation:
        """A text that has ended, as it is given back."""
        assert text.reason is not None, "it has ended"
        text.versions = self._versions_of(text)
        if not is_cut(text.request):
            text.sampled_log_probs = None
        return text

    def _versions_of(self, text: Generation) -> tuple[tuple[int, int], ...]:
        """(token, version) from which on each version wrote its tokens."""
        if text.before and len(text.token_ids) == text.before:
            return text.versions
        return (*text.versions, (text.before, self._version))

    # Weights

    @abstractmethod
    def _take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Takes all weights; nothing is unfinished meanwhile."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Takes all weights; where that fails half-way, the engine refuses to work until a load
        succeeds."""
        paused = self._settle()
        self._is_whole = False
        self._kept.forget_lines()
        try:
            self._take_weights(weights)
        except BaseException:
            self._forget_all()
            raise
        self._version, self._is_whole = version, True
        for text in paused:
            self._writer.add(text)

    def _settle(self) -> list[Generation]:
        """Ends what is not to go on with other weights; the texts that are."""
        texts = self._writer.texts
        drops = {text.ticket for text in texts() if text.request.on_load == "drop"}
        self._ready += [self._generation(text) for text in self._take_out(drops)]
        while any(text.request.on_load == "finish" for text in texts()):
            self._advance()
        paused = []
        for text in self._take_out({text.ticket for text in texts()}):
            if text.reason == "aborted":
                text.versions = self._versions_of(text) if text.token_ids else ()
                text.before, text.reason = len(text.token_ids), None
                paused.append(text)
            else:
                self._ready.append(self._generation(text))
        return sorted(paused, key=lambda text: text.ticket)

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise WeightsNotUpdated(
                "the last update of the rollout engine's weights failed midway; load them again"
            )


def is_cut(request: GenerationRequest) -> bool:
    """Whether its tokens are drawn from a part of the distribution."""
    return not takes_likeliest(request) and (request.top_p < 1 or request.top_k is not None)


def check_request(
    request: GenerationRequest, max_length: int | None, vocabulary: int, kept: KeptTexts
) -> None:
    """Raises where the request cannot be served; the message names its row."""
    problem = _problem(request, max_length, vocabulary) or kept.problem(request)
    if problem:
        raise RequestRefused(f"row {request.id}: {problem}")


def _problem(request: GenerationRequest, max_length: int | None, vocabulary: int) -> str | None:
    length = len(request.prompt_ids)
    if not length:
        return "its prompt has no tokens; start it with the tokenizer's BOS token"
    if request.max_new_tokens < 1:
        return f"max_new_tokens is {request.max_new_tokens}, at least 1 is expected"
    if max_length is not None and length + request.max_new_tokens > max_length:
        return (
            f"its prompt has {length} tokens and {request.max_new_tokens} may be generated, "
            f"{length + request.max_new_tokens} in total; the limit is {max_length}. Shorten the "
            "prompt or lower rollout.max_new_tokens"
        )
    if not math.isfinite(request.temperature) or request.temperature < 0:
        return f"temperature is {request.temperature}, 0 or more is expected"
    if not 0 < request.top_p <= 1:
        return f"top_p is {request.top_p}, a number above 0 and up to 1 is expected"
    if request.top_k is not None and request.top_k < 1:
        return f"top_k is {request.top_k}, at least 1 is expected"
    if any(not text for text in request.stop):
        return "an empty stop text would end every completion immediately"
    if not 0 <= min(request.prompt_ids) <= max(request.prompt_ids) < vocabulary:
        return f"its prompt has token ids outside of 0 to {vocabulary - 1}"
    for name, place in (("seed_from", request.seed_from), ("stop_from", request.stop_from)):
        if place is not None and not 0 <= place <= length:
            return f"{name} is {place}, a position in the {length} tokens of its prompt is expected"
    return None
