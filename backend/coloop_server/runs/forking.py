"""Forks over HTTP: a checkpoint in the server's roots becomes the beginning of a new run folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coloop.errors import CheckpointError
from coloop.runtime.checkpoints import forking
from coloop_server.errors import Conflict
from coloop_server.paths import Roots

CODES = ("run.no_checkpoint", "run.has_link", "run.nothing_left")
NOT_FORKED = "run.not_forked"


@contextmanager
def as_conflict() -> Iterator[None]:
    """What a checkpoint refuses, as an answer."""
    try:
        yield
    except CheckpointError as error:
        code = error.code if error.code in CODES else NOT_FORKED
        raise Conflict(code, str(error)) from error


def choose_checkpoint(folder: Path, step: int | None) -> Path:
    with as_conflict():
        return forking.choose_checkpoint(folder, step)


def prepare_fork(checkpoint: Path, target: Path, yaml: str, roots: Roots) -> None:
    """Create the folder of the new run; a failure leaves nothing behind."""
    folder = checkpoint.parent
    if not roots.admits(folder):
        leads = f" is a link to {os.readlink(folder)}, and" if folder.is_symlink() else ""
        raise Conflict(
            "run.has_link",
            f"{folder}{leads} lies outside of the folders that this server may use; "
            "COLOOP_ALLOWED_ROOTS adds one",
        )
    with as_conflict():
        forking.prepare_fork(checkpoint, target, yaml)


def require_steps_left(checkpoint: Path, steps: object) -> None:
    with as_conflict():
        forking.require_steps_left(checkpoint, steps)
