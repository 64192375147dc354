"""The rollout engine: tickets, versions, kept texts, and what becomes of unfinished texts when new
weights come. An engine adds who computes (`Writer`), which takes texts in and gives ended ones
out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from coloop.errors import RequestRefused, WeightsNotUpdated
from coloop.workers.rollout.protocol import Generation
from coloop.workers.rollout.texts import KeptTexts, are_siblings, takes_likeliest


class Writer(Protocol):
    def __len__(self) -> int: ...

    def texts(self) -> list[Generation]: ...

    def written(self) -> int: ...

    def add(self, text: Generation) -> None: ...

    def step(self) -> list[Generation]:
        """About one token more for each; those that ended."""

    def take_out(self, tickets: Collection[int]) -> tuple[list[Generation], list[Generation]]:
        """Takes texts out as they are: these, and what else had ended."""

    def clear(self) -> None:
        """Forgets every text, whatever has happened."""


class RolloutEngine(ABC):
    """Writes completions and scores sequences with one set of weights."""

    def __init__(
        self,
        writer: Writer,
        kept: KeptTexts,
        *,
        version: int,
        dtype: torch.dtype,
        max_length: int | None,
        vocabulary: int,
    ) -> None:
        self._writer = writer
        self._kept = kept
        self.dtype = dtype
        self.max_length = max_length
        """Most tokens of a prompt and what may be written to it; None: no limit."""
        self._vocabulary = vocabulary
        self._version, self._is_whole = version, True
        self._ready: list[Generation] = []
        self._tickets = 0
        self._served: Generation | None = None  # the last request that was found to be valid

    @property
    def version(self) -> int:
        self._check_whole()
        return self._version

    # Writing

    @property
    def unfinished(self) -> int:
        return len(self._writer) + len(self._ready)

    def submit(self, request: Generation) -> int:
        """Takes a request and gives its ticket, which no other request of this engine gets. Raises
        `RequestRefused`, naming the row, for what cannot be served."""
        self._check_whole()
        if self._served is None or not are_siblings(request, self._served):
            problem = _problem(request, self.max_length, self._vocabulary)
            if problem := problem or self._kept.problem(request):
                raise RequestRefused(f"row {request.id}: {problem}")
            self._served = request if request.continues is None else None
        self._tickets += 1
        self._writer.add(request.unwritten(ticket=self._tickets))
        return self._tickets

    def step(self) -> list[Generation]:
        """Write about one token of each request; those that have ended since the last call."""
        self._check_whole()
        self._advance()
        ready, self._ready = self._ready, []
        return ready

    def written(self) -> int:
        """Tokens that the unfinished requests have so far, for progress."""
        return self._writer.written() + sum(len(row.token_ids) for row in self._ready)

    def abort(self, tickets: Iterable[int]) -> list[Generation]:
        """Take requests out as they are, in this order; kept are none of them."""
        order = {ticket: index for index, ticket in enumerate(tickets)}
        aborted = [row for row in self._ready if row.ticket in order]
        self._ready = [row for row in self._ready if row.ticket not in order]
        aborted += [self._generation(text) for text in self._take_out(order)]
        self.release(row.ticket for row in aborted)
        return sorted(aborted, key=lambda row: order[row.ticket])

    def release(self, tickets: Iterable[int]) -> None:
        """Forgets kept texts; other tickets are ignored."""
        self._kept.release(tickets)

    def _advance(self) -> None:
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
        if not is_cut(text):
            text.sampled_log_probs = None
        return text

    def _versions_of(self, text: Generation) -> tuple[tuple[int, int], ...]:
        """(token, version) from which on each version wrote its tokens."""
        if text.before and len(text.token_ids) == text.before:
            return text.versions
        return (*text.versions, (text.before, self._version))

    def agreed(self, flag: bool) -> bool:
        """Whether it is so in any of the processes that share this engine, which must all ask; for
        decisions by a clock or from outside, after which they go on with the same calls."""
        return flag

    # Scoring

    @abstractmethod
    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        """Log-prob of every token given those before it; the first of a sequence is 0."""

    # Weights

    @abstractmethod
    def _take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None: ...

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Takes all weights under the names of the Hugging Face model; a missing or unknown name is
        an error, and the engine refuses to work until a load succeeds.

        Unfinished requests are treated as their `on_load` says; what ends by it is given back by
        the next `step`. Kept texts stay kept, what was computed of them does not.
        """
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
        drops = {text.ticket for text in texts() if text.on_load == "drop"}
        self._ready += [self._generation(text) for text in self._take_out(drops)]
        while any(text.on_load == "finish" for text in texts()):
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

    def held_weights(self) -> Iterable[tuple[str, Tensor]]:
        """The weights held, by Hugging Face name; none where the engine cannot tell."""
        return ()

    def fingerprint(self) -> int | None:
        """`coloop.workers.fingerprint` of the weights held; None where the engine cannot tell."""
        return None

    # Memory

    @abstractmethod
    def sleep(self, *, with_weights: bool = True) -> None:
        """Frees the memory that it can do without until `wake`. Nothing may be unfinished; what was
        computed of kept texts is forgotten. Asleep it takes weights and is woken, and nothing else;
        if it fails, it is asleep all the same.

        Args:
            with_weights: its weights move to the host's memory as well.
        """

    @abstractmethod
    def wake(self) -> None:
        """Takes its memory back; new weights may be loaded before or after it."""

    def max_concurrency(self) -> int | None:
        """Most texts that it has written at once; None: unknown."""
        return None

    def limit_concurrency(self, rows: int) -> None:
        """No more texts at once from now on; memory is freed. Nothing may be unfinished."""
        del rows

    @abstractmethod
    def close(self) -> None:
        """Frees everything, whatever is unfinished; it is not used afterwards."""

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise WeightsNotUpdated(
                "the last update of the rollout engine's weights failed midway; load them again"
            )


def is_cut(request: Generation) -> bool:
    """Whether its tokens are drawn from a part of the distribution."""
    return not takes_likeliest(request) and (request.top_p < 1 or request.top_k is not None)


def _problem(request: Generation, max_length: int | None, vocabulary: int) -> str | None:
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
    for name, position in (("seed_from", request.seed_from), ("stop_from", request.stop_from)):
        if position is not None and not 0 <= position <= length:
            return (
                f"{name} is {position}, a position in the {length} tokens of its prompt is expected"
            )
    return None
