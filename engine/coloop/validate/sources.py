"""A look into the files that datasets name: are they there, what columns do they have.

Only the start of a file is read. Paths count from the folder that the caller gives, and may be
made to stay in it. What was seen is kept until the file changes, because a loop is checked at
every edit. Parquet is not opened here: its reader is no part of the light line.

Invariant: nothing here raises; what cannot be read is told in `Glance.problem`.
"""

import csv
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from coloop.spec.data import FileSource
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import DatasetNode

READ_BYTES: Final = 65_536
FORMATS: Final[Mapping[str, str]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".csv": "csv",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """What the start of a file shows."""

    columns: frozenset[str] | None = None
    """Columns of its first rows, or `None` where they are not known."""
    is_whole: bool = False
    """Whether every row was seen, or the format has a header."""
    is_outside: bool = False
    """Whether the path leads out of the folder, where that is not allowed."""
    is_missing: bool = False
    is_empty: bool = False
    problem: str | None = None
    """Why nothing could be read."""


def format_of(source: FileSource) -> str | None:
    """How a file is written, by its section or its suffix."""
    return source.format or FORMATS.get(Path(source.path).suffix.lower())


def is_inside(root: Path, path: str) -> bool:
    """Whether a path, followed to its end, stays in the folder."""
    try:
        return (root / path).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def glance_at(source: FileSource, root: Path, *, is_confined: bool = False) -> Glance:
    """Look into a file, or remember what was seen when it was last looked into."""
    if is_confined and not is_inside(root, source.path):
        return Glance(is_outside=True)
    path = root / os.path.expanduser(source.path)
    try:
        facts = path.stat()
    except OSError:
        return Glance(is_missing=True)
    if not path.is_file():
        return Glance(is_missing=True)
    if facts.st_size == 0:
        return Glance(is_empty=True)
    return _read(path, format_of(source) or "", facts.st_mtime_ns, facts.st_size)


def columns_of_sources(
    spec: LoopSpec, root: Path | None, *, is_confined: bool = False
) -> dict[str, frozenset[str]]:
    """By dataset node: all columns of its file, where they can be known, mapped names included."""
    if root is None:
        return {}
    found: dict[str, frozenset[str]] = {}
    for name, node in spec.nodes.items():
        if isinstance(node, DatasetNode) and isinstance(node.source, FileSource):
            glance = glance_at(node.source, root, is_confined=is_confined)
            if glance.columns is not None and glance.is_whole:
                found[name] = glance.columns | node.columns.keys()
    return found


@lru_cache(maxsize=256)
def _read(path: Path, form: str, changed: int, size: int) -> Glance:
    del changed
    try:
        with path.open("rb") as file:
            start = file.read(READ_BYTES)
        if form == "csv":
            return _glance_at_csv(start)
        if form == "jsonl":
            return _glance_at_jsonl(start, is_whole=size <= READ_BYTES)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        return Glance(problem=str(error))
    return Glance()


def _glance_at_csv(start: bytes) -> Glance:
    text = start.decode("utf-8-sig", errors="replace")
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    if not header:
        return Glance(is_empty=True)
    return Glance(columns=frozenset(header), is_whole=True, is_empty=next(rows, None) is None)


def _glance_at_jsonl(start: bytes, *, is_whole: bool) -> Glance:
    lines = start.decode("utf-8-sig", errors="replace").splitlines()
    complete = lines if is_whole else lines[:-1]
    rows = [json.loads(line) for line in complete if line.strip()]
    if not rows:
        return Glance(is_empty=is_whole)
    keys = frozenset(key for row in rows if isinstance(row, dict) for key in row)
    return Glance(columns=keys, is_whole=is_whole)
