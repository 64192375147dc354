"""A folder that travels to a cluster which does not see this machine's files.

    spec.yaml              the loop, its file paths pointing into files/
    files/0/rows.jsonl     what the loop names: small data files, code
    files/1/reward.py      code, with the modules that it imports from beside it
    files/1/helper.py

What is too large to travel lies where the cluster can read it and is named by its path there. A run
may have waited since its paths were held against the roots, so each file is once more, and opened
without following a link.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.forking import file_below, opened_folder
from coloop.sandbox.code_files import file_of, read_code
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse
from coloop.spec.text.patch import patch
from coloop_server.launchers.protocol import LaunchFailed
from coloop_server.paths import URL_MARK, Roots, spec_paths
from coloop_server.private import ensure_private_folder

MAX_FILE_BYTES = 50 * 1024 * 1024


def build_upload(spec_file: Path, folder: Path, base: Path, roots: Roots) -> Path:
    """Fill `folder` with the spec and the files that it names relative to `base`.

    Raises:
        LaunchFailed: a file is too large, or lies outside of the roots.
    """
    text = spec_file.read_text(encoding="utf-8")
    spec = parse(text).spec
    if spec is None:
        raise LaunchFailed(f"{spec_file} contains no loop")
    shutil.rmtree(folder, ignore_errors=True)
    ensure_private_folder(folder)
    ensure_private_folder(folder / "files")
    changes = []
    for number, (field, named) in enumerate(spec_paths(spec)):
        source = base / named
        if URL_MARK in named or not source.is_file():
            continue
        carried = Path("files", f"{number}", source.name)
        ensure_private_folder(folder / carried.parent)
        _carry(roots, source, folder / carried, field)
        if field.endswith(".file"):  # the user's Python, of a reward or of an environment
            _carry_modules(roots, source, folder / carried.parent, field)
        changes.append(Change(op="set", path=field, value=carried.as_posix()))
    (folder / "spec.yaml").write_text(patch(text, changes) if changes else text, encoding="utf-8")
    return folder


def _carry_modules(roots: Roots, source: Path, folder: Path, field: str) -> None:
    """Copy the modules that code imports from its folder next to the copy of the code."""
    try:
        names = list(read_code(source).modules)
    except (OSError, ValueError) as error:
        raise LaunchFailed(f"{field}: {error}") from None
    for name in names:
        target = folder / file_of(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        _carry(roots, source.parent / file_of(name), target, field)


def _carry(roots: Roots, source: Path, target: Path, field: str) -> None:
    with opened_in(roots, source, field) as file:
        if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
            raise LaunchFailed(
                f"{field}: {source} is larger than {MAX_FILE_BYTES // 2**20} MiB, too large to "
                "upload; put it where the cluster can read it and name it by that path"
            )
        with target.open("xb") as copy:
            shutil.copyfileobj(file, copy)


@contextmanager
def opened_in(roots: Roots, source: Path, field: str) -> Iterator[BufferedReader]:
    """What a path leads to, as long as that lies in the roots; a link that is put into its way
    meanwhile is not followed.

    Raises:
        LaunchFailed: it lies outside, or is no plain file any more.
    """
    leads = source.resolve()
    if not roots.admits(leads):
        raise LaunchFailed(
            f"{field}: {source} lies outside of the folders that this server may use; "
            "COLOOP_ALLOWED_ROOTS adds one"
        )
    root = next(root for root in (*roots.allowed, roots.runs) if leads.is_relative_to(root))
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(opened_folder(str(root), None, root))
            parts = leads.relative_to(root).parts
            _, file = stack.enter_context(file_below(folder, root, parts))
        except (OSError, CheckpointError) as error:
            raise LaunchFailed(f"{field}: {source} cannot be uploaded: {error}") from error
        yield file
