"""Rows that roles keep beyond a step, in files beside a checkpoint's manifest.

    step-40/roles.pool.entries-20.rows     written with the checkpoint of step 20, linked here
    step-40/roles.pool.entries-40.rows     newer rows

A row is written once: later checkpoints contain the same file as a hard link (or a copy), so each
checkpoint is complete without the others. A file of which less than half is still kept is dropped,
and its remaining rows are written again.
"""

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

from coloop.data.files.marks import Mark
from coloop.data.tables.rowfile import read_rows, write_rows
from coloop.errors import CheckpointError
from coloop.runtime.roles.rows.kept import KINDS, Kept

KEPT: Final = "__kept__"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    name: str
    mark: Mark
    rows: int


Owner = str
"""Dotted path of the rows in the state."""


@dataclass(slots=True, kw_only=True)
class _Shelf:
    """Rows of one checkpoint by owner, each with its file."""

    folder: Path | None = None
    rows: dict[Owner, dict[int, _File]] = field(default_factory=dict)


class SideFiles:
    """Writes rows into checkpoints and reads them; it remembers the files of the newest one."""

    def __init__(self) -> None:
        self._newest = _Shelf()
        self._next = _Shelf()

    def put(
        self, state: Mapping[str, Any], folder: Path, step: int
    ) -> tuple[dict[str, Any], dict[str, Mark]]:
        """Write the rows into files; returns the state with references in place of rows, and the
        marks of the files.

        Raises:
            OSError: not all of them were written.
        """
        self._next = _Shelf()
        plain = self._put(state, "", folder, step)
        files = [file for own in self._next.rows.values() for file in own.values()]
        return plain, {file.name: file.mark for file in files}

    def written(self, folder: Path) -> None:
        self._newest, self._next = self._next, _Shelf()
        self._newest.folder = folder

    def take(self, manifest: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The manifest of a checkpoint with its rows; later checkpoints link to its files.

        Raises:
            CheckpointError: a file is not what the manifest says.
        """
        self._next = _Shelf()
        state: dict[str, Any] = self._take(manifest, "", manifest, folder)
        self.written(folder)
        return state

    def _put(self, value: Any, owner: Owner, folder: Path, step: int) -> Any:
        if isinstance(value, Kept):
            return {KEPT: self._put_rows(value.rows, owner, folder, step)}
        if isinstance(value, Mapping):
            return {
                key: self._put(part, f"{owner}.{key}".lstrip("."), folder, step)
                for key, part in value.items()
            }
        return value

    def _put_rows(
        self, rows: Mapping[int, Any], owner: Owner, folder: Path, step: int
    ) -> list[list[Any]]:
        files = self._linked(rows, owner, folder)
        fresh = {number: row for number, row in rows.items() if number not in files}
        if fresh:
            name = _free_name(folder, owner, step)
            sha256 = write_rows(folder / name, fresh)
            mark = Mark(size=(folder / name).stat().st_size, sha256=sha256)
            files |= dict.fromkeys(fresh, _File(name=name, mark=mark, rows=len(fresh)))
        self._next.rows[owner] = {number: files[number] for number in rows}
        return [[number, files[number].name] for number in rows]

    def _linked(self, rows: Mapping[int, Any], owner: Owner, folder: Path) -> dict[int, _File]:
        """Link files of the newest checkpoint with enough of these rows; returns them by row."""
        known = self._newest.rows.get(owner, {})
        held = {number: known[number] for number in rows if number in known}
        counts = Counter(file.name for file in held.values())
        is_linked: dict[str, bool] = {}
        for file in held.values():
            if file.name not in is_linked:
                is_worth = 2 * counts[file.name] >= file.rows
                is_linked[file.name] = is_worth and self._link(file, folder)
        return {number: file for number, file in held.items() if is_linked[file.name]}

    def _link(self, file: _File, folder: Path) -> bool:
        """Link a file of the newest checkpoint into the folder; False if it is gone."""
        assert self._newest.folder is not None
        source, target = self._newest.folder / file.name, folder / file.name
        is_file = source.is_file() and not source.is_symlink()
        is_whole = is_file and source.stat().st_size == file.mark.size
        if not is_whole or target.exists():
            return False
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)
        return True

    def _take(self, value: Any, owner: Owner, manifest: Mapping[str, Any], folder: Path) -> Any:
        if isinstance(value, dict) and value.keys() == {KEPT}:
            return self._take_rows(value[KEPT], owner, manifest, folder)
        if isinstance(value, dict):
            return {
                key: self._take(part, f"{owner}.{key}".lstrip("."), manifest, folder)
                for key, part in value.items()
            }
        return value

    def _take_rows(
        self, places: list[list[Any]], owner: Owner, manifest: Mapping[str, Any], folder: Path
    ) -> Kept:
        read: dict[str, dict[int, Any]] = {}
        files: dict[str, _File] = {}
        for name in dict.fromkeys(name for _, name in places):
            mark = Mark(size=manifest["files"][name], sha256=manifest["hashes"][name])
            read[name] = read_rows(folder / name, KINDS, mark.sha256)
            files[name] = _File(name=name, mark=mark, rows=len(read[name]))
        missing = [number for number, name in places if number not in read[name]]
        if missing:
            raise CheckpointError(f"{folder}: its files of rows lack row {missing[0]} of {owner}")
        self._next.rows[owner] = {number: files[name] for number, name in places}
        return Kept(rows={number: read[name][number] for number, name in places})


def _free_name(folder: Path, owner: Owner, step: int) -> str:
    safe = "".join(sign if sign.isalnum() or sign in ".-_" else "_" for sign in owner)
    stem = f"{safe}-{step}"
    tries = chain([f"{stem}.rows"], (f"{stem}-{again}.rows" for again in count(2)))
    return next(name for name in tries if not (folder / name).exists())
