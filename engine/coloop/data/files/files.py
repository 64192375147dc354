"""Reads rows of local files by index: JSON and CSV by offsets, parquet by row groups, documents by
file.

JSON Lines and CSV files are memory-mapped, and only the offsets of their rows are kept. Rows have
the column names of the file; `data/sources.py` renames them. Errors are raised as RowProblem, with
the line.
"""

import bisect
import csv
import io
import json
import math
import os
import re
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

from coloop.data.files.compressed import Buffer, RowProblem, mapped, plain
from coloop.spec.data import FileFormat

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
BLANK: Final = b" \t\r\n" + BYTE_ORDER_MARK
SPACE: Final[Any] = re.compile(r"[ \t\r\n]*")
DECODER: Final = json.JSONDecoder()
LONGEST_FIELD: Final = 2**28
"""Maximum characters of a CSV value."""

CACHED_ROW_GROUPS: Final = 16
"""Maximum decoded row groups of a parquet file in memory."""

SHOWN_CHARACTERS: Final = 60


class RawRows(Protocol):
    """Rows by index, under the column names of their source."""

    size_bytes: int

    def __len__(self) -> int: ...

    def row(self, index: int) -> dict[str, Any]: ...

    def line_of(self, index: int) -> int:
        """The line (or row) number to show to a person, from 1."""
        ...


class _Records:
    """Records of a text file by index, with their offsets; rows are JSON objects."""

    def __init__(self, data: Buffer) -> None:
        self.size_bytes = len(data)
        self._data = data
        self.offsets = array("Q")
        self.ends = array("Q")
        self.lines = array("Q")
        self._problem: RowProblem | None = None
        """Raised for the last record, after which the file cannot be split into records."""

    def __len__(self) -> int:
        return len(self.offsets)

    def line_of(self, index: int) -> int:
        return self.lines[index]

    def row(self, index: int) -> dict[str, Any]:
        return _object_in(self.text(index), self.lines[index])

    def add(self, start: int, end: int, line: int) -> None:
        self.offsets.append(start)
        self.ends.append(end)
        self.lines.append(line)

    def add_problem(self, start: int, problem: RowProblem) -> None:
        self.add(start, self.size_bytes, problem.line or 0)
        self._problem = problem

    def text(self, index: int) -> str:
        """One record as text, without the newline."""
        if self._problem is not None and index == len(self.offsets) - 1:
            raise self._problem
        start = self.offsets[index]
        raw = self._data[start : self.ends[index]].strip(b"\r\n")
        try:
            return (raw.removeprefix(BYTE_ORDER_MARK) if start == 0 else raw).decode("utf-8")
        except UnicodeDecodeError as error:
            raise RowProblem(
                f"is not UTF-8 (byte {error.start + 1} of the line)", line=self.lines[index]
            ) from None


def _lines_of(data: Buffer) -> Iterator[tuple[int, int]]:
    """Start and end of each line, newline included."""
    start, size = 0, len(data)
    while start < size:
        end = data.find(b"\n", start) + 1 or size
        yield start, end
        start = end


class JsonLines(_Records):
    """One JSON object a line; blank lines are skipped."""

    def __init__(self, data: Buffer) -> None:
        super().__init__(data)
        for line, (start, end) in enumerate(_lines_of(data), 1):
            if data[start:end].strip(BLANK):
                self.add(start, end, line)


def _object_in(text: str, line: int) -> dict[str, Any]:
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
    raise ValueError(f"{name} is not a JSON number")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(text: str) -> str:
    cut = text[:SHOWN_CHARACTERS]
    return repr(cut + "..." if len(text) > SHOWN_CHARACTERS else cut)


