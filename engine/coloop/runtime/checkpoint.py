"""Checkpoints: every weights group's folder and one manifest over all that a resume needs.

    checkpoints/
      step-40/
        manifest.json            timeline, fields, triggers, roles; size and hash of every file
        actor/                   Hugging Face format plus trainer state
        start/
        roles.pool.entries-40.rows    what a buffer holds, or rows that wait for an update

A checkpoint is written into a folder aside and renamed when it is whole; older ones are removed
only after that. A checkpoint is whole when the driver can read back every file that its manifest
names, by size and hash: weights that a worker wrote to a disk of its own do not count, and nothing
is removed for them. A checkpoint without a manifest does not exist. Where the disk is full the
aside folder is removed and the last whole checkpoint stays. A writer that was killed leaves folders
whose names begin with a dot; who opens the checkpoints next clears them up.

Where the run has a storage (`run.storage` at an address), every whole checkpoint is copied there
as well. A copy that fails is told and costs nothing: the checkpoint lies in the run folder.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from coloop.errors import CheckpointError, StorageFull
from coloop.marks import Mark, Marks
from coloop.runtime.side_files import SideFiles
from coloop.runtime.storage import MANIFEST, Storage

logger = logging.getLogger(__name__)

MANIFEST_VERSION = 2


class Saver(Protocol):
    """Writes the weights of all groups into a folder, one folder each."""

    def save(self, folder: Path) -> Mapping[str, Mark]:
        """The mark of each file as its writer sees it, by its path in the folder."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    path: Path
    step: int
    best: bool

    def manifest(self) -> dict[str, Any]:
        return _read_manifest(self.path)

    def damage(self) -> str | None:
        """What is wrong with the names and sizes of its files; None where nothing is."""
        return _missing(self.path, self.manifest().get("files", {}))


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, keep: int, storage: Storage | None = None) -> None:
        self._folder = folder
        self._storage = storage
        self._side_files = SideFiles()
        self._marks = Marks()
        self.keep = keep
        """Newest ones that stay."""
        self.on_lost_copy: Callable[[str], None] = logger.warning
        """Told why a copy did not reach the storage."""
        self._clear_up()

    def write(
        self, step: int, state: Mapping[str, Any], saver: Saver, *, best: bool = False
    ) -> Path:
        """Write a checkpoint of this step; the last whole one survives whatever goes wrong.

        Raises:
            StorageFull, CheckpointError: nothing was written.
        """
        final = self._folder / f"step-{step}"
        aside = self._folder / f".step-{step}.new"
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            written = dict(saver.save(aside))
            files = {name: mark.size for name, mark in written.items()}
            hashes = {name: mark.sha256 for name, mark in written.items()}
            damage = self._damage(aside, files, hashes)
            if damage is not None:
                makers = sorted({mark.by for mark in written.values()} - {""})
                raise CheckpointError(
                    f"{damage}; it was written by {' and '.join(makers) or 'a worker'}: where "
                    "workers run on other machines, `run.storage` must be a folder that all of "
                    "them see"
                )
            plain, sizes, own_hashes = self._side_files.put(state, aside, step)
            is_best = best or self._is_best(final)
            manifest = {
                **plain,
                "version": MANIFEST_VERSION,
                "step": step,
                "best": is_best,
                "files": files | sizes,
                "hashes": hashes | own_hashes,
            }
            (aside / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
            if final.exists():
                old = self._folder / f".step-{step}.old"
                final.rename(old)
                aside.rename(final)
                shutil.rmtree(old, ignore_errors=True)
            else:
                aside.rename(final)
        except (OSError, StorageFull, CheckpointError) as error:
            is_full = not isinstance(error, CheckpointError)
            room = self._room_words(aside) if is_full else ""
            shutil.rmtree(aside, ignore_errors=True)
            kind = StorageFull if is_full else CheckpointError
            raise kind(
                f"checkpoint of step {step} could not be written to {self._folder}: {error}; "
                f"{room}the checkpoint before it is untouched"
            ) from error
        self._side_files.written(final)
        self._remove_old(just_written=step)
        self._copy(final)
        return final

    def read(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """The manifest, with what roles kept where the state had it.

        Raises:
            CheckpointError: a file of rows is not what was written.
        """
        return self._side_files.take(checkpoint.manifest(), checkpoint.path)

    def all(self) -> list[Checkpoint]:
        """Whole checkpoints, oldest first."""
        return list_checkpoints(self._folder)

    def latest(self) -> Checkpoint | None:
        """The newest whole one, every file of it read back.

        Raises:
            CheckpointError: there are checkpoints, and none of them is whole.
        """
        found, damaged = self._judged()
        if damaged and found is None:
            raise CheckpointError(damaged[-1])
        return found

    def damaged(self) -> list[str]:
        """What is wrong with checkpoints that are not whole, the oldest first; of those before the
        newest whole one only names and sizes are looked at."""
        return self._judged()[1]

    def _judged(self) -> tuple[Checkpoint | None, list[str]]:
        newest: Checkpoint | None = None
        problems = []
        for checkpoint in reversed(_with_manifest(self._folder)):
            if newest is not None:
                problem = checkpoint.damage()
            else:
                manifest = checkpoint.manifest()
                files, hashes = manifest.get("files", {}), manifest.get("hashes", {})
                problem = self._damage(checkpoint.path, files, hashes)
                newest = checkpoint if problem is None else None
            problems += [problem] if problem is not None else []
        return newest, problems[::-1]

    def _damage(
        self, folder: Path, files: Mapping[str, int], hashes: Mapping[str, str]
    ) -> str | None:
        """The first file that cannot be read back as it was written."""
        missing = _missing(folder, files)
        if missing is not None:
            return missing
        try:
            marks = self._marks.of(folder / name for name in hashes)
        except OSError as error:
            return f"{error.filename} was written and cannot be read here: {error.strerror}"
        for name, sha256 in hashes.items():
            if marks[folder / name].sha256 != sha256:
                return f"{folder / name} is not what was written: its SHA-256 is another"
        return None

    def _room_words(self, aside: Path) -> str:
        """How much room a checkpoint wants, and how much there is."""
        try:
            free, before = shutil.disk_usage(self._folder).free, self.all()
        except (OSError, CheckpointError):
            return ""
        wanted = sum(before[-1].manifest()["files"].values()) if before else _bytes_in(aside)
        likely = "as much as the last one" if before else "what was written of it"
        return f"it wants {wanted} bytes ({likely}), {free} are free there; "

    def best(self) -> Checkpoint | None:
        found = [checkpoint for checkpoint in self.all() if checkpoint.best]
        return found[-1] if found else None

    def bring_back(self) -> None:
        """The newest copy of the storage, where it is newer than what lies here."""
        steps = self._storage.steps() if self._storage is not None else []
        here = self.all()
        if self._storage is not None and steps and (not here or here[-1].step < steps[-1]):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._storage.get(steps[-1], self._folder)

    def _copy(self, checkpoint: Path) -> None:
        if self._storage is None:
            return
        try:
            self._storage.put(checkpoint)
        except CheckpointError as error:
            self.on_lost_copy(str(error))
            return
        here = {checkpoint.step for checkpoint in self.all()}
        for step in self._storage.steps():
            if step not in here:
                self._storage.remove(step)

    @staticmethod
    def _is_best(path: Path) -> bool:
        """A step that is written again stays the best."""
        return (path / MANIFEST).exists() and bool(_read_manifest(path).get("best"))

    def _clear_up(self) -> None:
        for old in self._folder.glob(".step-*.old"):
            final = self._folder / old.name.removeprefix(".").removesuffix(".old")
            if (final / MANIFEST).exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.rename(final)
        for aside in self._folder.glob(".step-*.new"):
            shutil.rmtree(aside, ignore_errors=True)

    def _remove_old(self, just_written: int) -> None:
        found = self.all()
        best = next((c for c in reversed(found) if c.best), None)
        for checkpoint in found[: -self.keep] if self.keep else []:
            if checkpoint.step != just_written and checkpoint is not best:
                shutil.rmtree(checkpoint.path, ignore_errors=True)


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """Whole checkpoints of a `checkpoints` folder, oldest first."""
    return [checkpoint for checkpoint in _with_manifest(folder) if checkpoint.damage() is None]


def _with_manifest(folder: Path) -> list[Checkpoint]:
    found = []
    for path in folder.glob("step-*") if folder.exists() else []:
        match = re.fullmatch(r"step-(\d+)", path.name)
        if match and (path / MANIFEST).exists():
            best = bool(_read_manifest(path).get("best"))
            found.append(Checkpoint(path=path, step=int(match[1]), best=best))
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def _missing(folder: Path, files: Mapping[str, int]) -> str | None:
    """The first file that is not there as it was written."""
    for name, size in files.items():
        path = folder / name
        try:
            found = path.stat().st_size
        except OSError as error:
            return f"{path} was written and cannot be read here: {error.strerror}"
        if found != size:
            return f"{path} has {found} bytes, {size} were written"
    return None


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: its manifest cannot be read: {error}") from error
    if manifest.get("version") != MANIFEST_VERSION:
        raise CheckpointError(
            f"{path}: written in manifest version {manifest.get('version')!r}, this coloop reads "
            f"{MANIFEST_VERSION}; resume it with the coloop that wrote it, or start a new run, "
            "whose models may begin with the weights that lie there"
        )
    return manifest
