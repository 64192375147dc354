"""Checkpoints: every weights group's folder and one manifest over all that a resume needs.

    checkpoints/
      step-40/
        manifest.json            timeline, fields, triggers, roles; size and hash of every file
        actor/                   Hugging Face format plus trainer state
        start/
        roles.pool.entries-40.rows    what a buffer holds, or rows that wait for an update

A checkpoint is written into a temporary folder, fsynced and renamed once it is whole; older ones
are removed after that. It is whole if the driver can read back every file in its manifest, by size
and hash: weights that a worker wrote to its own disk do not count. A checkpoint without a manifest
does not exist; a damaged one stays where it is and is reported, but not used. On a full disk the
temporary folder is removed and the last whole checkpoint stays. A killed writer leaves folders
whose names begin with a dot, which the next start removes.

With a `run.storage` address every whole checkpoint is copied there as well. A copy that fails is
reported; the checkpoint in the run folder stays valid.
"""

import logging
import re
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coloop.data.files.marks import Mark, Marks, settle, settle_one
from coloop.errors import CheckpointError, StorageFull
from coloop.runtime.checkpoints.manifest import damage_in, damage_of, read_manifest, write_manifest
from coloop.runtime.checkpoints.side_files import SideFiles
from coloop.runtime.checkpoints.storage import Storage
from coloop.runtime.run_files.checkpoint_folders import MANIFEST

logger = logging.getLogger(__name__)

SET_ASIDE = ".set-aside"
STEP = re.compile(r"step-(\d+)")