class JsonArray(_Records):
    def __init__(self, data: Buffer) -> None:
        super().__init__(data)
        # In latin-1, offsets are byte offsets; the contents of strings do not matter here.
        text = data[:].decode("latin-1")
        start = SPACE.match(text, len(BYTE_ORDER_MARK) * text.startswith("\xef\xbb\xbf")).end()
        try:
            self._index(text, start)
        except RowProblem:
            raise
        except (ValueError, RecursionError) as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else start
            line = text.count("\n", 0, at) + 1
            what = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            problem = RowProblem(f"is not JSON: {what}: {_shown(text[at:])}", line=line)
            self.add_problem(start, problem)

    def _index(self, text: str, start: int) -> None:
        if text[start : start + 1] != "[":
            value, _ = DECODER.raw_decode(text, start)
            raise RowProblem(
                f"holds {_whole_kind(value)}, expected a list of objects: `[{{...}}, {{...}}]`"
            )
        start = SPACE.match(text, start + 1).end()
        line, counted = 1, 0
        while text[start : start + 1] != "]" or len(self):
            _, end = DECODER.raw_decode(text, start)
            line, counted = line + text.count("\n", counted, start), start
            self.add(start, end, line)
            start = SPACE.match(text, end).end()
            if text[start : start + 1] == "]":
                break
            if text[start : start + 1] != ",":
                raise json.JSONDecodeError("a comma or `]` is expected", text, start)
            start = SPACE.match(text, start + 1).end()
        rest = SPACE.match(text, start + 1).end()
        if rest < len(text):
            raise json.JSONDecodeError("there is text after the list", text, rest)


