"""The seam behind which texts are written: what an engine is asked, and what it answers.

    submit(request) ──► pending ──► being written ──step──► Generation
                                         │                      │ keep
                        continues ◄──────┴────── kept text ◄────┘ ... release

Knows token ids only. Encoding prompts, reading completions, calling tools and rows of tables belong
to others. One caller drives an engine; nothing here waits or runs by itself.

Invariants every engine keeps, and the contract test holds it to:
- token ids are those drawn; nothing is decoded and encoded again on the way;
- a generation depends on its own request and the weights, not on what else is in the batch nor on
  the order of arrival (up to the rounding of the matrix products);
- a text written in several requests, each continuing the one before, is the text written in one:
  draws belong to positions (`seed_from`), and so do stop texts (`stop_from`);
- `Generation.log_probs` are those of the sampling distribution at the request's temperature
  *before* top-p and top-k cut it: the numbers that a trainer computes from the same logits. Where
  a cut was asked for, `sampled_log_probs` are those of the distribution the token was really drawn
  from;
- each token's log-probs are those of the weights that drew it, and the version of these is known;
- where `step` or `load_weights` fails, every unfinished request is forgotten (`unfinished` is 0).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Reason = Literal["eos", "stop", "length", "aborted"]
OnLoad = Literal["finish", "resume", "drop"]
"""What becomes of an unfinished request when new weights come. `finish`: it is written to its end
with the old ones before they go. `resume`: it goes on with the new ones. `drop`: it is given back
as aborted, with what it has."""


@dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """One completion to be written: all that decides it, whatever was asked before. It has no
    slots: siblings are made by the hundred, each by one update of a dict."""

    id: str
    """Name of the row, for error messages."""
    prompt_ids: Sequence[int]
    """The whole text so far, also where it continues an earlier request."""
    seed: int
    """Decides every draw of this completion; the low 64 bits count."""
    max_new_tokens: int
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    """Texts that end the completion as soon as one is written out; the text is kept."""
    greedy: bool = False
    """Take the likeliest token; log-probs are still those at `temperature` (at 1 where that is
    0)."""
    seed_from: int | None = None
    """Position in the text whose token takes draw 0 of the seed; None: the first one written. Who
    continues a text says where its first request began."""
    stop_from: int | None = None
    """Position in the text from which on it counts towards `stop`; None: the first one written."""
    continues: int | None = None
    """Ticket of a kept text that the prompt begins with: what the engine still has of it is not
    computed again. It changes speed, never what is written."""
    keep: bool = False
    """Keep the text when it has ended, for requests that continue it, until it is released."""
    script: tuple[int, ...] = ()
    """Tokens that are written first, whatever would be drawn; their log-probs are those of the
    weights all the same. For rehearsals; only the torch engine does it."""
    on_load: OnLoad = "finish"

    def with_seed(self, seed: int, script: tuple[int, ...] = ()) -> GenerationRequest:
        """The same with draws and a script of its own."""
        found = object.__new__(GenerationRequest)
        vars(found).update(vars(self), seed=seed, script=script)
        return found


@dataclass(slots=True)
class Generation:
    """One request, and what was written of it: while it waits that of earlier weights, once it has
    ended all. L tokens."""

    ticket: int = field(compare=False)
    """As `submit` gave it."""
    request: GenerationRequest = field(compare=False)
    token_ids: list[int] = field(default_factory=list)
    """The tokens written, the end-of-text token included where it was drawn, L."""
    log_probs: list[float] = field(default_factory=list)
    """Of each token at the sampling temperature, before top-p and top-k, L."""
    sampled_log_probs: list[float] | None = None
    """Of each token after top-p and top-k, L; None where nothing is cut, and both are the same."""
    before: int = field(default=0, compare=False)
    """Tokens that earlier weights wrote."""
    versions: tuple[tuple[int, int], ...] = ()
    """(token, version): from this token on, this version of the weights wrote; in order."""
    reason: Reason | None = None
    """What ended it; None: it is on its way."""

    @property
    def finished(self) -> bool:
        """False where `max_new_tokens`, an abort or a drop cut it."""
        return self.reason in ("eos", "stop")

    @property
    def to_read(self) -> Sequence[int]:
        """All that is to be read before the next token is drawn."""
        if not self.before:
            return self.request.prompt_ids
        return [*self.request.prompt_ids, *self.token_ids[: self.before]]

    def ends(self, reason: Reason) -> Generation:
        """It is written no more."""
        self.reason = reason
        return self


class RolloutEngine(Protocol):
    """Writes completions and scores sequences with one set of weights."""

    @property
    def version(self) -> int:
        """Version of the weights held."""
        ...

    @property
    def max_length(self) -> int | None:
        """Most tokens of a prompt and what may be written to it; None: no limit."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights held."""
        ...

    # Writing

    @property
    def unfinished(self) -> int:
        """Requests submitted and not given back yet."""
        ...

    def submit(self, request: GenerationRequest) -> int:
        """Takes a request and gives its ticket, which no other request of this engine gets.

        Raises `RequestRefused`, naming the row, for what cannot be served.
        """
        ...

    def step(self) -> list[Generation]:
        """Writes on, about one token of each request, and gives back those that have ended since
        the last call; without unfinished requests it does nothing."""
        ...

    def written(self) -> int:
        """Tokens that the unfinished requests have so far, for progress."""
        ...

    def abort(self, tickets: Iterable[int]) -> list[Generation]:
        """Takes requests out as they are, in the order given; those given back before are left
        out. What they asked to keep is not kept."""
        ...

    def release(self, tickets: Iterable[int]) -> None:
        """Forgets kept texts; tickets that are not kept are let be."""
        ...

    # Scoring

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        """Log-prob of every token given those before it; the first of a sequence is 0. Unfinished
        requests are untouched by it."""
        ...

    # Weights

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Takes all weights under the names of the Hugging Face model; a missing or unknown name
        is an error, and the engine refuses to work until a load succeeds.

        Unfinished requests are treated as their `on_load` says; what ends by it is given back by
        the next `step`. Kept texts stay kept, what was computed of them does not.
        """
        ...

    def held_weights(self) -> Iterable[tuple[str, Tensor]]:
        """The weights held, under the names of the Hugging Face model; none where the engine cannot
        tell."""
        ...

    def fingerprint(self) -> int | None:
        """`coloop.workers.fingerprint` of the weights held; None where the engine cannot tell."""
        ...

    # Memory

    def sleep(self, *, with_weights: bool = True) -> None:
        """Gives back the memory that it can do without until `wake`. Nothing may be unfinished;
        what was computed of kept texts is forgotten. Asleep it takes weights and is woken, and
        nothing else; where it fails, it is asleep all the same.

        Args:
            with_weights: its weights leave the device as well and wait in the host's memory.
        """
        ...

    def wake(self) -> None:
        """Takes the memory that it works with; new weights may be loaded before or after it. An
        engine that is awake stays so."""
        ...

    def max_concurrency(self) -> int | None:
        """Most texts that it has written at once; None: nothing was written, or the engine looks
        after its memory by itself."""
        ...

    def limit_concurrency(self, rows: int) -> None:
        """No more than so many texts at once from here on; what room there was is given back.
        Nothing may be unfinished."""
        ...

    def close(self) -> None:
        """Gives back everything, whatever is unfinished; it is not asked anything afterwards."""
        ...
