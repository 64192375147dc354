"""A folder that travels to a cluster which does not see this machine's files.

    spec.yaml              the loop, its file paths pointing into files/
    files/0-reward.py      what the loop names: reward code, small data files

What is too large to travel lies where the cluster can read it and is named by its path there.
"""

import shutil
from pathlib import Path

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
        carried = Path("files") / f"{number}-{source.name}"
        shutil.copyfile(source, folder / carried)
        changes.append(Change(op="set", path=field, value=carried.as_posix()))
    (folder / "spec.yaml").write_text(patch(text, changes) if changes else text, encoding="utf-8")
    return folder
