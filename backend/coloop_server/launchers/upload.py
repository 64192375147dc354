"""A folder that travels to a cluster which does not see this machine's files.

    spec.yaml              the loop, its file paths pointing into files/
    files/0/rows.jsonl     what the loop names: small data files, code
    files/1/reward.py      code, with the modules that it imports from beside it
    files/1/helper.py

What is too large to travel lies where the cluster can read it and is named by its path there.
"""

import shutil
from pathlib import Path

from coloop.code_files import file_of, read_code
from coloop.diagnostics import Change
from coloop.spec.io import parse
from coloop.spec.text.patch import patch
from coloop_server.launchers.protocol import LaunchFailed
from coloop_server.paths import URL_MARK, spec_paths
from coloop_server.private import ensure_private_folder

MAX_FILE_BYTES = 50 * 1024 * 1024


def build_upload(spec_file: Path, folder: Path, base: Path) -> Path:
    """Fill `folder` with the spec and the files that it names relative to `base`."""
    text = spec_file.read_text(encoding="utf-8")
    spec = parse(text).spec
    if spec is None:
        raise LaunchFailed(f"{spec_file} gives no loop")
    shutil.rmtree(folder, ignore_errors=True)
    ensure_private_folder(folder)
    ensure_private_folder(folder / "files")
    changes = []
    for number, (field, named) in enumerate(spec_paths(spec)):
        source = base / named
        if URL_MARK in named or not source.is_file():
            continue
        if source.stat().st_size > MAX_FILE_BYTES:
            raise LaunchFailed(
                f"{field}: {named} is larger than {MAX_FILE_BYTES // 2**20} MiB, too large to send "
                "along; put it where the cluster can read it and name it by that path"
            )
        carried = Path("files", f"{number}", source.name)
        ensure_private_folder(folder / carried.parent)
        shutil.copyfile(source, folder / carried)
        if is_code(field):
            _carry_modules(source, folder / carried.parent, field)
        changes.append(Change(op="set", path=field, value=carried.as_posix()))
    (folder / "spec.yaml").write_text(patch(text, changes) if changes else text, encoding="utf-8")
    return folder


def is_code(field: str) -> bool:
    """Whether a field names the user's Python: of a reward, or of an environment."""
    return field.rpartition(".")[2] == "file"


def _carry_modules(source: Path, folder: Path, field: str) -> None:
    """What code imports from beside it, to where its copy lies."""
    try:
        for name in read_code(source).modules:
            target = folder / file_of(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.parent / file_of(name), target)
    except (OSError, ValueError) as error:
        raise LaunchFailed(f"{field}: {error}") from None
