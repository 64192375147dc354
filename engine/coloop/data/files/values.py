"""Validates and converts the columns of a row: joins the parts of chats, parses numbers from CSV.

Used by runs for the rows that they draw, and by checks for the rows of files.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

from coloop.data.chats import (
    chat_problem,
    has_answer,
    has_nulls,
    joined_parts,
    shared_messages,
    without_nulls,
)

TEXTS: Final = ("prompt", "target", "chosen", "rejected")
"""Columns with a text or a chat."""

TOOLS: Final = "tools"
"""Column with the tools that a chat's assistant may call."""

SIDES: Final = ("chosen", "rejected")

NUMBERS: Final = ("margin", "probability")


class ValueProblem(ValueError):
    """An invalid value in a row; the message names the column."""


def read_values(
    raw: Mapping[str, Any],
    names: Mapping[str, str],
    unfold: str | None = None,
    nulls: set[str] | None = None,
) -> dict[str, Any]:
    """A row of a source with the columns of the loop, converted.

    Args:
        names: by column of the loop, the column of the source that it is, or a path in one
            (`reward_model.ground_truth`).
        unfold: a list column whose entries become rows.
        nulls: collects the columns from which null keys were dropped.

    Raises:
        ValueProblem: a column has a value of the wrong kind.
    """
    row = {**raw, **{name: value_at(raw, source) for name, source in names.items()}}
    for name, value in row.items():
        if (half := half_character(value)) is not None:
            told = _told(name, names)
            raise ValueProblem(f"{told} contains half a character, {half}, which is not valid text")
    for name in (*TEXTS, TOOLS):
        if has_nulls(row.get(name)):
            row[name] = without_nulls(row[name])
            if nulls is not None:
                nulls.add(name)
    for name in (*TEXTS, *NUMBERS):
        if name in row and name != unfold:
            wrong = _read(row, name)
            if wrong is not None:
                raise ValueProblem(f"{_told(name, names)} {wrong}, found {row[name]!r:.80}")
    if unfold not in SIDES:
        _split_sides(row)
    for name in ("target", *SIDES):
        value = row.get(name)
        if isinstance(value, list) and name != unfold and not has_answer(value):
            told = "has no message of the role `assistant` to learn from"
            raise ValueProblem(f"{_told(name, names)} {told}, found {value!r:.80}")
    return row


def _split_sides(row: dict[str, Any]) -> None:
    """Move the common prefix of the two sides, if both are chats, to the prompt; if there is a chat
    as prompt, only if both begin with it."""
    chosen, rejected = (row.get(side) for side in SIDES)
    prompt = row.get("prompt")
    if not isinstance(chosen, list) or not isinstance(rejected, list):
        return
    shared = shared_messages(chosen, rejected)
    if isinstance(prompt, list):
        if not (shared >= len(prompt) and chosen[: len(prompt)] == prompt):
            return
        shared = len(prompt)
    if shared:
        row["prompt"] = chosen[:shared]
        row["chosen"], row["rejected"] = chosen[shared:], rejected[shared:]


def _read(row: dict[str, Any], name: str) -> str | None:
    """Convert a column in place; returns what is wrong with it, None if nothing is."""
    if name in TEXTS:
        row[name] = value = joined_parts(row[name])
        if value == "" and name == "prompt" and row.get("target") in (None, ""):
            return "is empty, so there is nothing to answer"
        return None if isinstance(value, str) else chat_problem(value)
    row[name] = value = _as_number(row[name])
    if not isinstance(value, float):
        return "must be a number"
    if name == "probability" and not 0 <= value <= 1:
        return "must be a number from 0 to 1"
    return None


def has_value(raw: Mapping[str, Any], column: str) -> bool:
    """Whether a row has a column, or a value at a path of keys by dots."""
    if column in raw:
        return True
    first, dot, rest = column.partition(".")
    inner = raw.get(first)
    return bool(dot) and isinstance(inner, Mapping) and has_value(inner, rest)


def value_at(raw: Mapping[str, Any], column: str) -> Any:
    """The value of a column, or at a path of keys by dots, of a row that has it."""
    if column in raw:
        return raw[column]
    first, _, rest = column.partition(".")
    return value_at(raw[first], rest)


def _told(name: str, names: Mapping[str, str]) -> str:
    own = names.get(name, name)
    return f"column `{own}`" + (f" (as `{name}`)" if own != name else "")


def half_character(value: Any) -> str | None:
    """A lone surrogate in a value, as in JSON that was cut inside an emoji, as `\\uXXXX`; None
    without one. It cannot be encoded as UTF-8."""
    if isinstance(value, str):
        if value.isascii():
            return None
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"\\u{ord(value[error.start]):04x}"
        return None
    inner: Iterable[Any] = ()
    if isinstance(value, Mapping):
        inner = chain(value, value.values())
    elif isinstance(value, list | tuple):
        inner = value
    return next((half for item in inner if (half := half_character(item)) is not None), None)


def _as_number(value: Any) -> Any:
    """Numbers, and texts with a number, as floats; other values unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        return float(value)
    except ValueError:
        return value
