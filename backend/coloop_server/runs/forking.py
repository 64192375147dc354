"""A fork: a run folder of its own that begins with a checkpoint of another run.

The checkpoint's files are linked, not copied, where the file system can do that; a checkpoint is
never changed once it is whole, so both runs may share its bytes. The new run then goes on from it
as a resumed run does, with a spec, events and numbering of its own.
"""

import os
import shutil
from pathlib import Path

from coloop.marks import write_whole
from coloop_server.errors import Conflict

CHECKPOINTS = "checkpoints"
MANIFEST = "manifest.json"


def whole_checkpoints(folder: Path) -> dict[int, Path]:
    """Step to folder of the checkpoints that were written to their end."""
    found = {}
    for path in (folder / CHECKPOINTS).glob("step-*"):
        number = path.name.removeprefix("step-")
        if number.isdecimal() and (path / MANIFEST).is_file():
            found[int(number)] = path
    return found


def choose_checkpoint(folder: Path, step: int | None) -> Path:
    """The checkpoint of a step, or the last one."""
    found = whole_checkpoints(folder)
    if not found:
        raise Conflict("run.no_checkpoint", f"run {folder.name} has no checkpoint to start from")
    wanted = max(found) if step is None else step
    if wanted not in found:
        kept = ", ".join(map(str, sorted(found)))
        raise Conflict(
            "run.no_checkpoint",
            f"run {folder.name} has no checkpoint of step {step}; it has {kept}",
        )
    return found[wanted]


def prepare_fork(checkpoint: Path, target: Path, yaml: str) -> None:
    """Make the folder of the new run; on failure nothing of it is left."""
    try:
        (target / CHECKPOINTS).mkdir(parents=True)
        copied = target / CHECKPOINTS / checkpoint.name
        shutil.copytree(checkpoint, copied, copy_function=link_or_copy)
        write_whole(target / "spec.yaml", yaml)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise Conflict("run.not_forked", f"the checkpoint cannot be copied: {error}") from error


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=True)
    except OSError:
        shutil.copy2(source, target)
