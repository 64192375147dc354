"""How many rows a dataset gives in a step, and how long their texts are.

Lengths of built-in tasks are known; those of rows in the loop or in a file are measured, in a file
on the first rows. Otherwise they are those that the loop states, or assumed, with a note. Knows one
dataset at a time.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

from coloop.data.files.files import first_rows, start_of
from coloop.spec.data import LINED, FileFormat, FileSource, InlineSource
from coloop.spec.nodes import DatasetNode
from coloop.spec.plugins import Task
from coloop.spec.table_sizes import CHARACTERS_PER_TOKEN, TableSize

# The first rows of a file, read when a loop is planned: the length of its texts, and about how many
# rows it has.
#
# Large files are read only at the start. Nothing raises: a file that is missing, or that cannot be
# read cheaply, gives no numbers. Results are cached until the file changes.

SAMPLE_BYTES = 2**16
SAMPLE_ROWS = 256
ANSWERS = ("target", "completion", "chosen", "rejected", "answer")
"""Columns with texts that follow a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    prompts: tuple[int, ...]
    answers: tuple[int, ...]
    """The longest text after each prompt."""
    rows: int
    """Rows of the file; an estimate if only its start is read."""


def sample_file(source: FileSource, columns: Mapping[str, str], root: Path | None) -> Sample | None:
    """First rows of a file, None if unavailable here. `columns`: name in the loop to name in the
    file. Without `root` no file is opened."""
    form = source.written_as
    if root is None or form not in LINED:
        return None
    try:
        path = root / os.path.expanduser(source.path)
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            return None
        return _read(path, form, tuple(columns.items()), facts.st_mtime_ns, facts.st_size)
    except (OSError, ValueError):
        return None


def sample_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Sample:
    known = list(rows)
    prompt = columns.get("prompt", "prompt")
    answers = [columns.get(name, name) for name in ANSWERS]
    return Sample(
        prompts=tuple(_characters(row.get(prompt, "")) for row in known),
        answers=tuple(
            max((_characters(row[name]) for name in answers if name in row), default=0)
            for row in known
        ),
        rows=len(known),
    )


@lru_cache(maxsize=256)
def _read(
    path: Path, form: FileFormat, columns: tuple[tuple[str, str], ...], changed: int, size: int
) -> Sample | None:
    del changed, size
    start = start_of(path, SAMPLE_BYTES)
    every = list(first_rows(start, form))
    first = every[:SAMPLE_ROWS]
    seen = sample_rows(first, dict(columns))
    if not any(seen.prompts) and not any(seen.answers):
        return None
    count = len(every)
    if not start.is_whole:
        count = round(start.size * count / (start.data.rfind(b"\n") + 1))
    return Sample(prompts=seen.prompts, answers=seen.answers, rows=count)


def _characters(value: Any) -> int:
    """Length of a text, of a chat's messages, or of the JSON of another value."""
    if isinstance(value, list):
        return sum(
            len(str(message.get("content", "")))
            if isinstance(message, Mapping)
            else len(str(message))
            for message in value
        )
    return 0 if value is None else len(str(value))


UNKNOWN_CHARACTERS = (800, 1600)
"""Mean and maximum length of an unknown text."""
UNKNOWN_CHARACTERS_TINY = (32, 64)
"""The same for a loop over characters."""

