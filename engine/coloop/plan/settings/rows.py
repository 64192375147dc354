"""How many rows a dataset gives in a step, and how long their texts are.

Lengths of rows in the loop, of tasks and of files are measured, of tasks and files on the first
rows. Otherwise they are those that the loop states, or assumed, with a note. Knows one dataset at a
time.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

from coloop.data.files.files import first_rows, start_of
from coloop.spec.data import LINED, FileFormat, FileSource, InlineSource
from coloop.spec.lean import record
from coloop.spec.nodes import DatasetNode
from coloop.spec.plugins import Task
from coloop.spec.table_sizes import CHARACTERS_PER_TOKEN, TableSize
from coloop.spec.tasks import OwnTask

# The first rows of a file, read when a loop is planned: the length of its texts, and about how many
# rows it has.
#
# Large files are read only at the start. Nothing raises: a file that is missing, or that cannot be
# read cheaply, gives no numbers. Results are cached until the file changes.

SAMPLE_BYTES = 2**16
SAMPLE_ROWS = 256
ANSWERS = ("target", "completion", "chosen", "rejected", "answer")
"""Columns with texts that follow a prompt."""


@record
class Sample:
    prompts: tuple[int, ...]
    answers: tuple[int, ...]
    """The longest text after each prompt."""
    rows: int
    """Rows of the file; an estimate if only its start is read."""
    columns: tuple[tuple[str, float, int], ...] = ()
    """Other columns: name in the loop, mean and longest text."""


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
        columns=tuple(_other_columns(known, columns)),
    )


def _other_columns(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> Iterator[tuple[str, float, int]]:
    renamed = {columns.get(name, name) for name in ("prompt", "completion")}
    names = {name: name for row in rows for name in row if name not in renamed}
    names |= {name: told for name, told in columns.items() if told not in renamed}
    for name, told in names.items():
        sizes = [_characters(row[told]) for row in rows if told in row]
        if sizes:
            yield name, _mean(sizes), max(sizes)


@lru_cache(maxsize=256)
def _read(
    path: Path, form: FileFormat, columns: tuple[tuple[str, str], ...], changed: int, size: int
) -> Sample | None:
    del changed, size
    start = start_of(path, SAMPLE_BYTES)
    every = list(first_rows(start, form))
    first = every[:SAMPLE_ROWS]
    seen = sample_rows(first, dict(columns))
    if not seen.columns and not any(seen.prompts):
        return None
    count = len(every)
    if not start.is_whole:
        count = round(start.size * count / (start.data.rfind(b"\n") + 1))
    return replace(seen, rows=count)


def sample_task(source: Task, columns: Mapping[str, str]) -> Sample | None:
    """The first rows of a task, which are the same in every process; None if it makes none with
    these parameters. Those of a package are unknown: its task is imported by a run alone."""
    if not isinstance(source, OwnTask):
        return None
    most = min(source.size or TASK_ROWS, TASK_ROWS)
    return _made(type(source), source.model_dump_json(), tuple(columns.items()), most)


@lru_cache(maxsize=256)
def _made(
    kind: type[OwnTask], parameters: str, columns: tuple[tuple[str, str], ...], most: int
) -> Sample | None:
    from coloop.data.tasks import first_rows_of

    try:
        rows = first_rows_of(kind.model_validate_json(parameters), most)
    except ValueError:
        return None
    return sample_rows(rows, dict(columns)) if rows else None


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

TASK_ROWS = 32
"""Rows that a task makes to measure their lengths."""


@record
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
        sample = sample_task(source, section.columns)
        if sample is not None:
            return Lengths(texts=_measured(sample, scale))
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
    prompt, longest = _mean(prompts), max(prompts, default=0)
    if not longest:  # a template makes it of other columns
        others = [one for one in sample.columns if one[0] not in ANSWERS]
        _, prompt, longest = max(others, key=lambda one: one[1], default=("", 0.0, 0))
    texts = _texts(prompt, longest, _mean(answers), max(answers, default=0), scale)
    columns = tuple((name, mean * scale, most * scale) for name, mean, most in sample.columns)
    return replace(texts, columns=columns)


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


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
