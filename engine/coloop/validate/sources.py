"""A look into the files that datasets name: whether they exist, and which columns their rows have.

A parquet file has a schema; documents all have the same columns. Another file is read whole up to
`WHOLE_BYTES`; of a larger one only the start is read, of plain JSON Lines samples all over it, and
`Glance.is_whole` is False. Paths are relative to the folder that the caller gives.
Results are cached until a file changes, because a loop is checked at every edit.

Invariant: nothing here raises; `Glance.problem` tells why a file cannot be read.
"""

import importlib
import json
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO, Final

from coloop.data.files.compressed import RowProblem
from coloop.data.files.files import (
    COLUMNS,
    documents_in,
    first_rows,
    open_buffer,
    open_file,
    start_of,
)
from coloop.data.files.values import ValueProblem, has_value, read_values
from coloop.spec.data import LINED, FileFormat, FileSource, InlineSource, compression_of
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.nodes import DatasetNode

WHOLE_BYTES: Final = 64 * 2**20
"""Files up to this size are read whole, as before a run."""
STRETCHES: Final = 64
STRETCH_BYTES: Final = 64 * 1024
"""Size of each of the `STRETCHES` samples of a larger JSON Lines file."""
CHECKED_BYTES: Final = 8 * 2**20
"""Every value of files up to this size is checked; larger files when a run opens them."""
ROWS_AT_ONCE: Final = 500
MOST_COLUMNS: Final = 10_000
"""With more columns than this, none are reported."""

_Row = tuple[Mapping[str, object], int | None]
"""A row and its line; None if earlier lines were skipped."""
PlacedRows = Iterable[tuple[str, Mapping[str, object]]]
"""Rows with their location for messages: `row 2`."""
ProblemIn = Callable[[PlacedRows], str | None]
"""Finds a problem in rows, else None. Hashable, because results are cached by it."""


@dataclass(frozen=True, slots=True)
class Lack:
    rows: int
    line: int | None
    """Line of the first of these rows, from 1; None if earlier lines were skipped."""

    @property
    def first(self) -> str:
        """End of a message: where the first of these rows is; empty if that is not known."""
        return "" if self.line is None else f", first in line {self.line}"


@record
class Glance:
    columns: frozenset[str] | None = None
    """Columns of any row; None if not known."""
    lacking: Mapping[str, Lack] = field(default_factory=dict)
    """Columns that only some rows have, and the rows without them."""
    rows: int = 0
    """Number of rows read; 0 if the format itself names the columns."""
    is_whole: bool = False
    """Whether every row was read, or the format names the columns."""
    is_missing: bool = False
    is_empty: bool = False
    problem: str | None = None

    @property
    def common(self) -> frozenset[str]:
        return (self.columns or frozenset()) - self.lacking.keys()


def glance_at(source: FileSource, root: Path) -> Glance:
    """Look into a file."""
    path = root / os.path.expanduser(source.path)
    try:
        facts = path.stat()
    except OSError:
        return Glance(is_missing=True)
    if source.written_as is None:
        return Glance()
    if source.written_as == "text":
        return _glance_at_documents(path)
    if not path.is_file():
        return Glance(is_missing=True)
    if facts.st_size == 0:
        return Glance(is_empty=True)
    return _read(path, source.written_as, facts.st_mtime_ns, facts.st_size)


def glance_at_rows(rows: Iterable[Mapping[str, object]]) -> Glance:
    """The same for inline rows; the line is the row number."""
    numbered: list[_Row] = list(zip(rows, count(1), strict=False))
    return _glance_at_rows([numbered], is_whole=True)


def problem_of_rows(
    source: FileSource | InlineSource, root: Path, problem_in: ProblemIn
) -> str | None:
    """The first problem in a source's rows; None also for files above `CHECKED_BYTES`. Cached."""
    if isinstance(source, InlineSource):
        return problem_in((f"row {index}", row) for index, row in enumerate(source.rows, 1))
    path, form = root / os.path.expanduser(source.path), source.written_as
    try:
        facts = path.stat()
        if form is None or not path.is_file() or facts.st_size > CHECKED_BYTES:
            return None
        return _problem_in(path, form, problem_in, facts.st_mtime_ns, facts.st_size)
    except (OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=256)
def _problem_in(
    path: Path, form: FileFormat, problem_in: ProblemIn, changed: int, size: int
) -> str | None:
    del changed, size
    rows = open_file(path, form)
    counted = "line" if form in LINED else "row"
    return problem_in(
        (f"{counted} {rows.line_of(index)}", rows.row(index)) for index in range(len(rows))
    )


@dataclass(frozen=True, slots=True)
class Values:
    """Finds columns with invalid values; rows that cannot be parsed are reported elsewhere."""

    columns: tuple[tuple[str, str], ...]
    unfold: str | None

    def __call__(self, rows: PlacedRows) -> str | None:
        for where, row in rows:
            names = {name: own for name, own in self.columns if has_value(row, own)}
            try:
                read_values(row, names, self.unfold)
            except ValueProblem as problem:
                return f"{where}: {problem}"
        return None


