"""Checkpoints: every weights group's folder and one manifest over all that a resume needs.

    checkpoints/
      step-40/
        manifest.json            timeline, fields, triggers, roles; size and hash of every file
        actor/                   Hugging Face format plus trainer state
        start/
        roles.pool.entries-40.rows    what a buffer holds, or rows that wait for an update

A checkpoint is written into a folder aside, brought to the disk (fsync of every file and folder)
and renamed when it is whole; older ones are removed only after that. A checkpoint is whole when the
driver can read back every file that its manifest names, by size and hash: weights that a worker
wrote to a disk of its own do not count, and nothing is removed for them. A checkpoint without a
manifest does not exist; one that is damaged is left where it is, counts for nothing, and a person
is told. Where the disk is full the aside folder is removed and the last whole checkpoint stays. A
writer that was killed leaves folders whose names begin with a dot, each of its own name: a host of
a killed driver that still writes does so into nobody's checkpoint. Who opens the checkpoints next
clears them up.

Where the run has a storage (`run.storage` at an address), every whole checkpoint is copied there
as well. A copy that fails is told and costs nothing: the checkpoint lies in the run folder.
"""

import logging
import re
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from coloop.data.files.marks import Mark, Marks, settle, settle_one
from coloop.errors import CheckpointError, StorageFull
from coloop.runtime.checkpoints.manifest import (
    MANIFEST,
    damage_in,
    damage_of,
    read_manifest,
    write_manifest,
)
from coloop.runtime.checkpoints.side_files import SideFiles
from coloop.runtime.checkpoints.storage import Storage

logger = logging.getLogger(__name__)

SET_ASIDE = ".set-aside"
STEP = re.compile(r"step-(\d+)")


