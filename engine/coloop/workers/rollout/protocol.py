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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

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
