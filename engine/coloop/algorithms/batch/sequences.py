"""Sequences and pairs of sequences, the units that are scored and trained on.

A sequence shares its read-only arrays with rows and messages.
"""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import MISSING, dataclass, field, replace
from dataclasses import fields as class_fields
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coloop.data.arrays import (
    Ids,
    Mask,
    Numbers,
    are_equal,
    ids_of,
    joined,
    mask_of,
    numbers_of,
    owned,
)
from coloop.data.distributions import Teacher

TOKEN_FIELDS = (
    "log_probs_rollout",
    "log_probs_old",
    "log_probs_reference",
    "advantages",
    "returns",
    "values",
)
"""The fields of per-token numbers; further ones are in `Sequence.numbers`."""


Prompt = str | list[dict[str, Any]]  # text, or a chat: a list of messages


@dataclass(frozen=True, kw_only=True)
class Text:
    """A prompt and its target, not yet encoded."""

    prompt: Prompt
    target: Prompt
    """A text, or messages that continue the prompt, of which the assistant's are trained on."""
    tools: tuple[Mapping[str, Any], ...] | None = None
    """Tools for the chat template."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Words, with different first tokens, whose probabilities as the next word are requested."""

    words: tuple[str, ...]
    field: str  # path of the field with the words, for messages
    at: int | None = None
    """Offset in the completion, in characters, at which they would follow; None: its end."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequence:
    """A sequence of prompt and completion that is scored or trained on; arrays have one entry per
    token.

    Before a text is encoded, `text` stands in for the token ids, and per-token numbers are those of
    the target only; `with_ids` completes it. Lists are accepted and stored as read-only arrays.
    """

    id: str
    token_ids: Ids = field(default_factory=lambda: ids_of([]))
    """Prompt and completion."""
    loss_mask: Mask = field(default_factory=lambda: mask_of([]))
    """True for tokens that are trained on."""
    text: Text | None = None
    """The text to encode; None once encoded."""
    choice: Choice | None = None
    """Words to encode as `choices`."""
    choices: Ids | None = None
    """(C,) tokens whose log-probs after the last token are requested."""
    prompt_length: int = 0
    """Tokens before the completion."""
    log_probs_rollout: Numbers | None = None
    """By the rollout engine, at the sampling temperature. Like all numbers below, only used where
    `loss_mask` is true."""
    log_probs_old: Numbers | None = None
    log_probs_reference: Numbers | None = None
    advantages: Numbers | float | None = None
    """Per token, or one number for all trained tokens."""
    returns: Numbers | None = None
    values: Numbers | None = None
    numbers: Mapping[str, Numbers | float] = field(default_factory=dict)
    """Further numbers that a recipe reads, by name: one for the row, or one per token."""
    teachers: tuple[Teacher, ...] = ()
    """What teachers say of its trained tokens."""
    under: Text | None = None
    """A prompt (its target is not used) to encode in place of the given one, before the given
    completion."""
    weight: float = 1.0
    """Factor of the row's loss; the divisor does not change."""
    count: float = 1.0
    """How often the row counts in the batch, in loss and divisor."""
    group: str = ""
    """Name of the row's group, for messages."""
    temperature: float = 1.0
    """Temperature of its log-probs; for rewards, the sampling temperature."""
    writer: str = ""
    """The node that generated its tokens."""
    version: int = 0
    """Weight version that generated them."""
    tokenizer: str = ""
    """Fingerprint of the tokenizer; empty: unknown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_ids", ids_of(self.token_ids))
        object.__setattr__(self, "loss_mask", mask_of(self.loss_mask))
        object.__setattr__(self, "teachers", tuple(self.teachers))
        if self.choices is not None:
            object.__setattr__(self, "choices", ids_of(self.choices))
        for name in TOKEN_FIELDS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, (float, int)):
                object.__setattr__(self, name, numbers_of(value))
        if self.numbers:
            kept = {
                name: float(value) if isinstance(value, float | int) else numbers_of(value)
                for name, value in self.numbers.items()
            }
            object.__setattr__(self, "numbers", kept)

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other)

    def owned(self) -> "Sequence":
        """A copy whose arrays are no views of a larger buffer; for use after the step."""
        names = ("token_ids", "loss_mask", "choices", *TOKEN_FIELDS)
        given = {name: getattr(self, name) for name in names}
        arrays: dict[str, Any] = {
            name: owned(value) for name, value in given.items() if isinstance(value, np.ndarray)
        }
        numbers = {
            name: owned(value) if isinstance(value, np.ndarray) else value
            for name, value in self.numbers.items()
        }
        teachers = tuple(teacher.owned() for teacher in self.teachers)
        return replace(self, **arrays, numbers=numbers, teachers=teachers)

    def with_numbers(self, numbers: Mapping[str, Numbers | float]) -> "Sequence":
        """A copy with these numbers, in the fields of these names, others in `numbers`."""
        own: dict[str, Any] = {name: numbers[name] for name in numbers if name in TOKEN_FIELDS}
        named = {name: numbers[name] for name in numbers if name not in TOKEN_FIELDS}
        return replace(self, **own, numbers={**self.numbers, **named})

    def with_ids(
        self, prompt_ids: ArrayLike, completion_ids: ArrayLike, loss_mask: ArrayLike | None = None
    ) -> "Sequence":
        """The encoded sequence; per-token numbers, given for the completion, get zeros for the
        prompt.

        Args:
            loss_mask: which tokens of the completion are trained on; None: all. Those of the prompt
                never are.
        """
        given = {name: getattr(self, name) for name in (*TOKEN_FIELDS, "numbers")}
        return replace(self, text=None, **_whole(given, prompt_ids, completion_ids, loss_mask))


def completion_sequence(
    *,
    id: str,
    prompt_ids: ArrayLike,
    completion_ids: ArrayLike,
    loss_mask: ArrayLike,
    **fields: Any,
) -> Sequence:
    """A sequence whose mask and per-token `fields` are given for the completion only; the prompt is
    not trained on."""
    whole = _whole(fields, prompt_ids, completion_ids, loss_mask)
    unknown = fields.keys() - _DEFAULTS.keys()
    if unknown:
        raise TypeError(f"a sequence has no {', '.join(sorted(unknown))}")
    sequence = object.__new__(Sequence)  # all arrays are what `Sequence` would make of them
    vars(sequence).update(_DEFAULTS, **fields | whole, id=id)
    return sequence


def completion_sequences(
    *,
    ids: Many[str],
    prompt_ids: Many[ArrayLike],
    completion_ids: Many[ArrayLike],
    loss_masks: Many[ArrayLike],
    fields: Mapping[str, Many[Any]],
) -> tuple[Sequence, ...]:
    """`completion_sequence` for many rows, without `numbers`; arrays of a field share a buffer."""
    unknown = fields.keys() - (_DEFAULTS.keys() - {"numbers"})
    if unknown:
        raise TypeError(f"many sequences take no {', '.join(sorted(unknown))}")
    before = [ids_of(prompt) for prompt in prompt_ids]
    of_prompts = [_of_prompt(len(prompt)) for prompt in before]
    columns: dict[str, Many[Any]] = {
        **fields,
        "id": ids,
        "token_ids": _behind(before, [ids_of(completion) for completion in completion_ids]),
        "loss_mask": _behind(
            [never for _, never in of_prompts], [mask_of(mask) for mask in loss_masks]
        ),
        "prompt_length": [len(prompt) for prompt in before],
    }
    for name in fields.keys() & TOKEN_FIELDS:
        given = [index for index, value in enumerate(fields[name]) if not _is_one(value)]
        if given:
            parts = [numbers_of(fields[name][index]) for index in given]
            whole = _behind([of_prompts[index][0] for index in given], parts)
            columns[name] = _with(fields[name], given, whole)
    names = (*columns,)
    sequences = []
    for row in zip(*columns.values(), strict=True):
        sequence = object.__new__(Sequence)  # all arrays are what `Sequence` would make of them
        vars(sequence).update(_DEFAULTS, numbers={})
        vars(sequence).update(zip(names, row, strict=True))
        sequences.append(sequence)
    return tuple(sequences)


def _is_one(value: Any) -> bool:
    return value is None or isinstance(value, _SCALAR)


def _with(values: Many[Any], places: Many[int], others: Many[Any]) -> list[Any]:
    replaced = list(values)
    for index, other in zip(places, others, strict=True):
        replaced[index] = other
    return replaced


def _behind(before: Many[NDArray[Any]], after: Many[NDArray[Any]]) -> list[NDArray[Any]]:
    """Concatenates the parts pairwise; parts of one type are views of one array."""
    pairs = list(zip(before, after, strict=True))
    if len({part.dtype for part in after}) != 1:
        return [joined(pair) for pair in pairs]
    whole = joined([part for pair in pairs for part in pair])
    sizes = [len(first) + len(second) for first, second in pairs]
    return [whole[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)]


def _whole(
    fields: Mapping[str, Any],
    prompt_ids: ArrayLike,
    completion_ids: ArrayLike,
    loss_mask: ArrayLike | None,
) -> dict[str, Any]:
    """Fields of a sequence from those of its completion, with zeros for the prompt."""
    before, after = ids_of(prompt_ids), ids_of(completion_ids)
    trained = np.ones(len(after), dtype=np.bool_) if loss_mask is None else mask_of(loss_mask)
    nothing, never = _of_prompt(len(before))
    whole: dict[str, Any] = {
        "token_ids": joined((before, after)),
        "loss_mask": joined((never, trained)),
        "prompt_length": len(before),
        "numbers": {
            name: float(own) if isinstance(own, _SCALAR) else joined((nothing, numbers_of(own)))
            for name, own in fields.get("numbers", _NOTHING).items()
        },
    }
    for name in TOKEN_FIELDS:
        own = fields.get(name)
        if own is not None:
            is_one = isinstance(own, _SCALAR)
            whole[name] = own if is_one else joined((nothing, numbers_of(own)))
    return whole


_SCALAR = (float, int)
_NOTHING: Mapping[str, Any] = {}


@lru_cache(maxsize=256)
def _of_prompt(tokens: int) -> tuple[Numbers, Mask]:
    return numbers_of(np.zeros(tokens, dtype=np.float32)), mask_of(np.zeros(tokens, np.bool_))


_DEFAULTS: Mapping[str, Any] = {
    one.name: None if one.default is MISSING else one.default for one in class_fields(Sequence)
}
"""Default of each field; None for those without one, which callers always set."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sequences, the first preferred."""

    id: str
    chosen: Sequence
    rejected: Sequence
    probability: float = 1.0
    """Probability that `chosen` is the better one."""
    margin: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Further numbers of the pair that a recipe reads, by name."""
    extra: tuple[Sequence, ...] = ()
    """Further sequences that `Recipe.prepare` may use; not trained on."""
    weight: float = 1.0
    count: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", tuple(self.extra))

    def owned(self) -> "Pair":
        """A copy of `Sequence.owned` sequences."""
        return self.mapped(Sequence.owned)

    def mapped(self, change: Callable[[Sequence], Sequence]) -> "Pair":
        return replace(
            self,
            chosen=change(self.chosen),
            rejected=change(self.rejected),
            extra=tuple(change(text) for text in self.extra),
        )


Unit = Sequence | Pair  # what is scored and trained on
