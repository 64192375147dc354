"""The seam behind which texts are written: what an engine is asked, and what it answers.

Knows token ids only. Encoding prompts, reading completions and rows of tables belong to the roles.

Invariants every engine keeps, and the contract test holds it to:
- token ids are those drawn; nothing is decoded and encoded again on the way;
- a generation depends on its own request and the weights, not on what else is in the batch nor on
  the order of arrival (up to the rounding of the matrix products);
- `Generation.log_probs` are those of the sampling distribution at the request's temperature
  *before* top-p and top-k cut it: the numbers that a trainer computes from the same logits. Where
  a cut was asked for, `sampled_log_probs` are those of the distribution the token was really drawn
  from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Reason = Literal["eos", "stop", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One completion to be written."""

    id: str
    """Name of the row, for error messages and to find the answer again."""
    prompt_ids: Sequence[int]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One completion."""

    id: str
    token_ids: list[int]
    """The tokens written, the end-of-text token included where it was drawn, L."""
    log_probs: list[float]
    """Of each token at the sampling temperature, before top-p and top-k, L."""
    reason: Reason
    """What ended it."""
    version: int
    """Version of the weights that wrote it."""
    sampled_log_probs: list[float] | None = None
    """Of each token after top-p and top-k; None where nothing was cut, and both are the same, L."""

    @property
    def finished(self) -> bool:
        """False where `max_new_tokens` cut it."""
        return self.reason != "length"


class Progress(Protocol):
    """Told now and then how far a generate call is."""

    def __call__(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None: ...


ShouldStop = Callable[[], bool]
"""Asked every few tokens; once true, the call ends with `StopRequested`."""


class RolloutEngine(Protocol):
    """Writes completions and scores sequences with one set of weights."""

    @property
    def version(self) -> int:
        """Version of the weights held."""
        ...

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        progress: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> list[Generation]:
        """One generation for each request, in the order of the requests."""
        ...

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        """Log-prob of every token given those before it; the first of a sequence is 0."""
        ...

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Takes all weights under the names of the Hugging Face model; a missing or unknown name
        is an error."""
        ...

    @property
    def max_length(self) -> int | None:
        """Most tokens of a prompt and what may be written to it; None: no limit."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights held."""
        ...

    def fingerprint(self) -> int | None:
        """`models.fingerprint` of the weights held; None where the engine cannot tell."""
        ...
