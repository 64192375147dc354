"""The first rows of a file, read when a loop is planned: how long its texts are, and about how many
rows it has.

Of a large file as little is read as of a small one. Nothing raises: a file that is not here, or
that cannot be read cheaply, shows nothing. What was seen is kept until the file changes.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from coloop.data.files import first_rows, start_of
from coloop.spec.data import LINED, FileFormat, FileSource

SAMPLE_BYTES = 2**16
SAMPLE_ROWS = 256
ANSWERS = ("target", "completion", "chosen", "rejected", "answer")
"""Columns of texts that follow a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What rows show, lengths in characters."""

    prompts: tuple[int, ...]
    answers: tuple[int, ...]
    """The longest of the texts that follow each prompt."""
    rows: int
    """Of the whole file; of one that is longer than what is read of it, about so many."""


def sample_file(source: FileSource, columns: Mapping[str, str], root: Path | None) -> Sample | None:
    """The first rows of a file; None where they are not known here.

    Args:
        columns: name in the loop: name in the file.
        root: folder for relative paths; without it no file is opened.
    """
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
    """Of rows that are at hand, all of them."""
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
    """Of a text, of a chat's messages, or of anything else as it is written."""
    if isinstance(value, list):
        return sum(
            len(str(one.get("content", ""))) if isinstance(one, Mapping) else len(str(one))
            for one in value
        )
    return 0 if value is None else len(str(value))
