"""What travels between the driver and the processes that hold weights: picklable values and arrays,
beside `tables.Tokens`, `batch.Sequence` and `batch.Pair`.

What travels by the thousand has no slots: pickle takes twice as long with them.
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
    writer: str
    tokenizer: str  # mark of the tokenizer that its ids are of; empty: nobody said

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
    """A text that all completions continue; it counts towards their tokens and is not trained."""


TurnEnd = Literal["call", "end", "stop", "length"]
"""Where a turn ends: a text in `pauses` or `stop`, the policy's end, or the most tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    """Texts at which a completion waits for what somebody says to it; they are kept."""
    turn_ends: frozenset[TurnEnd] = frozenset()
    """By what else it comes to wait, instead of ending there."""
    turn_tokens: int | None = None  # most tokens between two things that are said to it
    heard_tokens: int | None = None  # most tokens of what is said to it; the rest is cut
    mask: tuple[str, ...] = ()
    is_beside: bool = False  # written while texts of another writer pause for it
    on_sync: OnSync = "finish"  # what becomes of unfinished texts when new weights come

    @property
    def has_turns(self) -> bool:
        return bool(self.pauses or self.turn_ends)


@dataclass(frozen=True, kw_only=True)
class TooLong:
    """A row that a model cannot read: what it would need is more than its positions."""

    tokens: int
    limit: int


Reply = list[Tokens] | TooLong
"""What was written to a prompt; for one that leaves no room, its length."""
HandOn = Callable[[Sequence[tuple[int, Reply]]], None]
"""Takes replies that are complete while others are still written, by request number."""


def too_long(tokens: int, limit: int | None) -> TooLong | None:
    """What is wrong with a row of so many tokens, where a model reads no more than `limit`."""
    return TooLong(tokens=tokens, limit=limit) if limit is not None and tokens > limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """How much a host holds at once in calls of one kind."""

    rows: int
    tokens: int = 0  # of a pass, padded; 0 where only rows are counted


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

    role: str  # who learned from it
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
"""The driver's file in a folder that it may share with its pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    machine: str
    word: str | None  # that the driver has left there; None: it is not to be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """How far a host is with what it is doing."""

    done: int
    total: int
    unit: str
    pid: int | None = None  # of its process; None: of work in the driver
    rss_bytes: int | None = None  # memory of its process; None: of work in the driver
    held_bytes: int | None = None
    """That its GPU holds, without one its process; of several ranks the one that holds most."""
    rank_seconds: tuple[float, ...] = ()
    """The call is over: for how long each of several ranks had work; else nothing."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A text that waits for what somebody says to it."""

    place: int
    k: int
    text: str  # what was drawn since it was spoken to last
    end: TurnEnd = "call"
    turn: int = 0
    """How often it was spoken to; 0 as well where a text is written anew from its beginning."""
    branch: tuple[int, ...] = ()
    """Its number among the branches of the text that it was, at each place where that branched."""


class Silence(Enum):
    """What is meant by saying nothing to a text that pauses, where that is not its end."""

    GO_ON = "go on"  # it was to pause for nothing: its turn goes on
    CUT = "cut"  # it is cut where it stands


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What is said to a text that pauses."""

    place: int
    k: int
    text: str | Silence | None  # None: nothing; it has ended
    branch: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    """Of the texts that go on in its place, where it branches; none: it goes on by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a host has written since it was asked last."""

    replies: tuple[tuple[int, Reply], ...]  # those that are whole, by the places of their requests
    unfinished: int  # texts that are still to be written, those that pause included
    poll: Poll
    pauses: tuple[Pause, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A paused text continues as several, one per seed."""

    seeds: tuple[int, ...]
    """At least one. Draws belong to seeds and positions, not to the order of branches."""
    text: str = ""


Word = str | Branches | Silence | None
"""What is said to a text that pauses; None: nothing, it has ended."""
Answer = Callable[[Pause], Word]  # finds what is said to a text. Called from several threads.
