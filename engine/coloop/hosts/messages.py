"""What travels between the driver and the processes that hold weights: plain values, no tables, no
tensors.

The driver knows rows and lineage; a host knows token ids and weights. These are the words they
share, and they are picklable, so that a host may be in this process or on another machine. What
travels by the thousand has no slots: pickle takes twice as long with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coloop.tables.row import Tokens

Prompt = str | list[dict[str, Any]]
"""Text, or a chat: a list of messages."""


@dataclass(frozen=True, kw_only=True)
class PromptRequest:
    """One prompt and the seeds of the completions wanted for it."""

    id: str
    prompt: Prompt
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How completions are drawn."""

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One text that a policy wrote."""

    text: str
    tokens: Tokens
    finished: bool
    """False where `max_new_tokens` cut it."""


@dataclass(frozen=True, kw_only=True)
class TooLong:
    """A row that a model cannot read: what it would need is more than its positions."""

    tokens: int
    limit: int


@dataclass(frozen=True, kw_only=True)
class Example:
    """A text whose tokens are scored or learned: a rollout with its tokens, or a prompt with its
    target."""

    id: str
    tokens: Tokens | None = None
    prompt: Prompt | None = None
    target: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairExample:
    """Two texts for one prompt, the first preferred."""

    id: str
    chosen: Example
    rejected: Example


@dataclass(frozen=True, kw_only=True)
class LearnItem:
    """One row of a teaching port, ready for the update."""

    id: str
    example: Example | None = None
    pair: PairExample | None = None
    weight: float = 1.0
    """Scale of the row's loss: its edge's weight."""
    count: float = 1.0
    """How often the row was drawn; loss and divisor count it so."""
    group: str = ""
    advantages: float | list[float] | None = None
    """One for all trained tokens, or one for each token of the completion."""
    reference: list[float] | dict[str, list[float]] | None = None
    """Reference log-probs of the completion's tokens; for a pair by side."""
    probability: float = 1.0
    """Of a pair: that `chosen` is the better one."""
    margin: float = 0.0
    """Of a pair: by how much."""
    version: int = 0
    """Version of the weights that wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one teaching port of one role brings to an update."""

    node: str
    port: str
    items: tuple[LearnItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOrder:
    """One update of a weights group."""

    group: str
    loads: tuple[Load, ...]
    seed: int
    updates: int = 1
    """How often the learn stage is repeated on the same rows."""
    order: tuple[str, ...] = ()
    """Roles whose batches are applied one after another; empty: one joint update."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    phase_updates: int | None = None
    """Updates that this phase's entry will bring, for schedules of the learning rate."""
    is_new_phase: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnReply:
    """What an update did."""

    metrics: Mapping[str, Mapping[str, float]]
    """By role."""
    version: int
    samples: int
    tokens: int
    too_long: Mapping[str, tuple[TooLong, ...]] = field(default_factory=dict)
    """Rows that were left out, by role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """How far a host is with what it is doing."""

    done: int
    total: int
    unit: str
    pid: int | None = None
    """Of its process; None: of work in the driver."""
    rss_bytes: int | None = None
    """Memory of its process; None: of work in the driver."""
