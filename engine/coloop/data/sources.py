"""Opens the source of a dataset: a task, a file, the Hugging Face Hub, or rows in the loop itself.

    source --raw row--> columns mapped --> types checked --> row of the loop

Mistakes of the user raise a DataError that names node, field, file, line and column. Small sources
are checked whole when opened, so that a run does not stop in the middle; of large ones the first
rows are checked, and the others when they are read.
"""

import difflib
import hashlib
import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coloop.data.files.compressed import RowProblem
from coloop.data.files.files import RawRows, documents_in, open_file
from coloop.data.files.values import ValueProblem, has_value, read_values
from coloop.data.tasks import rows_of
from coloop.data.tasks.base import TaskProblem, permuted, stable_hash
from coloop.errors import CheckpointError, DataError
from coloop.spec.data import LINED, FileSource, HubSource, InlineSource, unknown_format
from coloop.spec.nodes import DatasetNode

CHECKED_BYTES: Final = 64 * 2**20
"""Files up to this size are checked row by row when opened."""

CHECKED_ROWS: Final = 1000
"""Rows of a larger source that are checked when it is opened."""


MARKED_PARTS: Final = 64
MARKED_BYTES: Final = 2**20
"""Bytes of each part of a larger file that are hashed."""


class ListedRows:
    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self.rows)

    def line_of(self, index: int) -> int:
        return index + 1

    def row(self, index: int) -> dict[str, Any]:
        return dict(self.rows[index])


