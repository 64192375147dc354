"""What travels between the driver and the processes that hold weights: plain values and arrays, no
tables, no tensors.

The driver knows rows and lineage; a host knows token ids and weights. These are the words they
share, beside what a policy wrote (`tables.Tokens`) and what is scored or learned
(`batch.Sequence`, `batch.Pair`). All are picklable, so that a host may be in this process or on
another machine. What travels by the thousand has no slots: pickle takes twice as long with them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Literal, Self

from coloop.algorithms.batch import Prompt, Unit
from coloop.algorithms.batch.columns import Columns, columns_of, items_of
from coloop.data.arrays import Ids, Numbers
from coloop.data.tables import Tokens
from coloop.spec.rollout import OnSync


@dataclass(frozen=True, kw_only=True, eq=False)
class Begun:
    """A text that is written on, whoever wrote what there is of it."""

    prompt_ids: Ids
    token_ids: Ids
    """Of its completion so far."""
    writer: str
    tokenizer: str
    """Mark of the tokenizer that its ids are of; empty: nobody said."""

    @classmethod
    def of(cls, tokens: Tokens, length: int) -> Self:
        """The first so many tokens of a text."""
        return cls(
            prompt_ids=tokens.prompt_ids,
            token_ids=tokens.token_ids[:length],
            writer=tokens.writer,
            tokenizer=tokens.tokenizer,
        )


@dataclass(frozen=True, kw_only=True)
class PromptRequest:
    """One prompt and the seeds of the completions wanted for it."""

    id: str
    prompt: Prompt
    seeds: tuple[int, ...]
    tools: tuple[Mapping[str, Any], ...] | None = None
    """What the assistant of a chat may call, as its template shows it."""
    scripts: tuple[str | None, ...] = ()
    """Of each completion, what it says whatever would be drawn; none: all are drawn."""
    begun: Begun | None = None
    """The text that all completions go on with, instead of beginning behind the prompt. It counts
    towards the tokens that a completion may have, and is not trained."""


TurnEnd = Literal["call", "end", "stop", "length"]
"""What a turn ends with: a text in `pauses`, the policy's own end, a text in `stop`, or the most
tokens that it may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How completions are drawn."""

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    """Texts at which a completion waits for what somebody says to it; they are kept."""
    turn_ends: frozenset[TurnEnd] = frozenset()
    """By what else it comes to wait, instead of ending there."""
    turn_tokens: int | None = None
    """Most tokens between two things that are said to it."""
    heard_tokens: int | None = None
    """Most tokens of what is said to it; the rest is cut."""
    mask: tuple[str, ...] = ()
    """Tags whose content is not trained."""
    is_beside: bool = False
    """Written while texts of another writer pause for it."""
    on_sync: OnSync = "finish"
    """What becomes of unfinished texts when new weights come."""

    @property
    def has_turns(self) -> bool:
        """Whether somebody speaks to texts while they are written."""
        return bool(self.pauses or self.turn_ends)


@dataclass(frozen=True, kw_only=True)
class TooLong:
    """A row that a model cannot read: what it would need is more than its positions."""

    tokens: int
    limit: int


Reply = list[Tokens] | TooLong
"""What was written to a prompt; of one that leaves no room for what may be written, how long it
is."""
HandOn = Callable[[Sequence[tuple[int, Reply]]], None]
"""Told of replies that are whole while others are still written, by the places of their
requests."""


def too_long(tokens: int, limit: int | None) -> TooLong | None:
    """What is wrong with a row of so many tokens, where a model reads no more than `limit`."""
    return TooLong(tokens=tokens, limit=limit) if limit is not None and tokens > limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """How much a host holds at once in calls of one kind."""

    rows: int
    """Texts that are written, or rows of a pass."""
    tokens: int = 0
    """Of a pass, padded; 0 where only rows are counted."""


Items = Mapping[tuple[str, str], tuple[Unit, ...]]
"""By (node, port), what teaching ports bring to an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    """One update of a weights group."""

    group: str
    items: Items
    seed: int
    updates: int = 1
    """How often the learn stage is repeated on the same rows."""
    order: tuple[str, ...] = ()
    """Roles whose items are applied one after another; empty: one joint update."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    phase_updates: int | None = None
    """Updates that this phase's entry will bring, for schedules of the learning rate."""
    is_new_phase: bool = False

    def __reduce__(self) -> Any:
        """Sequences travel as columns."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        carried = {port: columns_of(own) or own for port, own in self.items.items()}
        return _learn_request, ({**values, "items": carried},)


def _learn_request(values: dict[str, Any]) -> LearnRequest:
    """A request that has travelled."""
    items = {
        port: items_of(own) if isinstance(own, Columns) else own
        for port, own in values["items"].items()
    }
    return LearnRequest(**{**values, "items": items})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaughtRow:
    """A row as a loss saw it, token by token of its completion; of several epochs, the last."""

    role: str
    """Who learned from it."""
    port: str
    algorithm: str
    row: str
    token_ids: tuple[int, ...]
    pieces: tuple[str, ...]
    """The text of each token; the pieces together are the completion."""
    numbers: Mapping[str, Numbers]
    """By name, one each: `mask` (1 where it is trained), `advantage`, `log_ratio`, `kl`, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnReply:
    """What an update did."""

    metrics: Mapping[str, Mapping[str, float]]
    """By role."""
    version: int
    """Of the weights after it."""
    before: int
    """Of the weights before it."""
    samples: int
    tokens: int
    too_long: Mapping[str, tuple[TooLong, ...]] = field(default_factory=dict)
    """Rows that were left out, by role."""
    freed_bytes: int = 0
    """That engines of the process gave back for it."""
    taught: tuple[TaughtRow, ...] = ()
    """A few of the rows, for people to look at."""


