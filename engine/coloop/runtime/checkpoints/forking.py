"""A fork: a run folder of its own that begins with a checkpoint of another run.

    checkpoint --no link in it?--> manifest --> each file that it names --> the fork's checkpoint

A run folder may come from anyone. So only what the manifest names is taken, and only plain files:
every folder on the way is opened without following links, and a link anywhere in the checkpoint is
an error that names it. A file that has further names elsewhere could be anybody's: it is taken
where its SHA-256 is that of the manifest.

Files are linked, not copied, where the file system can do that and they belong to this user alone;
a checkpoint is never changed once it is whole, so both runs may share its bytes. The new run then
resumes from it as a resumed run does, with a spec, events and numbering of its own.

`parent.json` of the fork names the run and the step that it comes from:

    {"run": "grpo-20260102-030405-1a2b", "step": 40}
"""

import hashlib
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, Final

from coloop.data.files.marks import write_whole
from coloop.errors import CheckpointError, CheckpointHasLink, CheckpointMissing, NothingLeft
from coloop.runtime.checkpoints.manifest import read_manifest
from coloop.runtime.run_files.checkpoint_folders import CHECKPOINTS, MANIFEST, whole_checkpoints

PARENT_FILE: Final = "parent.json"
FOLDER_MODE = 0o700
MAX_MANIFEST_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 32
"""Deepest nesting of folders in a checkpoint."""
OPENED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Parent:
    """Where a fork comes from."""

    run: str
    """Id of the run."""
    step: int
    """Step of the checkpoint."""


def choose_checkpoint(folder: Path, step: int | None) -> Path:
    """A complete checkpoint of a run; of `step` None, the newest.

    Raises:
        CheckpointMissing
    """
    checkpoints = whole_checkpoints(folder)
    if not checkpoints:
        raise CheckpointMissing(
            f"run {folder.name} has no checkpoint to start from; it writes one every "
            "`run.checkpoint_every` steps, and when it is stopped"
        )
    wanted = max(checkpoints) if step is None else step
    if wanted not in checkpoints:
        kept = ", ".join(map(str, sorted(checkpoints)))
        raise CheckpointMissing(
            f"run {folder.name} has no checkpoint of step {step}; it has {kept}: choose one of "
            "those, or raise `run.keep` before the next run"
        )
    return checkpoints[wanted]


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def require_steps_left(checkpoint: Path, steps: Any) -> None:
    """A fork has at least one step after its checkpoint.

    Args:
        steps: `schedule.steps` of the fork, if it is set; other values are not checked.

    Raises:
        NothingLeft
    """
    begun = step_of(checkpoint)
    if isinstance(steps, int) and steps <= begun:
        raise NothingLeft(
            f"`schedule.steps: {steps}` is over at the checkpoint of step {begun}; set it to "
            f"{begun + 1} or more, or begin at an earlier checkpoint"
        )


def prepare_fork(checkpoint: Path, target: Path, text: str) -> None:
    """Create the folder of the new run; a failure leaves nothing behind.

    Args:
        checkpoint: a complete checkpoint in a run folder.
        target: the folder of the new run, which does not exist.
        text: the loop of the new run.

    Raises:
        CheckpointError: the checkpoint cannot be copied, or contains a link.
    """
    folder = checkpoint.parent
    copied = target / CHECKPOINTS / checkpoint.name
    parent = {"run": folder.parent.name, "step": step_of(checkpoint)}
    try:
        copied.mkdir(FOLDER_MODE, parents=True)
        copy_checkpoint(folder.resolve(), checkpoint.name, copied)
        write_whole(target / "spec.yaml", text)
        write_whole(target / PARENT_FILE, json.dumps(parent))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise CheckpointError(f"the checkpoint cannot be copied: {error}") from error
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def parent_in(text: str | None) -> Parent | None:
    """What the text of a `parent.json` says; None if it says nothing."""
    try:
        found: Any = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, Mapping):
        return None
    run, step = found.get("run"), found.get("step")
    if not isinstance(run, str) or not 0 < len(run) <= 128:
        return None
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < 2**31:
        return None
    return Parent(run, step)


def copy_checkpoint(folder: Path, name: str, target: Path) -> None:
    """Copy the manifest of a checkpoint and the files that it names."""
    with ExitStack() as stack:
        all_of_run = stack.enter_context(opened_folder(str(folder), None, folder))
        source = stack.enter_context(opened_folder(name, all_of_run, folder / name))
        refuse_links(source, folder / name)
        names = Counter(inodes_below(all_of_run))
        with plain_file(MANIFEST, source, folder / name) as file:
            if os.fstat(file.fileno()).st_size > MAX_MANIFEST_BYTES:
                raise CheckpointError(f"{folder / name / MANIFEST} is too large for a manifest")
            (target / MANIFEST).write_bytes(file.read())
        manifest = read_manifest(target)
        for path, size in manifest["files"].items():
            wanted = manifest["hashes"].get(path)
            copy_file(path, source, folder / name, target, size=size, sha256=wanted, names=names)


