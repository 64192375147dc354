"""`manifest.json` of a checkpoint: what a resume needs besides the files, size and SHA-256 of every
file, and a SHA-256 of itself, so that nobody takes half of it for the whole.

    {..., "version": 3, "step": 40, "files": {name: bytes}, "hashes": {name: SHA-256},
     "sha256": of the JSON text of all the rest}

Manifests of version 2 have no hash of their own; they are read as they are.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from coloop.data.files.marks import Marks
from coloop.errors import CheckpointError

MANIFEST: Final = "manifest.json"
VERSION: Final = 3
VERSIONS: Final = (2, VERSION)
OWN_HASH: Final = "sha256"
READ_AT_LOADING: Final = (".json", ".safetensors", ".pt", ".rows")
"""Ends of files that would change what is loaded if they came in from elsewhere."""


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a checkpoint, its version and its own hash added.

    Raises:
        OSError: it was not written whole.
    """
    plain = json.loads(json.dumps({**manifest, "version": VERSION}))
    plain.pop(OWN_HASH, None)
    text = json.dumps({**plain, OWN_HASH: _hash(plain)})
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint.

    Raises:
        CheckpointError: it cannot be read, is not what was written, is of another step than its
            folder, or of a version that this coloop does not read.
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
    told = manifest.pop(OWN_HASH, None)
    if (told is not None or version == VERSION) and told != _hash(manifest):
        raise CheckpointError(f"{path} was changed after it was written: its own SHA-256 differs")
    _check_shape(folder, manifest)
    return manifest


def damage_of(folder: Path, manifest: Mapping[str, Any], marks: Marks | None = None) -> str | None:
    """The first file of a checkpoint that is not what its manifest says, with what is wrong; None
    where nothing is.

    Args:
        marks: reads the files; None: names and sizes alone are looked at.
    """
    return damage_in(folder, manifest["files"], manifest["hashes"], marks) or _foreign(
        folder, manifest
    )


def damage_in(
    folder: Path, files: Mapping[str, int], hashes: Mapping[str, str], marks: Marks | None
) -> str | None:
    """As `damage_of`, of files that need no manifest yet."""
    for name, size in files.items():
        path = folder / name
        try:
            found = path.stat().st_size
        except OSError as error:
            return f"{path} was written but cannot be read here: {error.strerror}"
        if found != size:
            return f"{path} has {found} bytes, but {size} were written"
    if marks is None:
        return None
    try:
        found_marks = marks.of(folder / name for name in hashes)
    except OSError as error:
        return f"{error.filename} was written but cannot be read here: {error.strerror}"
    for name, sha256 in hashes.items():
        if found_marks[folder / name].sha256 != sha256:
            return f"{folder / name} was changed after it was written: its SHA-256 differs"
    return None


def _foreign(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """A link, or a file that loading would read and nobody has written."""
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
    place = re.fullmatch(r"step-(\d+)", folder.name)
    if place and manifest.get("step") != int(place[1]):
        raise CheckpointError(
            f"{folder} contains the checkpoint of step {manifest.get('step')}, not of {place[1]}"
        )


def _hash(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
