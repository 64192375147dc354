"""The arguments of a run, and its folder."""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Literal

from coloop.data.files.marks import aside_of, write_whole
from coloop.errors import CheckpointError, RunFolderExists, RunNotFound
from coloop.runtime.checkpoints.storage import is_address
from coloop.runtime.run_files.checkpoint_folders import CHECKPOINTS
from coloop.runtime.run_files.recorder import Sink
from coloop.runtime.run_files.run_lock import LOCK_FILE, RunLock
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.workers.cluster import Deadlines
from coloop.workers.sync.folders import SHARED_MEMORY

SPEC_FILE = "spec.yaml"
ORIGIN_FILE = "origin.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    spec: LoopSpec
    text: str
    """The loop as given; the run folder keeps it."""
    root: Path
    """Base folder of relative paths in the spec."""
    runs_dir: Path
    run_id: str | None = None
    resume: Path | None = None
    checkpoint: int | None = None
    """Step of the checkpoint to resume from; None: the newest intact one."""
    cluster: Literal["local", "ray"] = "ray"
    address: str | None = None
    """Ray: connect to this cluster; None: start one for this run."""
    nodes: int = 1
    """Ray: nodes that the cluster at the address must have before pools are placed."""
    sinks: Sequence[Sink] = ()
    warnings: Sequence[Diagnostic] = ()
    threads: int | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    ends_process: bool = False
    """The process ends with the run, and its exit code says how."""


def choose_folder(request: RunRequest) -> Path:
    """The folder of a run, new and empty or to be resumed; nothing is written into it.

    Raises:
        RunFolderExists, RunNotFound
    """
    if request.resume is not None:
        if not (request.resume / SPEC_FILE).exists():
            raise RunNotFound(f"{request.resume} is not a run folder: it has no {SPEC_FILE}")
        return request.resume
    folder = request.runs_dir / (request.run_id or new_run_id(request.spec.name))
    _check_is_new(folder, folder.name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def held_folder(request: RunRequest, folder: Path) -> Iterator[None]:
    """Lock the folder of the run and that of its checkpoints, and write all files but the plan.

    Raises:
        RunBusy: another process writes there.
        RunFolderExists: another run has begun there.
        CheckpointError: the folder contains a link.
    """
    with RunLock(folder), ExitStack() as stack:
        if request.resume is None:
            _check_is_new(folder, folder.name)
        elif link := next(links_in(folder), None):
            raise CheckpointError(
                f"{link} is a link, but a run writes into its own folder only: replace it by what "
                f"it points to ({link.readlink()}), or remove it"
            )
        elsewhere = _checkpoints_elsewhere(request, folder)
        if elsewhere is not None:
            elsewhere.mkdir(parents=True, exist_ok=True)
            stack.enter_context(RunLock(elsewhere))
            if request.resume is None:
                _check_is_new(elsewhere, folder.name)
                (folder / CHECKPOINTS).symlink_to(elsewhere, target_is_directory=True)
        if request.resume is None:
            write_whole(folder / SPEC_FILE, request.text)
        if not (folder / ORIGIN_FILE).exists():  # the folder of a fork begins without it
            write_base_folder(folder, request.root)
        yield


def keep_loop(folder: Path, text: str) -> None:
    """Write the loop with which a run goes on into its folder. If it is another, the one before is
    kept as `spec.1.yaml`, the next as `spec.2.yaml`."""
    spec = folder / SPEC_FILE
    before = spec.read_text(encoding="utf-8")
    if before == text:
        return
    aside = next(path for n in count(1) if not (path := folder / f"spec.{n}.yaml").exists())
    write_whole(aside, before)
    write_whole(spec, text)


def write_base_folder(folder: Path, root: Path) -> None:
    text = json.dumps({"root": str(root.resolve())})
    write_whole(folder / ORIGIN_FILE, text)


def read_base_folder(folder: Path) -> Path:
    """The base folder of the loop's relative paths, with which the run began.

    Raises:
        RunNotFound: it cannot be read.
    """
    origin = folder / ORIGIN_FILE
    if not origin.exists():
        return Path()
    try:
        return Path(json.loads(origin.read_text(encoding="utf-8"))["root"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RunNotFound(
            f"{origin} is damaged: it does not say where the loop's relative paths start; set it "
            "with --root"
        ) from error


def links_in(folder: Path) -> Iterator[Path]:
    """Links in a run folder, through which a run would write elsewhere. `checkpoints` itself may be
    a link to another disk."""
    for entry in folder.iterdir():
        if entry.name != CHECKPOINTS:
            below = entry.rglob("*") if entry.is_dir() and not entry.is_symlink() else ()
            yield from (path for path in (entry, *below) if path.is_symlink())


def _check_is_new(folder: Path, run_id: str) -> None:
    is_there = folder.exists() or folder.is_symlink()
    nothing = {LOCK_FILE, aside_of(folder / SPEC_FILE).name}
    if is_there and (not folder.is_dir() or {path.name for path in folder.iterdir()} - nothing):
        raise RunFolderExists(
            f"{folder} exists and is not empty; choose another run id, or resume with `--resume "
            f"{run_id}`"
        )


def _checkpoints_elsewhere(request: RunRequest, folder: Path) -> Path | None:
    """The folder that `checkpoints` links to; None: they are in the run folder."""
    checkpoints = folder / CHECKPOINTS
    if request.resume is not None:
        if not checkpoints.is_symlink():
            return None
        if not checkpoints.is_dir():
            raise CheckpointError(
                f"{checkpoints} points to {checkpoints.readlink()}, which does not exist: restore "
                "that disk, then resume"
            )
        return checkpoints.resolve()
    storage = storage_place(request)
    if storage is None or is_address(storage):
        return None
    return (Path(storage) / folder.name / CHECKPOINTS).resolve()


def storage_place(request: RunRequest) -> str | None:
    """`run.storage`; a folder as an absolute path."""
    storage = request.spec.run.storage
    if storage is None or is_address(storage):
        return storage
    return str((request.root / os.path.expanduser(storage)).resolve())


def transfer_roots(request: RunRequest, folder: Path) -> list[Path]:
    """Where processes may exchange weights: memory first, then a folder shared by machines."""
    storage = storage_place(request)
    shared = folder if storage is None or is_address(storage) else Path(storage)
    return [SHARED_MEMORY, shared.resolve()]


def new_run_id(name: str) -> str:
    return f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