def mark_of(source: object, root: Path) -> str | None:
    """Fingerprint of a file source: a SHA-256 over names, sizes and contents, of large files over
    samples. None for other sources, and for files that cannot be read."""
    if not isinstance(source, FileSource):
        return None
    path = root / os.path.expanduser(source.path)
    checksum = hashlib.sha256()
    try:
        for file in documents_in(path):
            size = file.stat().st_size
            checksum.update(f"{file.relative_to(path).as_posix()} {size}\n".encode())
            with file.open("rb") as data:
                for part in range(MARKED_PARTS) if size > CHECKED_BYTES else range(1):
                    data.seek(part * (size - MARKED_BYTES) // (MARKED_PARTS - 1))
                    checksum.update(data.read(size if size <= CHECKED_BYTES else MARKED_BYTES))
    except (OSError, ValueError):
        return None
    return checksum.hexdigest()


class Source:
    """Rows of a dataset by index, with the column names of the loop."""

    def __init__(
        self,
        raw: RawRows,
        *,
        node: str,
        where: str,
        field: str,
        columns: Mapping[str, str],
        line: str = "row",
        unfold: str | None = None,
    ) -> None:
        """
        Args:
            line: unit of row numbers in messages.
            unfold: a list column whose entries become rows.
        """
        self._unfold = unfold
        self._raw = raw
        self._node = node
        self._where = where
        self._field = field
        self._names = dict(columns)
        self._line = line
        self._nulls: set[str] = set()
        if len(raw) == 0:
            raise self._problem("has no rows")
        checked = len(raw) if raw.size_bytes <= CHECKED_BYTES else min(len(raw), CHECKED_ROWS)
        seen: dict[str, None] = {}
        for index in range(checked):
            seen.update(dict.fromkeys(self.row(index)))
        self.columns = tuple(seen)
        self.nulls = tuple(sorted(self._nulls))
        """Columns of chats and tools from which null keys were dropped."""

    def __len__(self) -> int:
        return len(self._raw)

    def row(self, index: int) -> dict[str, Any]:
        """A row with the source's columns, mapped ones also by the loop's names; or DataError."""
        line = self._raw.line_of(index)
        try:
            raw = self._raw.row(index)
        except RowProblem as problem:
            raise self._problem(str(problem), line=problem.line) from None
        for name, source in self._names.items():
            if not has_value(raw, source):
                raise self._missing(name, source, list(raw), line)
        try:
            return read_values(raw, self._names, self._unfold, self._nulls)
        except ValueProblem as problem:
            raise self._problem(str(problem), line=line) from None

    def _missing(self, name: str, source: str, there: list[str], line: int) -> DataError:
        near = difflib.get_close_matches(source, there, n=1, cutoff=0.5)
        lower = {known.lower(): known for known in there}
        hint = lower.get(source.lower()) or (near[0] if near else None)
        told = f"; did you mean `{hint}`?" if hint else ""
        columns = ", ".join(f"`{known}`" for known in there) or "none"
        return self._problem(
            f"has no column `{source}` for `{name}`; it has {columns}{told}",
            line=line if line > self._raw.line_of(0) else None,
            field=f"columns.{name}",
        )

    def _problem(
        self, message: str, *, line: int | None = None, field: str | None = None
    ) -> DataError:
        where = f"{self._where}, {self._line} {line}," if line is not None else self._where
        return _problem(self._node, field or self._field, f"{where} {message}")


def _problem(node: str, field: str, message: str) -> DataError:
    return DataError(f"{node}: {field}: {message}", node, field)


def open_source(node: DatasetNode, *, node_id: str, root: Path) -> Source:
    """The rows of a dataset node; relative paths start at `root`, the folder of the loop."""
    raw, where, field = _open_raw(node, node_id, root)
    is_lined = isinstance(node.source, FileSource) and node.source.written_as in LINED
    return Source(
        raw,
        node=node_id,
        where=where,
        field=field,
        columns=node.columns,
        line="line" if is_lined else "row",
        unfold=node.unfold,
    )


def _open_raw(node: DatasetNode, node_id: str, root: Path) -> tuple[RawRows, str, str]:
    source = node.source
    match source:
        case FileSource():
            return _open_path(source, node_id, root)
        case InlineSource():
            return ListedRows(source.rows), "the rows", "source.rows"
        case HubSource():
            return _open_hub(source, node_id), f"{source.path}:{source.split}", "source.path"
        case _:
            try:
                return ListedRows(rows_of(source)), f"task {source.task}", "source"
            except TaskProblem as problem:
                raise _problem(node_id, f"source.{problem.field}", str(problem)) from None


def _open_path(source: FileSource, node_id: str, root: Path) -> tuple[RawRows, str, str]:
    path = root / os.path.expanduser(source.path)
    field = "source.path"
    file_format = source.written_as
    if path.is_dir() and file_format != "text":
        raise _problem(
            node_id,
            "source.format",
            f"{path} is a folder; set `format: text` if each file in it is a row, or use one file",
        )
    if not path.exists():
        near = difflib.get_close_matches(path.name, _names_beside(path), n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise _problem(node_id, field, f"file {path} does not exist{hint}")
    if file_format is None:
        raise _problem(node_id, "source.format", f"{path} {unknown_format(source)}")
    try:
        return open_file(path, file_format), str(path), field
    except RowProblem as problem:
        line = f", line {problem.line}," if problem.line else ""
        raise _problem(node_id, field, f"{path}{line} {problem}") from None
    except OSError as error:
        raise _problem(node_id, field, f"{path} cannot be read: {error.strerror}") from None


def _names_beside(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return []


def _open_hub(source: HubSource, node_id: str) -> RawRows:
    field = "source.path"
    if Path(os.path.expanduser(source.path)).exists():
        raise _problem(
            node_id,
            field,
            f"{source.path} is a path on this machine, not an id of the hub; use a source of type "
            "`file`",
        )
    try:
        datasets = importlib.import_module("datasets")
    except ImportError:
        raise _problem(
            node_id,
            field,
            f"reading {source.path} from the hub needs the package `datasets`; install it (pip "
            "install 'coloop[hub]'), or download the rows and use a file source",
        ) from None
    try:
        return ListedRows(
            datasets.load_dataset(
                source.path, source.name, split=source.split, revision=source.revision
            )
        )
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise _problem(
            node_id,
            field,
            f"{source.path} cannot be loaded from the hub: {reason}; without a network, download "
            "the rows elsewhere and use a file source",
        ) from None


def unfolded(row: Mapping[str, Any], column: str, *, node: str) -> list[dict[str, Any]]:
    """`unfold`: the columns of each child of a row, one per entry of a list column."""
    entries = row.get(column)
    if not isinstance(entries, list):
        problem = "has no such column" if column not in row else f"found {repr(entries)[:80]}"
        raise _problem(node, "unfold", f"column `{column}` must be a list in every row; {problem}")
    return [{column: entry} for entry in entries]


# The rows that the next step gets: each pass over a source has its own seeded order.
#
# A step that reaches the end of a pass continues with the next one, so that every step has as many
# rows as requested. The order of a pass depends only on seed and pass, so a checkpoint has a few
# numbers, however large the source is.


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    index: int
    epoch: int
    """Which pass over the source, from 0; (epoch, index) is unique."""


class DataCursor:
    """A position in the endless sequence of passes over a source."""

    def __init__(self, *, rows: int, seed: int, shuffle: bool = True) -> None:
        if rows < 1:
            raise ValueError(f"a cursor needs at least one row, found {rows}")
        self.rows = rows
        self.seed = seed
        self.shuffle = shuffle
        self.drawn = 0

    @property
    def epoch(self) -> int:
        """Completed passes."""
        return self.drawn // self.rows

    @property
    def position(self) -> int:
        """Rows drawn in the current pass."""
        return self.drawn % self.rows

    def take(self, count: int | None = None) -> list[Draw]:
        """The next `count` draws; None: as many as there are rows."""
        wanted = self.rows if count is None else count
        draws = [self._at(number) for number in range(self.drawn, self.drawn + wanted)]
        self.drawn += wanted
        return draws

    def _at(self, number: int) -> Draw:
        epoch, position = divmod(number, self.rows)
        if not self.shuffle:
            return Draw(index=position, epoch=epoch)
        key = stable_hash(f"order {self.seed} {epoch}")
        return Draw(index=permuted(position, self.rows, key), epoch=epoch)

    def state(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "drawn": self.drawn,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore `state`; raises CheckpointError if the source has another number of rows."""
        if state["rows"] != self.rows:
            raise CheckpointError(
                f"the checkpoint was taken with a dataset of {state['rows']:,} rows, now it has "
                f"{self.rows:,}; resume with the same data, or start a new run"
            )
        self.seed = int(state["seed"])
        self.shuffle = bool(state["shuffle"])
        self.drawn = int(state["drawn"])

    def resized(self, rows: int) -> "DataCursor":
        """A cursor over a changed source with this many rows; a started pass counts as completed,
        so that no order is repeated."""
        cursor = DataCursor(rows=rows, seed=self.seed, shuffle=self.shuffle)
        cursor.drawn = (self.epoch + (self.position > 0)) * rows
        return cursor


def steps_for(*, epochs: int, rows: int, rows_per_step: int | None) -> int:
    per_step = rows if rows_per_step is None else rows_per_step
    return -(-epochs * rows // per_step)