DRIVERS_WORD = ".driver"
"""File by which a driver finds out who shares a folder with it; pools leave theirs under their
names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a host sees of a folder."""

    machine: str
    """Where it is."""
    word: str | None
    """That the driver has left there; None: it is not to be seen."""


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
    held_bytes: int | None = None
    """That its GPU holds, without one its process; of several ranks the one that holds most."""
    rank_seconds: tuple[float, ...] = ()
    """The call is over: for how long each of several ranks had work; else nothing."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A text that waits for what somebody says to it."""

    place: int
    """Of its request."""
    k: int
    """Of its seed."""
    text: str
    """What was drawn since it was spoken to last."""
    end: TurnEnd = "call"
    turn: int = 0
    """How often it was spoken to; 0 as well where a text is written anew from its beginning."""
    branch: tuple[int, ...] = ()
    """Its number among the branches of the text that it was, at each place where that branched."""


class Silence(Enum):
    """What is meant by saying nothing to a text that pauses, where that is not its end."""

    GO_ON = "go on"
    """It was to pause for nothing: its turn goes on."""
    CUT = "cut"
    """It is cut where it stands."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What is said to a text that pauses."""

    place: int
    k: int
    text: str | Silence | None
    """None: nothing; it has ended."""
    branch: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    """Of the texts that go on in its place, where it branches; none: it goes on by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a host has written since it was asked last."""

    replies: tuple[tuple[int, Reply], ...]
    """Those that are whole, by the places of their requests."""
    unfinished: int
    """Texts that are still to be written, those that pause included."""
    poll: Poll
    """How far it is with all of them."""
    pauses: tuple[Pause, ...] = ()
    """Texts that wait since then."""


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A text that pauses goes on as several, which begin with all that it is and differ in what is
    drawn from there: a text of its own for each seed. With the seed of the text itself, what it
    would have become."""

    seeds: tuple[int, ...]
    """At least one. Draws belong to seeds and positions, not to the order of branches."""
    text: str = ""
    """Said to all of them before."""


Word = str | Branches | Silence | None
"""What is said to a text that pauses; None: nothing, it has ended."""
Answer = Callable[[Pause], Word]
"""Finds what is said to a text. Called from several threads."""