class Saver(Protocol):
    """Writes the weights of all groups into a folder, one folder each."""

    def save(self, folder: Path) -> Mapping[str, Mark]:
        """The mark of each file as its writer sees it, by its path in the folder."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    path: Path
    step: int
    best: bool
    """By its manifest; False where that cannot be read."""

    def manifest(self) -> dict[str, Any]:
        """Raises `CheckpointError` where it is not what was written."""
        return read_manifest(self.path)

    def damage(self, marks: Marks | None = None) -> str | None:
        """What is wrong with it; None where nothing is.

        Args:
            marks: reads its files; None: their names and sizes alone are looked at.
        """
        try:
            return damage_of(self.path, self.manifest(), marks)
        except CheckpointError as error:
            return str(error)


@dataclass(eq=False)
class Checkpoints:
    folder: Path
    keep: int
    """Newest ones that stay."""
    storage: Storage | None = None
    _side_files: SideFiles = field(default_factory=SideFiles, init=False)
    _marks: Marks = field(default_factory=Marks, init=False)
    on_lost_copy: Callable[[str], None] = field(default=logger.warning, init=False)
    """Told why a copy did not reach the storage, or could not be had from it."""
    _damaged: set[Path] = field(default_factory=set, init=False)
    """Those of which it is known that they are not whole, whatever their names and sizes."""

    def __post_init__(self) -> None:
        self._clear_up()

    def write(
        self, step: int, state: Mapping[str, Any], saver: Saver, *, best: bool = False
    ) -> Path:
        """Write a checkpoint of this step; the last whole one survives whatever goes wrong.

        Raises:
            StorageFull, CheckpointError: nothing was written.
        """
        final = self.folder / f"step-{step}"
        aside = self.folder / f".step-{step}.{uuid.uuid4().hex[:12]}.new"
        try:
            aside.mkdir(parents=True)
            written = dict(saver.save(aside))
            files = {name: mark.size for name, mark in written.items()}
            hashes = {name: mark.sha256 for name, mark in written.items()}
            damage = damage_in(aside, files, hashes, self._marks)
            if damage is not None:
                makers = sorted({mark.by for mark in written.values()} - {""})
                raise CheckpointError(
                    f"{damage}; it was written by {' and '.join(makers) or 'a worker'}; if workers "
                    "run on other machines, `run.storage` must be a folder that all of them can "
                    "access"
                )
            plain, sizes, own_hashes = self._side_files.put(state, aside, step)
            is_best = best or _best_of(final)  # a step that is written again stays the best
            manifest = {
                **plain,
                "step": step,
                "best": is_best,
                "files": files | sizes,
                "hashes": hashes | own_hashes,
            }
            write_manifest(aside, manifest)
            settle(aside)
            self._put_in_place(aside, final)
        except (OSError, StorageFull, CheckpointError) as error:
            is_full = not isinstance(error, CheckpointError)
            room = self._room_words(aside) if is_full else ""
            shutil.rmtree(aside, ignore_errors=True)
            kind = StorageFull if is_full else CheckpointError
            raise kind(
                f"checkpoint of step {step} could not be written to {self.folder}: {error}; "
                f"{room}the previous checkpoint is intact"
            ) from error
        self._damaged.discard(final)
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
        """Whole checkpoints, oldest first, as far as names, sizes and what was read before tell."""
        found = list_checkpoints(self.folder)
        return [checkpoint for checkpoint in found if checkpoint.path not in self._damaged]

    def latest(self) -> Checkpoint | None:
        """The newest whole one, every file of it read back.

        Raises:
            CheckpointError: there are checkpoints, and none of them is whole.
        """
        newest, damaged = self.newest_whole()
        if damaged and newest is None:
            raise CheckpointError(f"no checkpoint of the run is intact: {'; '.join(damaged)}")
        return newest

    def newest_whole(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole one, and what is wrong with others, the oldest first: of those before it
        only names and sizes are looked at."""
        newest: Checkpoint | None = None
        problems = []
        for checkpoint in reversed(every_checkpoint(self.folder)):
            problem = checkpoint.damage(self._marks if newest is None else None)
            if problem is not None:
                self._damaged.add(checkpoint.path)
                problems.append(problem)
            elif newest is None:
                newest = checkpoint
        return newest, problems[::-1]

    def chosen(self, step: int) -> Checkpoint:
        """The checkpoint of a step, every file of it read back; newer ones are set aside under
        other names, so that nothing resumes from them by itself.

        Raises:
            CheckpointError: it is not there, or not whole.
        """
        found = {one.step: one for one in every_checkpoint(self.folder)}
        if step not in found:
            there = ", ".join(map(str, sorted(found))) or "none"
            raise CheckpointError(f"there is no checkpoint of step {step}; available: {there}")
        problem = found[step].damage(self._marks)
        if problem is not None:
            raise CheckpointError(f"the checkpoint of step {step} is damaged: {problem}")
        for newer in found.values():
            if newer.step > step:
                aside = newer.path.with_name(f"{newer.path.name}{SET_ASIDE}")
                shutil.rmtree(aside, ignore_errors=True)
                newer.path.rename(aside)
        for copied in self.storage.steps() if self.storage is not None else []:
            if self.storage is not None and copied > step:
                self.storage.remove(copied)
        return found[step]

    def _room_words(self, aside: Path) -> str:
        try:
            free, before = shutil.disk_usage(self.folder).free, self.all()
        except (OSError, CheckpointError):
            return ""
        wanted = sum(before[-1].manifest()["files"].values()) if before else _bytes_in(aside)
        likely = "as much as the last one" if before else "what was written of it"
        return f"it needs {wanted} bytes ({likely}), {free} are free there; "

    def best(self) -> Checkpoint | None:
        """The newest whole one that was the best when it was written, every file read back."""
        for checkpoint in reversed(self.all()):
            if checkpoint.best and checkpoint.damage(self._marks) is None:
                return checkpoint
        return None

    def bring_back(self) -> None:
        """The newest whole copy of the storage, where it is newer than what is whole here.

        Raises:
            CheckpointError: nothing is here, and the storage cannot be asked.
        """
        if self.storage is None:
            return
        here = self.newest_whole()[0]
        try:
            steps = self.storage.steps()
        except CheckpointError as error:
            if here is None:
                raise
            self.on_lost_copy(str(error))
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for step in reversed(steps):
            if here is not None and step <= here.step:
                return
            try:
                self._damaged.discard(self.storage.get(step, self.folder))
            except CheckpointError as error:
                self.on_lost_copy(str(error))
            else:
                return

    def _copy(self, checkpoint: Path) -> None:
        if self.storage is None:
            return
        try:
            self.storage.put(checkpoint)
        except CheckpointError as error:
            self.on_lost_copy(str(error))
            return
        here = {checkpoint.step for checkpoint in self.all()}
        for step in self.storage.steps():
            if step not in here:
                self.storage.remove(step)

    def _put_in_place(self, aside: Path, final: Path) -> None:
        old = final.with_name(f".{final.name}.old")
        if final.exists():
            shutil.rmtree(old, ignore_errors=True)
            final.rename(old)
        aside.rename(final)
        settle_one(self.folder)
        shutil.rmtree(old, ignore_errors=True)

    def _clear_up(self) -> None:
        for old in self.folder.glob(".step-*.old"):
            final = self.folder / old.name.removeprefix(".").removesuffix(".old")
            if (final / MANIFEST).exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.rename(final)
        for left in (*self.folder.glob(".step-*.new"), *self.folder.glob(".step-*.gone")):
            shutil.rmtree(left, ignore_errors=True)

    def _remove_old(self, just_written: int) -> None:
        found = self.all()
        best = next((c for c in reversed(found) if c.best), None)
        for checkpoint in found[: -self.keep] if self.keep else []:
            if checkpoint.step != just_written and checkpoint is not best:
                gone = checkpoint.path.with_name(f".{checkpoint.path.name}.gone")
                shutil.rmtree(gone, ignore_errors=True)
                with suppress(OSError):
                    checkpoint.path.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """Checkpoints of a `checkpoints` folder, oldest first, without those whose manifest, names or
    sizes are not what was written."""
    return [checkpoint for checkpoint in every_checkpoint(folder) if checkpoint.damage() is None]


def every_checkpoint(folder: Path) -> list[Checkpoint]:
    """All that have a manifest, whatever it says, oldest first."""
    found = []
    for path in folder.glob("step-*") if folder.exists() else []:
        match = STEP.fullmatch(path.name)
        if match and (path / MANIFEST).is_file():
            found.append(Checkpoint(path=path, step=int(match[1]), best=_best_of(path)))
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def _best_of(path: Path) -> bool:
    try:
        return bool(read_manifest(path).get("best"))
    except CheckpointError:
        return False


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