TASK_CHARACTERS: dict[str, tuple[str, int, int, int, int]] = {
    "arithmetic": ("digits", 2, 2, 1, 2),
    "countdown": ("numbers", 3, 8, 4, 2),
    "sorting": ("length", 1, 3, 1, 2),
    "last_letter": ("words", 7, 4, 9, 4),
    "knights": ("people", 30, 10, 8, 4),
    "counting": ("length", 1, 8, 0, 3),
    "calculator": ("digits", 2, 8, 6, 16),
    "knowledge": ("hops", 8, 24, 6, 8),
    "proof": ("depth", 4, 16, 4, 8),
    "preference": ("length", 1, 6, 1, 2),
    "read_debate": ("facts", 20, 60, 0, 8),
    "two_halves": ("digits", 2, 4, 1, 2),
    "images": ("pixels", 0, 24, 0, 24),
}
"""By task: its size parameter, then characters of a prompt per unit and fixed, and the same for the
target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    texts: TableSize
    """Lengths in tokens; `written` is the longest text that follows a prompt."""
    reason: str = ""
    """Where the lengths come from; empty if the loop states them."""
    is_assumed: bool = False


def lengths_of(section: DatasetNode, root: Path | None, *, is_characters: bool) -> Lengths:
    """Text lengths of a dataset. Without `root` no file is opened."""
    source, scale = section.source, 1.0 if is_characters else 1 / CHARACTERS_PER_TOKEN
    if isinstance(source, InlineSource):
        return Lengths(texts=_measured(sample_rows(source.rows, section.columns), scale))
    if isinstance(source, Task):
        return Lengths(texts=_texts(*_task_characters(source), scale))
    if section.tokens is not None:  # whole rows: what is a prompt among it is not said
        return Lengths(texts=_texts(section.tokens.mean, section.tokens.max))
    if isinstance(source, FileSource):
        sample = sample_file(source, section.columns, root)
        if sample is not None:
            reason = f"measured on the first {len(sample.prompts)} rows of {source.path}"
            return Lengths(texts=_measured(sample, scale), reason=reason)
    mean, most = UNKNOWN_CHARACTERS_TINY if is_characters else UNKNOWN_CHARACTERS
    return Lengths(
        texts=_texts(mean, most, mean, most, scale),
        reason=f"assumed: the rows of a {source.type} are not known here",
        is_assumed=True,
    )


def rows_of(section: DatasetNode, root: Path | None) -> int | None:
    """Rows of a dataset, an estimate for a large file; None if unknown here."""
    source = section.source
    if section.unfold is not None:
        return None
    if isinstance(source, InlineSource):
        return len(source.rows)
    if isinstance(source, Task):
        return source.size
    if isinstance(source, FileSource):
        sample = sample_file(source, section.columns, root)
        return sample.rows if sample is not None else None
    return None


def steps_of_epochs(section: DatasetNode, epochs: float, root: Path | None) -> int | None:
    """Steps for this many passes over a dataset; None if its rows are unknown here."""
    rows = rows_of(section, root)
    if not rows:
        return None
    return ceil(epochs * rows / (section.rows_per_step or rows))


def _measured(sample: Sample, scale: float) -> TableSize:
    prompts, answers = sample.prompts, sample.answers
    longest = max(prompts, default=0), max(answers, default=0)
    return _texts(_mean(prompts), longest[0], _mean(answers), longest[1], scale)


def _texts(
    prompt: float,
    prompt_max: float,
    answer: float = 0.0,
    answer_max: float = 0.0,
    scale: float = 1.0,
) -> TableSize:
    return TableSize(
        prompt=prompt * scale,
        prompt_max=prompt_max * scale,
        written=answer * scale,
        written_max=answer_max * scale,
    )


def _task_characters(source: Task) -> tuple[float, float, float, float]:
    name, per_unit, fixed, target_unit, target_fixed = TASK_CHARACTERS.get(
        getattr(source, "task", ""), ("", 0, 32, 0, 16)
    )
    size = getattr(source, name, 0) if name else 0
    low, high = size if isinstance(size, tuple) else (size, size)
    if name == "digits" and hasattr(source, "operands"):
        operands = source.operands
        per_unit = operands[1] if isinstance(operands, tuple) else operands
    mean = (low + high) / 2
    return (
        per_unit * mean + fixed,
        per_unit * high + fixed,
        target_unit * mean + target_fixed,
        target_unit * high + target_fixed,
    )


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