def _whole_kind(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(f"`{name}`" for name in [*value][:10])
        return f"one object with {names or 'no keys'}"
    return _kind(value)


class Delimited(_Records):
    """CSV, or text with another separator, with a header; values are texts, and quoted ones may
    span lines. Records are those of Python's csv, for which a quote within an unquoted value is an
    ordinary character."""

    def __init__(self, data: Buffer, separator: str) -> None:
        super().__init__(data)
        self._separator = separator
        self._index(data)
        self.header = self._fields(0) if self.offsets else []
        for name in self.header:
            if not name or self.header.count(name) > 1:
                what = f"has two columns {name!r}" if name else "has a column without a name"
                raise RowProblem(f"{what} in its header", line=self.lines[0])

    def _index(self, data: Buffer) -> None:
        lines = _CountedLines(data)
        reader = self._reader(lines)
        start, line = lines.end, 1
        while True:
            try:
                record = next(reader, None)
            except csv.Error as error:
                self.add_problem(start, RowProblem(f"is not CSV: {error}", line=line))
                return
            if record is None:
                return
            if len(record) > 1 or (record and record[0].strip(" \t")):
                self.add(start, lines.end, line)
            start, line = lines.end, lines.count + 1

    def __len__(self) -> int:
        return max(0, len(self.offsets) - 1)

    def line_of(self, index: int) -> int:
        return self.lines[index + 1]

    def row(self, index: int) -> dict[str, Any]:
        fields = self._fields(index + 1)
        if len(fields) != len(self.header):
            raise RowProblem(
                f"has {len(fields)} values, the header has {len(self.header)} columns",
                line=self.line_of(index),
            )
        return dict(zip(self.header, fields, strict=True))

    def _fields(self, record: int) -> list[str]:
        text = self.text(record)
        return next(self._reader(io.StringIO(text, newline="")), [])

    def _reader(self, lines: Iterable[str]) -> Any:
        csv.field_size_limit(max(LONGEST_FIELD, csv.field_size_limit()))
        return csv.reader(lines, delimiter=self._separator, strict=True)


class _CountedLines:
    """Lines of a file decoded byte by byte: CSV separators and quotes are ASCII."""

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self.end = len(BYTE_ORDER_MARK) if data[:3] == BYTE_ORDER_MARK else 0
        """End offset of the last line that was read."""
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for start, end in _lines_of(self._data):
            for line in self._data[max(start, self.end) : end].splitlines(keepends=True):
                self.end += len(line)
                self.count += 1
                yield line.decode("latin-1")


class Parquet:
    """A parquet file; at most CACHED_ROW_GROUPS decoded row groups are in memory."""

    def __init__(self, path: Path) -> None:
        # A process that reads no parquet does without some 40 MiB and a thread.
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.size_bytes = path.stat().st_size
        self._problems = (pa.ArrowException, OSError)
        try:
            self._file = pq.ParquetFile(path, memory_map=True)
        except self._problems as error:
            raise RowProblem(f"is not a parquet file: {error}") from None
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
        return {name: plain_value(value) for name, value in values.items()}

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
    """Text files, one per row, each read on demand."""

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


def plain_value(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case float() if not math.isfinite(value):
            return None
        case list():
            return [plain_value(item) for item in value]
        case dict():
            return {name: plain_value(item) for name, item in value.items()}
        case bytes():
            return value.decode("utf-8", errors="replace")
    return value


def open_file(path: Path, file_format: FileFormat) -> RawRows:
    """Rows of a file, or of a folder of documents; raises RowProblem for invalid contents, or
    OSError."""
    match file_format:
        case "text":
            return Documents(path)
        case "parquet":
            return Parquet(path)
    return open_buffer(mapped(path), file_format)


def open_buffer(data: Buffer, file_format: FileFormat) -> RawRows:
    """Rows of a text file's contents."""
    match file_format:
        case "csv":
            return Delimited(data, ",")
        case "tsv":
            return Delimited(data, "\t")
        case "json" if not _is_lines(data):
            return JsonArray(data)
    return JsonLines(data)


def _is_lines(data: Buffer) -> bool:
    """Whether a JSON file has one object per line, as many `.json` files do."""
    first = next(filter(None, (data[a:b].strip(BLANK) for a, b in _lines_of(data))), b"")
    if not first.startswith(b"{"):
        return not first
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The decompressed start of a file, for checks and estimates of large ones."""

    data: bytes
    is_whole: bool
    size: int
    """Decompressed bytes of the whole file; estimated if a compressed one is not read whole."""


def start_of(path: Path, most: int) -> Start:
    """Up to `most` decompressed bytes of a file; raises RowProblem if it is damaged, or OSError."""
    whole = os.stat(path).st_size
    with plain(path) as (stream, raw):
        parts, size = [], 0
        while size <= most and (part := stream.read(min(2**20, most + 1 - size))):
            parts.append(part)
            size += len(part)
        read = size if stream is raw else raw.tell()
    data = b"".join(parts)
    if size <= most:
        return Start(data=data, is_whole=True, size=size)
    return Start(data=data[:most], is_whole=False, size=round(whole * size / max(1, read)))


def first_rows(start: Start, form: FileFormat) -> Iterator[dict[str, Any]]:
    """The complete rows in the start of a file; of a partial one, up to the first invalid row.

    Raises:
        RowProblem: a row of a whole file cannot be read.
    """
    data = start.data if start.is_whole else start.data[: start.data.rfind(b"\n") + 1]
    try:
        rows = open_buffer(data, form)
        for index in count():
            if index >= len(rows):
                return
            yield rows.row(index)
    except RowProblem:
        if start.is_whole:
            raise


COLUMNS = ("text", "title", "path")
"""Columns of a document: its text, its name without suffix, its path."""


def documents_in(path: Path) -> Iterator[Path]:
    """The files below a folder, sorted by name, without hidden ones; of a file, itself.

    Raises:
        ValueError: a link leads out of the folder.
        OSError: a folder cannot be read.
    """
    if not path.is_dir():
        yield path
        return
    yield from _below(path, path.resolve())


def _below(folder: Path, root: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        named = sorted(entries, key=lambda entry: entry.name)
    for entry in named:
        path = folder / entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and not path.resolve().is_relative_to(root):
            raise ValueError(f"`{entry.name}` is a link that leads outside the folder")
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path, root)
        elif entry.is_file():
            yield path
