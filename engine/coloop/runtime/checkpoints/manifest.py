"""`manifest.json` of a checkpoint: what a resume needs besides the files, size and SHA-256 of every
file, and a SHA-256 of itself.

    {..., "version": 3, "step": 40, "files": {name: bytes}, "hashes": {name: SHA-256},
     "sha256": of the JSON text of all the rest}

Manifests of version 2 have no hash of themselves and are read without it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from coloop.data.files.marks import Mark, Marks
from coloop.errors import CheckpointError
from coloop.runtime.run_files.checkpoint_folders import MANIFEST

VERSION: Final = 3
VERSIONS: Final = (2, VERSION)
OWN_HASH: Final = "sha256"
READ_AT_LOADING: Final = (".json", ".safetensors", ".pt", ".rows")
"""Suffixes of files that would change what is loaded if they came from elsewhere."""


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a checkpoint, with its version and its own hash."""
    plain = json.loads(json.dumps({**manifest, "version": VERSION}))
    plain.pop(OWN_HASH, None)
    text = json.dumps({**plain, OWN_HASH: _hash(plain)})
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint.

    Raises:
        CheckpointError: it cannot be read, was changed, belongs to another step than its folder,
            or has a version that this coloop does not read.
    """
    path = folder / MANIFEST
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise CheckpointError(f"{path} cannot be read: it is not a file")
    try:
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: its manifest cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{path}: its manifest cannot be read: it is not a JSON object")
    version = manifest.get("version")
    if version not in VERSIONS or isinstance(version, bool | float):
        raise CheckpointError(
            f"{folder}: written in manifest version {version!r}, but this coloop reads "
            f"{' and '.join(map(str, VERSIONS))}; resume it with the coloop that wrote it, or "
            "start a new run from its weights"
        )
    own_hash = manifest.pop(OWN_HASH, None)
    if (own_hash is not None or version == VERSION) and own_hash != _hash(manifest):
        raise CheckpointError(f"{path} was changed after it was written: its own SHA-256 differs")
    _check_shape(folder, manifest)
    return manifest


def damage_of(folder: Path, manifest: Mapping[str, Any], marks: Marks | None = None) -> str | None:
    """What is wrong with the first file that differs from the manifest, or None. Without `marks`,
    which read the files, only names and sizes are checked."""
    hashes = manifest["hashes"]
    files = {
        name: Mark(size=size, sha256=hashes.get(name, ""))
        for name, size in manifest["files"].items()
    }
    return damage_in(folder, files, marks) or _foreign(folder, manifest)


def damage_in(folder: Path, written: Mapping[str, Mark], marks: Marks | None) -> str | None:
    """As `damage_of`, before there is a manifest. Files with an empty hash (version 2) are not
    read."""
    files = {folder / name: mark for name, mark in written.items()}
    try:
        for path, mark in files.items():
            size = path.stat().st_size
            if size != mark.size:
                return f"{path} has {size} bytes, but {mark.size} were written"
        hashed = [path for path, mark in files.items() if mark.sha256]
        read = marks.of(hashed) if marks is not None else {}
    except OSError as error:
        return f"{error.filename} was written but cannot be read here: {error.strerror}"
    for path, mark in read.items():
        if mark.sha256 != files[path].sha256:
            return f"{path} was changed after it was written: its SHA-256 differs"
    return None


def _foreign(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """A link, or a file that loading would read although no manifest names it."""
    known = {*manifest["files"], MANIFEST}
    for path in (folder, *sorted(folder.rglob("*"))):
        if path.is_symlink():
            return (
                f"{path} is a link to {path.readlink()}: a checkpoint contains its own files only"
            )
        if manifest["version"] < VERSION:
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix in READ_AT_LOADING and name not in known and path.is_file():
            return f"{path} does not belong to this checkpoint: its manifest does not name it"
    return None


def _check_shape(folder: Path, manifest: Mapping[str, Any]) -> None:
    files, hashes = manifest.get("files"), manifest.get("hashes")
    if not isinstance(files, dict) or not isinstance(hashes, dict):
        raise CheckpointError(f"{folder}: its manifest does not say which files belong to it")
    unknown = files.keys() - hashes.keys() if manifest["version"] == VERSION else set()
    if unknown:
        raise CheckpointError(f"{folder}: its manifest has no SHA-256 of {min(unknown)}")
    step = re.fullmatch(r"step-(\d+)", folder.name)
    if step and manifest.get("step") != int(step[1]):
        raise CheckpointError(
            f"{folder} contains the checkpoint of step {manifest.get('step')}, not of {step[1]}"
        )


def _hash(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