Save = Callable[[Path], Mapping[str, Mark]]
"""Called with a folder; writes the weights of each group into a subfolder. Returns each file's mark
as its writer sees it, by path in the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    path: Path
    step: int
    best: bool
    """According to its manifest; False if that cannot be read."""

    def manifest(self) -> dict[str, Any]:
        """Raises `CheckpointError` if it is not what was written."""
        return read_manifest(self.path)

    def damage(self, marks: Marks | None = None) -> str | None:
        """What is wrong with it, or None. Without `marks`, which read the files, only names and
        sizes are checked."""
        try:
            return damage_of(self.path, self.manifest(), marks)
        except CheckpointError as error:
            return str(error)


@dataclass(eq=False)
class Checkpoints:
    folder: Path
    keep: int
    """How many of the newest are kept."""
    storage: Storage | None = None
    _side_files: SideFiles = field(default_factory=SideFiles, init=False)
    _marks: Marks = field(default_factory=Marks, init=False)
    on_lost_copy: Callable[[str], None] = field(default=logger.warning, init=False)
    """Called with the reason why a copy was not written to the storage or read from it."""
    _damaged: set[Path] = field(default_factory=set, init=False)
    """Those known to be damaged although their names and sizes are right."""

    def __post_init__(self) -> None:
        self._clear_up()

    def write(self, step: int, state: Mapping[str, Any], save: Save, *, best: bool = False) -> Path:
        """Write a checkpoint of this step; the last whole one survives every failure.

        Raises:
            StorageFull, CheckpointError: nothing was written.
        """
        final = self.folder / f"step-{step}"
        aside = self.folder / f".step-{step}.{uuid.uuid4().hex[:12]}.new"
        try:
            aside.mkdir(parents=True)
            written = dict(save(aside))
            damage = damage_in(aside, written, self._marks)
            if damage is not None:
                makers = sorted({mark.by for mark in written.values()} - {""})
                raise CheckpointError(
                    f"{damage}; it was written by {' and '.join(makers) or 'a worker'}; if workers "
                    "run on other machines, `run.storage` must be a folder that all of them can "
                    "access"
                )
            plain, row_files = self._side_files.put(state, aside, step)
            files = written | row_files
            manifest = {
                **plain,
                "step": step,
                "best": best or _best_of(final),  # a step that is written again stays the best
                "files": {name: mark.size for name, mark in files.items()},
                "hashes": {name: mark.sha256 for name, mark in files.items()},
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
        """The manifest, with the rows of roles in place.

        Raises:
            CheckpointError: a file of rows is not what was written.
        """
        return self._side_files.take(checkpoint.manifest(), checkpoint.path)

    def all(self) -> list[Checkpoint]:
        """Whole checkpoints, oldest first, by names, sizes and earlier reads."""
        whole = list_checkpoints(self.folder)
        return [checkpoint for checkpoint in whole if checkpoint.path not in self._damaged]

    def latest(self) -> Checkpoint | None:
        """The newest whole one; all of its files are read.

        Raises:
            CheckpointError: there are checkpoints, and none of them is whole.
        """
        newest, damaged = self.newest_whole()
        if damaged and newest is None:
            raise CheckpointError(f"no checkpoint of the run is intact: {'; '.join(damaged)}")
        return newest

    def newest_whole(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole one, and the problems of others, oldest first. Of those older than it
        only names and sizes are checked."""
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
        """The checkpoint of a step; newer ones are renamed, so that no resume uses them.

        Raises:
            CheckpointError: it does not exist, or is damaged.
        """
        by_step = {checkpoint.step: checkpoint for checkpoint in every_checkpoint(self.folder)}
        if step not in by_step:
            there = ", ".join(map(str, sorted(by_step))) or "none"
            raise CheckpointError(f"there is no checkpoint of step {step}; available: {there}")
        problem = by_step[step].damage(self._marks)
        if problem is not None:
            raise CheckpointError(f"the checkpoint of step {step} is damaged: {problem}")
        for newer in by_step.values():
            if newer.step > step:
                aside = newer.path.with_name(f"{newer.path.name}{SET_ASIDE}")
                shutil.rmtree(aside, ignore_errors=True)
                newer.path.rename(aside)
        if self.storage is not None:
            for copied in self.storage.steps():
                if copied > step:
                    self.storage.remove(copied)
        return by_step[step]

    def _room_words(self, aside: Path) -> str:
        try:
            free, before = shutil.disk_usage(self.folder).free, self.all()
        except (OSError, CheckpointError):
            return ""
        files = aside.rglob("*")
        written = sum(path.stat().st_size for path in files if path.is_file())
        needed = sum(before[-1].manifest()["files"].values()) if before else written
        likely = "as much as the last one" if before else "what was written of it"
        return f"it needs {needed} bytes ({likely}), {free} are free there; "

    def best(self) -> Checkpoint | None:
        """The newest intact one that was the best when it was written."""
        for checkpoint in reversed(self.all()):
            if checkpoint.best and checkpoint.damage(self._marks) is None:
                return checkpoint
        return None

    def bring_back(self) -> None:
        """Restore the newest whole copy from the storage if it is newer than those here.

        Raises:
            CheckpointError: nothing is here, and the storage does not respond.
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
        whole = self.all()
        best = next((checkpoint for checkpoint in reversed(whole) if checkpoint.best), None)
        for checkpoint in whole[: -self.keep] if self.keep else []:
            if checkpoint.step != just_written and checkpoint is not best:
                gone = checkpoint.path.with_name(f".{checkpoint.path.name}.gone")
                shutil.rmtree(gone, ignore_errors=True)
                with suppress(OSError):
                    checkpoint.path.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """Checkpoints with an intact manifest and files of the right names and sizes, oldest first."""
    return [checkpoint for checkpoint in every_checkpoint(folder) if checkpoint.damage() is None]


def every_checkpoint(folder: Path) -> list[Checkpoint]:
    """All that have a manifest, even a damaged one, oldest first."""
    checkpoints = []
    for path in folder.glob("step-*") if folder.exists() else []:
        match = STEP.fullmatch(path.name)
        if match and (path / MANIFEST).is_file():
            checkpoints.append(Checkpoint(path=path, step=int(match[1]), best=_best_of(path)))
    return sorted(checkpoints, key=lambda checkpoint: checkpoint.step)


def _best_of(path: Path) -> bool:
    try:
        return bool(read_manifest(path).get("best"))
    except CheckpointError:
        return False
