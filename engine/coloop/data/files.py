"""Rows of local files by number: jsonl and csv by an index of line offsets, parquet by row groups,
documents file by file.

A file is mapped into memory and never read whole into Python objects, so a huge one costs eight
bytes a row. Rows keep their own column names here; what the loop calls them is decided in
sources.py. Problems are raised as RowProblem, which knows the line.
"""

import bisect
import csv
import io
import json
import math
import mmap
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Protocol

from coloop.documents import documents_in
from coloop.spec.data import FileFormat

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

CACHED_ROW_GROUPS: Final = 16
"""Row groups of a parquet file held decoded at once."""

SHOWN_CHARACTERS: Final = 60


class RowProblem(ValueError):
    """What is wrong in a file; `line` counts from 1 and is None where the whole file is meant."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class RawRows(Protocol):
    """Rows by number, under the names that their source gave them."""

    size_bytes: int

    def __len__(self) -> int: ...

    def row(self, index: int) -> dict[str, Any]:
        """The row of this number, counted from 0."""
        ...

    def line_of(self, index: int) -> int:
        """The line (or row) that a person would look for, counted from 1."""
        ...


class MappedLines:
    """A text file in memory-mapped form with the offset of each record."""

    def __init__(self, path: Path, *, quoted: bool) -> None:
        self.size_bytes = path.stat().st_size
        self._map: mmap.mmap | None = None
        self.offsets = array("Q")
        self.lines = array("Q")
        if self.size_bytes:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for line, offset in _records(self._map, quoted=quoted):
                self.offsets.append(offset)
                self.lines.append(line)

    def record(self, index: int) -> bytes:
        """One record's bytes, without the line's end."""
        assert self._map is not None
        start = self.offsets[index]
        end = self.offsets[index + 1] if index + 1 < len(self.offsets) else self.size_bytes
        raw = self._map[start:end].strip(b"\r\n")
        return raw.removeprefix(BYTE_ORDER_MARK) if start == 0 else raw

    def text(self, index: int) -> str:
        """One record as text."""
        try:
            return self.record(index).decode("utf-8")
        except UnicodeDecodeError as error:
            raise RowProblem(
                f"is not UTF-8 (byte {error.start + 1} of the line)", line=self.lines[index]
            ) from None


def _records(mapped: mmap.mmap, *, quoted: bool) -> Iterator[tuple[int, int]]:
    """(line, offset) of each record that is not blank; a quoted line break ends none."""
    offset, line, quotes, start = 0, 0, 0, (1, 0)
    mapped.seek(0)
    while raw := mapped.readline():
        line += 1
        if quotes % 2 == 0:
            start = (line, offset)
        if quoted:
            quotes += raw.count(b'"')
        if start[0] == line and raw.strip(b" \t\r\n" + BYTE_ORDER_MARK):
            yield start
        offset += len(raw)


class JsonLines:
    """One JSON object a line; blank lines are skipped."""

    def __init__(self, path: Path) -> None:
        self._lines = MappedLines(path, quoted=False)
        self.size_bytes = self._lines.size_bytes

    def __len__(self) -> int:
        return len(self._lines.offsets)

    def line_of(self, index: int) -> int:
        return self._lines.lines[index]

    def row(self, index: int) -> dict[str, Any]:
        text, line = self._lines.text(index), self.line_of(index)
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise RowProblem("is nested too deeply", line=line) from None
        except ValueError as error:
            raise RowProblem(f"is not JSON: {error} in {_shown(text)}", line=line) from None
        if not isinstance(value, dict):
            raise RowProblem(
                f"is {_kind(value)}, expected an object with columns: {_shown(text)}", line=line
            )
        return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number that JSON has")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(text: str) -> str:
    cut = text[:SHOWN_CHARACTERS]
    return repr(cut + "..." if len(text) > SHOWN_CHARACTERS else cut)


class CommaSeparated:
    """CSV with a header line; values are texts, quoted ones may span lines."""

    def __init__(self, path: Path) -> None:
        self._lines = MappedLines(path, quoted=True)
        self.size_bytes = self._lines.size_bytes
        self.header = self._fields(0) if self._lines.offsets else []
        for name in self.header:
            if not name or self.header.count(name) > 1:
                what = f"has the column {name!r} twice" if name else "has a column without a name"
                raise RowProblem(f"{what} in its header", line=1)

    def __len__(self) -> int:
        return max(0, len(self._lines.offsets) - 1)

    def line_of(self, index: int) -> int:
        return self._lines.lines[index + 1]

    def row(self, index: int) -> dict[str, Any]:
        fields = self._fields(index + 1)
        if len(fields) != len(self.header):
            raise RowProblem(
                f"has {len(fields)} values, the header names {len(self.header)} columns",
                line=self.line_of(index),
            )
        return dict(zip(self.header, fields, strict=True))

    def _fields(self, record: int) -> list[str]:
        text = self._lines.text(record)
        try:
            return next(csv.reader(io.StringIO(text, newline=""), strict=True), [])
        except csv.Error as error:
            raise RowProblem(f"is not CSV: {error}", line=self._lines.lines[record]) from None


class Parquet:
    """A parquet file; a few decoded row groups are kept, the rest stays on disk."""

    def __init__(self, path: Path) -> None:
        # A process that reads no parquet does without some 40 MiB and a thread.
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.size_bytes = path.stat().st_size
        self._problems = (pa.ArrowException, OSError)
        try:
            self._file = pq.ParquetFile(path, memory_map=True)
        except self._problems as error:
            raise RowProblem(f"is no parquet file: {error}") from None
        self.columns: list[str] = list(self._file.schema_arrow.names)
        self._starts = [0]
        for group in range(self._file.num_row_groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)
        self._decoded: OrderedDict[int, Any] = OrderedDict()

    def __len__(self) -> int:
        return self._starts[-1]

    def line_of(self, index: int) -> int:
        return index + 1

    def row(self, index: int) -> dict[str, Any]:
        group = bisect.bisect_right(self._starts, index) - 1
        table = self._group(group)
        values: dict[str, Any] = table.slice(index - self._starts[group], 1).to_pylist()[0]
        return {name: _plain(value) for name, value in values.items()}

    def _group(self, group: int) -> Any:
        if group not in self._decoded:
            try:
                self._decoded[group] = self._file.read_row_group(group)
            except self._problems as error:
                raise RowProblem(f"cannot be read in row group {group + 1}: {error}") from None
            if len(self._decoded) > CACHED_ROW_GROUPS:
                self._decoded.popitem(last=False)
        self._decoded.move_to_end(group)
        return self._decoded[group]


class Documents:
    """Text files, each of them a row; one is read when its row is wanted."""

    def __init__(self, path: Path) -> None:
        self._root = path if path.is_dir() else path.parent
        try:
            self._files = [*documents_in(path)]
        except ValueError as error:
            raise RowProblem(f"cannot be read: {error}") from None
        self.size_bytes = sum(file.stat().st_size for file in self._files)

    def __len__(self) -> int:
        return len(self._files)

    def line_of(self, index: int) -> int:
        return index + 1

    def row(self, index: int) -> dict[str, Any]:
        file = self._files[index]
        name = file.relative_to(self._root).as_posix()
        try:
            text = file.read_bytes().removeprefix(BYTE_ORDER_MARK).decode("utf-8")
        except UnicodeDecodeError as error:
            raise RowProblem(
                f"has a file {name} that is not UTF-8 (byte {error.start + 1})"
            ) from None
        except OSError as error:
            raise RowProblem(f"has a file {name} that cannot be read: {error.strerror}") from None
        return {"text": text, "title": file.stem, "path": name}


def _plain(value: Any) -> Any:
    """A value of parquet as one that JSON has."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float() if not math.isfinite(value):
            return None
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case bytes():
            return value.decode("utf-8", errors="replace")
    return value


def open_file(path: Path, file_format: FileFormat) -> RawRows:
    """Rows of a file, or of a folder of documents."""
    match file_format:
        case "jsonl":
            return JsonLines(path)
        case "csv":
            return CommaSeparated(path)
        case "text":
            return Documents(path)
        case _:
            return Parquet(path)
