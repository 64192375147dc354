"""Data files over HTTP: they are written beside the loops, where datasets may read them.

    name --no folders, known format--> <first allowed root>/uploads/NAME, NAME-2, ...

A file is never overwritten: the same bytes under the same name are the file that is there.
"""

import os
import re
from pathlib import Path, PurePath
from typing import Final

from coloop.spec.data import COMPRESSIONS, FORMATS, FileSource, unknown_format
from coloop_server.dependencies import SettingsOf
from coloop_server.errors import Conflict, Invalid, router_of
from coloop_server.files.schemas import NewFile, StoredFile
from coloop_server.private import FILE_MODE, ensure_folder
from coloop_server.settings import Settings

router = router_of("files", "/files")

UPLOADS: Final = "uploads"
"""Folder of uploaded files in the first allowed root."""
MOST_OF_ONE_NAME: Final = 1000
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")


@router.post("", operation_id="uploadFile", status_code=201)
def upload_file(body: NewFile, settings: SettingsOf) -> StoredFile:
    """Store a data file for a dataset. Its format is known by its suffix; a file with this name and
    other content is kept, and the new one gets a number."""
    name, content = clean_name(body.name), body.data
    folder = folder_of(settings)
    for number in range(1, MOST_OF_ONE_NAME + 1):
        path = folder / numbered(name, number)
        if write_new(path, content) or is_same(path, content):
            return StoredFile(path=f"{UPLOADS}/{path.name}", bytes=len(content))
    raise Conflict("file.name_taken", f"there are {MOST_OF_ONE_NAME} files named like {name!r}")


def folder_of(settings: Settings) -> Path:
    """The folder of uploads; raises `NotAllowed` where a link leads it out of the roots."""
    folder = settings.allowed_roots[0] / UPLOADS
    settings.roots.check(UPLOADS, "the folder of uploaded files")
    ensure_folder(folder)
    return folder


def clean_name(name: str) -> str:
    """The file's name without folders and odd signs; raises `Invalid` for unknown formats."""
    own = _ODD.sub("-", PurePath(name.replace("\\", "/")).name).lstrip(".-")
    source = FileSource(type="file", path=own or "-")
    if source.written_as is None:
        raise Invalid("file.unknown_format", f"{name!r} {unknown_format(source)}")
    return own


def numbered(name: str, number: int) -> str:
    """`train.jsonl.gz`, `train-2.jsonl.gz`, ..."""
    if number == 1:
        return name
    stem, suffix = PurePath(name), ""
    while stem.suffix.lower() in (*COMPRESSIONS, *FORMATS):
        stem, suffix = stem.with_suffix(""), stem.suffix + suffix
    return f"{stem}-{number}{suffix}"


def write_new(path: Path, content: bytes) -> bool:
    """Write a file that is not there; False if it is."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, FILE_MODE)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return True


def is_same(path: Path, content: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
        return False
    return path.read_bytes() == content
