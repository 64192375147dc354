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
from typing import Any, Literal

Reason = Literal["eos", "stop", "length", "aborted"]
OnLoad = Literal["finish", "resume", "drop"]
"""What becomes of an unfinished request when new weights come. `finish`: it is written to its end
with the old ones before they go. `resume`: it goes on with the new ones. `drop`: it is given back
as aborted, with what it has."""


@dataclass(kw_only=True)
class Generation:
    """One completion: all that decides it, whatever was asked before, and what is written of it. L
    tokens.

    An engine fills a copy of what it is given: while that waits it has what earlier weights wrote,
    once it has ended all. It has no slots: siblings are made by the hundred, each by one update of
    a dict. Generations are equal where the same was written.
    """

    id: str = field(compare=False)
    """Name of the row, for error messages."""
    prompt_ids: Sequence[int] = field(compare=False)
    """The whole text so far, also where it continues an earlier request."""
    seed: int = field(compare=False)
    """Decides every draw of this completion; the low 64 bits count."""
    max_new_tokens: int = field(compare=False)
    temperature: float = field(default=1.0, compare=False)
    """0 is greedy."""
    top_p: float = field(default=1.0, compare=False)
    top_k: int | None = field(default=None, compare=False)
    stop: tuple[str, ...] = field(default=(), compare=False)
    """Texts that end the completion as soon as one is written out; the text is kept."""
    greedy: bool = field(default=False, compare=False)
    """Take the likeliest token; log-probs are still those at `temperature` (at 1 where that is
    0)."""
    seed_from: int | None = field(default=None, compare=False)
    """Position in the text whose token takes draw 0 of the seed; None: the first one written. Who
    continues a text says where its first request began."""
    stop_from: int | None = field(default=None, compare=False)
    """Position in the text from which on it counts towards `stop`; None: the first one written."""
    continues: int | None = field(default=None, compare=False)
    """Ticket of a kept text that the prompt begins with: what the engine still has of it is not
    computed again. It changes speed, never what is written."""
    keep: bool = field(default=False, compare=False)
    """Keep the text when it has ended, for requests that continue it, until it is released."""
    script: tuple[int, ...] = field(default=(), compare=False)
    """Tokens that are written first, whatever would be drawn; their log-probs are those of the
    weights all the same. For rehearsals; only the torch engine does it."""
    on_load: OnLoad = field(default="finish", compare=False)

    # What is written.

    ticket: int = field(default=0, compare=False)
    """As `submit` gave it, from 1."""
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

    # Of a text that is written in several turns; engines do not look at it.

    begun: int = field(default=0, compare=False)
    """Tokens of it that were there before it was asked for."""
    heard: tuple[slice, ...] = field(default=(), compare=False)
    """Parts of it that others have said."""

    def unwritten(self, **fields: Any) -> Generation:
        """The same with nothing written, and with other values of some fields."""
        other = object.__new__(Generation)
        vars(other).update(vars(self))
        vars(other).update(
            ticket=0,
            token_ids=[],
            log_probs=[],
            sampled_log_probs=None,
            before=0,
            versions=(),
            reason=None,
        )
        vars(other).update(fields)
        return other

    @property
    def finished(self) -> bool:
        """False where `max_new_tokens`, an abort or a drop cut it."""
        return self.reason in ("eos", "stop")

    @property
    def to_read(self) -> Sequence[int]:
        """All that is to be read before the next token is drawn."""
        if not self.before:
            return self.prompt_ids
        return [*self.prompt_ids, *self.token_ids[: self.before]]

    def ends(self, reason: Reason) -> Generation:
        """It is written no more."""
        self.reason = reason
        return self