def glances(spec: LoopSpec, root: Path | None) -> dict[str, Glance]:
    """Glances by dataset node, for those whose columns can be seen."""
    if root is None:
        return {}
    looks = {
        name: glance_at(node.source, root)
        for name, node in spec.nodes.items()
        if isinstance(node, DatasetNode) and isinstance(node.source, FileSource)
    }
    return {name: glance for name, glance in looks.items() if glance.columns is not None}


@lru_cache(maxsize=256)
def _read(path: Path, form: FileFormat, changed: int, size: int) -> Glance:
    del changed
    try:
        if form == "parquet":
            return _glance_at_parquet(path)
        if form == "jsonl" and compression_of(path) is None:
            return _glance_at_jsonl(path, size)
        return _glance_at_start(path, form)
    except RowProblem as problem:
        where = "" if problem.line is None else f"line {problem.line} "
        return Glance(problem=f"{where}{problem}")
    except (OSError, ValueError, RecursionError) as error:
        return Glance(problem=str(error))


def _glance_at_documents(path: Path) -> Glance:
    try:
        is_empty = next(documents_in(path), None) is None
    except (OSError, ValueError) as error:
        return Glance(problem=str(error))
    return Glance(columns=frozenset(COLUMNS), is_whole=True, is_empty=is_empty)


def _glance_at_start(path: Path, form: FileFormat) -> Glance:
    """All rows of a line-based file; of a long one those at its start."""
    start = start_of(path, WHOLE_BYTES)
    if not start.is_whole:
        return _glance_at_rows([[(row, None) for row in first_rows(start, form)]], is_whole=False)
    rows = open_buffer(start.data, form)
    numbered: list[_Row] = [(rows.row(index), rows.line_of(index)) for index in range(len(rows))]
    return _glance_at_rows([numbered], is_whole=True)


def _glance_at_parquet(path: Path) -> Glance:
    """Its schema; nothing if parquet support is not installed."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return Glance()
    file = parquet.ParquetFile(path)
    return Glance(
        columns=frozenset(file.schema_arrow.names),
        is_whole=True,
        is_empty=file.metadata.num_rows == 0,
    )


def _glance_at_jsonl(path: Path, size: int) -> Glance:
    is_whole = size <= WHOLE_BYTES
    with path.open("rb") as file:
        if is_whole:
            return _glance_at_rows(_rows_of(_lines(file, 0, size)), is_whole=True)
        step = (size - STRETCH_BYTES) // (STRETCHES - 1)
        parts = (_lines(file, step * index, STRETCH_BYTES) for index in range(STRETCHES))
        return _glance_at_rows((some for part in parts for some in _rows_of(part)), is_whole=False)


def _lines(file: BinaryIO, start: int, length: int) -> Iterator[tuple[bytes, int | None]]:
    """Complete lines that start in a part of a file, with their numbers if known."""
    file.seek(start)
    if start:
        file.readline()
    line_number = 0
    while file.tell() < start + length and (line := file.readline()):
        line_number += 1
        text = line.removeprefix(BOM_UTF8) if start == 0 and line_number == 1 else line
        if text.strip():
            yield text, None if start else line_number


def _rows_of(lines: Iterator[tuple[bytes, int | None]]) -> Iterator[list[_Row]]:
    """Rows of lines; many are parsed as one list, which is several times as fast."""
    while some := list(islice(lines, ROWS_AT_ONCE)):
        try:
            rows = json.loads(b"[" + b",".join(line for line, _ in some) + b"]")
        except ValueError:
            rows = []
        if len(rows) != len(some) or not all(isinstance(row, dict) for row in rows):
            rows = [_read_row(line, line_number) for line, line_number in some]
        yield [(row, line_number) for row, (_, line_number) in zip(rows, some, strict=True)]


def _read_row(line: bytes, line_number: int | None) -> dict[str, object]:
    where = "a line" if line_number is None else f"line {line_number}"
    try:
        # As text: of bytes, json would guess the encoding.
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 (byte {error.start + 1} of the line)") from None
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{where} is not an object with columns")
    return row


def _glance_at_rows(parts: Iterable[list[_Row]], *, is_whole: bool) -> Glance:
    """Counts columns in batches, grouping rows with the same ones."""
    total, first_line = 0, None
    having: dict[str, int] = {}
    first_without: dict[str, int | None] = {}
    for part in parts:
        shapes: dict[frozenset[str], list[int | None]] = {}
        for row, line in part:
            shapes.setdefault(frozenset(row), []).append(line)
        for columns, lines in shapes.items():
            if total == 0:
                first_line = lines[0]
            for column in columns - having.keys():
                having[column] = 0
                if total:
                    first_without[column] = first_line
            for column in having.keys() - columns:
                first_without.setdefault(column, lines[0])
            for column in columns:
                having[column] += len(lines)
            total += len(lines)
        if len(having) > MOST_COLUMNS:
            return Glance()
    lacking = {name: Lack(total - having[name], line) for name, line in first_without.items()}
    return Glance(
        columns=frozenset(having) if total else None,
        lacking=lacking,
        rows=total,
        is_whole=is_whole,
        is_empty=is_whole and not total,
    )