def copy_file(
    path: str,
    source: int,
    shown: Path,
    target: Path,
    *,
    size: Any,
    sha256: Any,
    names: "Counter[tuple[int, int]]",
) -> None:
    """Copy a file of a checkpoint. `names`: number of names that each file has in the run."""
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or {"..", "."} & set(parts) or "\0" in path:
        raise CheckpointError(
            f"{shown / MANIFEST} names {path!r}, which is not a file of the checkpoint"
        )
    with file_below(source, shown, parts) as (folder, file):
        status = os.fstat(file.fileno())
        if status.st_size != size:
            raise CheckpointError(f"{shown / path} has {status.st_size} bytes, {size} were written")
        if status.st_nlink > names[status.st_dev, status.st_ino]:
            require_hash(file, sha256, shown / path)
        copied = target.joinpath(*parts)
        copied.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        if not link_file(parts[-1], folder, status, copied):
            file.seek(0)
            with copied.open("xb") as written:
                shutil.copyfileobj(file, written)


def require_hash(file: BufferedReader, sha256: Any, shown: Path) -> None:
    """Refuse a file with hard links outside of the run, unless its hash matches the manifest."""
    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
        raise CheckpointError(
            f"{shown} is a hard link, and its SHA-256 is not that of the manifest; put the "
            "file that the run has written there"
        )


def link_file(name: str, folder: int, status: os.stat_result, target: Path) -> bool:
    """Hard-link a file; False if it must be copied."""
    if status.st_uid != os.geteuid() or status.st_mode & OTHERS_MAY_WRITE:
        return False
    try:
        os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    made = target.lstat()
    if (made.st_dev, made.st_ino) == (status.st_dev, status.st_ino):
        return True
    target.unlink()
    raise CheckpointError(f"{name} was replaced while it was copied")


def refuse_links(folder: int, shown: Path, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise CheckpointError(
            f"{shown}: a checkpoint has at most {MAX_DEPTH} folders below each other"
        )
    with os.scandir(folder) as entries:
        for entry in entries:
            path = shown / entry.name
            if entry.is_symlink():
                raise has_link(path, os.readlink(entry.name, dir_fd=folder))
            if entry.is_dir(follow_symlinks=False):
                with opened_folder(entry.name, folder, path) as below:
                    refuse_links(below, path, depth + 1)


def inodes_below(folder: int, depth: int = 0) -> Iterator[tuple[int, int]]:
    """(device, inode) of every file, once per name."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                yield status.st_dev, status.st_ino
            elif entry.is_dir(follow_symlinks=False) and depth <= MAX_DEPTH:
                with opened_folder(entry.name, folder, Path(entry.name)) as below:
                    yield from inodes_below(below, depth + 1)


@contextmanager
def opened_folder(name: str, within: int | None, shown: Path) -> Iterator[int]:
    """Open a folder as a descriptor; links are refused."""
    descriptor = open_or_refuse(name, OPENED | os.O_DIRECTORY, within, shown)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def plain_file(name: str, within: int, above: Path) -> Iterator[BufferedReader]:
    """Open a regular file; links and anything else are refused."""
    shown = above / name
    descriptor = open_or_refuse(name, OPENED, within, shown)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CheckpointError(f"{shown} is not a plain file")
        yield file


@contextmanager
def file_below(
    folder: int, shown: Path, parts: Sequence[str]
) -> Iterator[tuple[int, BufferedReader]]:
    """Open a regular file below a folder, with its own folder; no links are followed."""
    with ExitStack() as stack:
        for part in parts[:-1]:
            shown = shown / part
            folder = stack.enter_context(opened_folder(part, folder, shown))
        yield folder, stack.enter_context(plain_file(parts[-1], folder, shown))


def open_or_refuse(name: str, flags: int, within: int | None, shown: Path) -> int:
    try:
        return os.open(name, flags, dir_fd=within)
    except OSError as error:
        with suppress(OSError):
            raise has_link(shown, os.readlink(name, dir_fd=within)) from None
        raise OSError(error.errno, error.strerror, str(shown)) from None


def has_link(path: Path, leads: str) -> CheckpointHasLink:
    return CheckpointHasLink(
        f"{path} is a link to {leads}; a fork copies the files of a checkpoint alone: put the file "
        "itself in the place of the link, or remove it"
    )
