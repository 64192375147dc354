"""A file of weights as it lies on disk: whether it is as long as its own header says. A file that
was cut off, on its way here or by a full disk, is named before anything is loaded from it.

    8 bytes: length of the header | header: JSON, each weight's place | the weights

Of a folder in a checkpoint the manifest beside it tells more: the SHA-256 of each file.
"""

from __future__ import annotations

import json
from pathlib import Path

from coloop.data.files.marks import Marks

COUNT_BYTES = 8
LONGEST_HEADER = 100_000_000
"""Bytes; what the library reads at most."""


def damage_of_weights(path: Path) -> str | None:
    """What is wrong with a safetensors file, as far as its length tells; None where nothing is."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            count = int.from_bytes(file.read(COUNT_BYTES), "little")
            if size < COUNT_BYTES or count > min(LONGEST_HEADER, size - COUNT_BYTES):
                return f"{path} has {size} bytes and was cut off, or is no safetensors file"
            header = json.loads(file.read(count))
        places = [one["data_offsets"] for name, one in header.items() if name != "__metadata__"]
        wanted = COUNT_BYTES + count + max((int(place[1]) for place in places), default=0)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return f"{path} is damaged: its header cannot be read"
    return None if wanted == size else f"{path} has {size} bytes, its header tells of {wanted}"


def damage_in_checkpoint(folder: Path) -> str | None:
    """What is wrong with a model's folder by the manifest of the checkpoint in which it lies; None
    where nothing is, or it lies in none."""
    try:
        manifest = json.loads((folder.parent / "manifest.json").read_text(encoding="utf-8"))
        hashes = {str(name): str(sha256) for name, sha256 in manifest["hashes"].items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return f"{folder.parent / 'manifest.json'} cannot be read"
    own = {folder.parent / name: one for name, one in hashes.items() if _is_in(name, folder.name)}
    try:
        marks = Marks().of(own)
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    changed = next((path for path, sha256 in own.items() if marks[path].sha256 != sha256), None)
    return None if changed is None else f"{changed} is not what was written: its SHA-256 is another"


def _is_in(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/") and not name.endswith(".pt")
