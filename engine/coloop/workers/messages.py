"""Messages between the driver and the processes that hold weights: picklable values and arrays, in
addition to `tables.Tokens`, `batch.Sequence` and `batch.Pair`.

Classes that are sent by the thousand have no `__slots__`, with which pickling takes twice as long.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Literal, Self

from coloop.algorithms.batch import Prompt, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.batch.columns import Columns, columns_of, items_of
from coloop.data.arrays import Ids
from coloop.data.tables import Tokens
from coloop.spec.rollout import OnSync


@dataclass(frozen=True, kw_only=True, eq=False)
class Begun:
    """The beginning of a text that is to be continued, whoever wrote it."""

    prompt_ids: Ids
    token_ids: Ids
    writer: str
    tokenizer: str  # mark of the tokenizer whose ids they are; empty: not known

    @classmethod
    def of(cls, tokens: Tokens, length: int) -> Self:
        """The first `length` tokens of a text."""
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
    """Tools that the assistant of a chat may call, as passed to the chat template."""
    scripts: tuple[str | None, ...] = ()
    """For each completion, a text that is forced instead of sampled; empty: all are sampled."""
    begun: Begun | None = None
    """A text that all completions continue; it counts towards their tokens, but is not trained."""


TurnEnd = Literal["call", "end", "stop", "length"]
"""How a turn ends: at a text in `pauses` (`call`) or `stop` (`stop`), at the end-of-text token
(`end`), or at the token limit (`length`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    """Texts at which a completion pauses for an observation; they stay in the completion."""
    turn_ends: frozenset[TurnEnd] = frozenset()
    """Other ends of a turn at which a completion pauses instead of finishing."""
    turn_tokens: int | None = None  # maximum tokens between two observations
    heard_tokens: int | None = None  # maximum tokens of an observation; the rest is cut
    mask: tuple[str, ...] = ()  # tags; the text inside them is not trained
    is_beside: bool = False  # generated while texts of another node pause for the result
    on_sync: OnSync = "finish"  # what happens to unfinished texts when new weights arrive

    @property
    def has_turns(self) -> bool:
        return bool(self.pauses or self.turn_ends)


@dataclass(frozen=True, kw_only=True)
class TooLong:
    """A row that needs more positions than a model has."""

    tokens: int
    limit: int


Reply = list[Tokens] | TooLong
"""The completions of a prompt; if the prompt leaves no room for them, its length."""
HandOn = Callable[[Sequence[tuple[int, Reply]]], None]
"""Receives complete replies, by request number, while others are still being generated."""


def too_long(tokens: int, limit: int | None) -> TooLong | None:
    """`TooLong` if a row has more tokens than a model's `limit`, else None."""
    return TooLong(tokens=tokens, limit=limit) if limit is not None and tokens > limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """How much a worker processes at once in calls of one kind."""

    rows: int
    tokens: int = 0  # in a forward pass, with padding; 0 if only rows are counted


Items = Mapping[tuple[str, str], tuple[Unit, ...]]
"""The training data of an update, by teaching port (node, port)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    group: str
    items: Items
    seed: int
    updates: int = 1
    """How many times the learn stage runs on the same rows."""
    order: tuple[str, ...] = ()
    """Roles whose items are applied one after another; empty: one joint update."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    phase_updates: int | None = None
    """Updates expected in this entry of the phase, for learning-rate schedules; None: not known."""
    is_new_phase: bool = False

    def __reduce__(self) -> Any:
        """Pickles sequences as columns."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        packed = {port: columns_of(units) or units for port, units in self.items.items()}
        return _learn_request, ({**values, "items": packed},)


def _learn_request(values: dict[str, Any]) -> LearnRequest:
    items = {
        port: items_of(packed) if isinstance(packed, Columns) else packed
        for port, packed in values["items"].items()
    }
    return LearnRequest(**{**values, "items": items})


TaughtBy = tuple[str, str, str]  # role, port and algorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnReply:
    """The result of an update, or of losses that were only measured."""

    metrics: Mapping[str, Mapping[str, float]]
    """By role."""
    samples: int  # rows learned from, each once
    tokens: int  # their trained tokens, each once
    version: int = 0
    """Version of the weights after the update."""
    before: int = 0
    """Version of the weights before the update."""
    too_long: Mapping[str, tuple[TooLong, ...]] = field(default_factory=dict)
    """Rows that were left out, by role."""
    freed_bytes: int = 0
    """Memory that the rollout engines of the process released for the update."""
    taught: Mapping[TaughtBy, tuple[TokenSequence, ...]] = field(default_factory=dict)
    """Completions of a few rows as the loss saw them, with several epochs in the last; `numbers` of
    their tokens are `advantage`, `log_ratio`, `kl`, ..."""
    pieces: Mapping[TaughtBy, tuple[Sequence[str], ...]] = field(default_factory=dict)
    """The text of each token of these rows; the pieces together are the completion."""


DRIVERS_WORD = ".driver"
"""Name of the file with which the driver tests whether its pools share a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a worker sees in a folder to which the driver has written `DRIVERS_WORD`."""

    machine: str
    word: str | None  # content of that file; None: it is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The progress of a worker in its current call."""

    done: int
    total: int
    unit: str
    pid: int | None = None  # of the worker's process; None for work in the driver
    rss_bytes: int | None = None  # memory of the worker's process; None for work in the driver
    held_bytes: int | None = None
    """Memory in use on its GPU, or without a GPU by its process; the maximum of several ranks."""
    rank_seconds: tuple[float, ...] = ()
    """How long each of several ranks worked, once the call is over; empty before."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A text that waits for an observation."""

    place: int  # index of the request
    k: int  # index of the completion in the request
    text: str  # what was drawn since the last observation
    end: TurnEnd = "call"
    turn: int = 0
    """Observations so far; also 0 if the text is generated again from its beginning."""
    branch: tuple[int, ...] = ()
    """For each time that the text branched, which of the branches this is."""


class Silence(Enum):
    """Responses to a paused text that add no text to it and do not count as its own end."""

    GO_ON = "go on"  # there was no reason to pause: the turn continues
    CUT = "cut"  # the text is cut off where it paused


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The response to a paused text; `place`, `k` and `branch` as in its `Pause`."""

    place: int
    k: int
    text: str | Silence | None  # None: no response; the text ends here
    branch: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    """One seed for each text that continues it, if it branches; empty: it does not branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a worker has generated since it was last asked."""

    replies: tuple[tuple[int, Reply], ...]  # complete replies, each with the index of its request
    unfinished: int  # texts that are not finished, paused ones included
    poll: Poll
    pauses: tuple[Pause, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A paused text continues as several, one per seed."""

    seeds: tuple[int, ...]
    """At least one. Draws depend on seeds and positions, not on the order of the branches."""
    text: str = ""


Word = str | Branches | Silence | None
"""The response to a paused text; None: no response, and the text ends here."""
Answer = Callable[[Pause], Word]  # finds the response to a pause; called from several threads
