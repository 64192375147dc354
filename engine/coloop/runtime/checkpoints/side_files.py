"""What roles keep beyond a step, in files beside a checkpoint's manifest.

    step-40/roles.pool.entries-20.rows     written with the checkpoint of step 20, linked here
    step-40/roles.pool.entries-40.rows     the rows that came since

A row is written once: a later checkpoint has the same file under its own name (a hard link, or a
copy where there are none), so that every checkpoint is whole by itself and any other may go. A file
of which less than half is still kept is left behind, and what is kept of it is written anew.
"""

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

from coloop.data.tables.rowfile import read_rows, write_rows
from coloop.errors import CheckpointError
from coloop.runtime.roles.rows.kept import KINDS, Kept

KEPT: Final = "__kept__"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    name: str
    sha256: str
    rows: int
    """That were written to it."""
    size: int


Owner = str
"""Where in the state the rows belong, with dots."""


@dataclass(slots=True, kw_only=True)
class _Shelf:
    """The files of one checkpoint: of each owner, which row lies where."""

    folder: Path | None = None
    rows: dict[Owner, dict[int, _File]] = field(default_factory=dict)

    def files(self) -> list[_File]:
        return list({one.name: one for own in self.rows.values() for one in own.values()}.values())


class SideFiles:
    """Puts rows into checkpoints and takes them out; it remembers where those of the newest one
    lie."""

    def __init__(self) -> None:
        self._newest = _Shelf()
        self._next = _Shelf()

    def put(
        self, state: Mapping[str, Any], folder: Path, step: int
    ) -> tuple[dict[str, Any], dict[str, int], dict[str, str]]:
        """The state with references in place of rows, and by file its bytes and its SHA-256; the
        files lie in the folder.

        Raises:
            OSError: not all of them were written.
        """
        self._next = _Shelf()
        plain = self._put(state, "", folder, step)
        files = self._next.files()
        return (
            plain,
            {one.name: one.size for one in files},
            {one.name: one.sha256 for one in files},
        )

    def written(self, folder: Path) -> None:
        self._newest, self._next = self._next, _Shelf()
        self._newest.folder = folder

    def take(self, manifest: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The manifest of a checkpoint with its rows; what is written next is linked to its files.

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
        places = self._linked(rows, owner, folder)
        fresh = {number: row for number, row in rows.items() if number not in places}
        if fresh:
            name = _free_name(folder, owner, step)
            sha256 = write_rows(folder / name, fresh)
            size = (folder / name).stat().st_size
            written = _File(name=name, sha256=sha256, rows=len(fresh), size=size)
            places |= dict.fromkeys(fresh, written)
        self._next.rows[owner] = {number: places[number] for number in rows}
        return [[number, places[number].name] for number in rows]

    def _linked(self, rows: Mapping[int, Any], owner: Owner, folder: Path) -> dict[int, _File]:
        """The files of the newest checkpoint that hold enough of these rows, brought into the
        folder; by number."""
        known = self._newest.rows.get(owner, {})
        held = {number: known[number] for number in rows if number in known}
        counts = Counter(one.name for one in held.values())
        found: dict[str, bool] = {}
        for one in held.values():
            if one.name not in found:
                is_worth = 2 * counts[one.name] >= one.rows
                found[one.name] = is_worth and self._link(one, folder)
        return {number: one for number, one in held.items() if found[one.name]}

    def _link(self, one: _File, folder: Path) -> bool:
        """Bring a file of the newest checkpoint into the folder; False where it is gone."""
        assert self._newest.folder is not None
        source, target = self._newest.folder / one.name, folder / one.name
        is_file = source.is_file() and not source.is_symlink()
        is_whole = is_file and source.stat().st_size == one.size
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
            sha256 = manifest["hashes"][name]
            read[name] = read_rows(folder / name, KINDS, sha256)
            size = manifest["files"][name]
            files[name] = _File(name=name, sha256=sha256, rows=len(read[name]), size=size)
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
