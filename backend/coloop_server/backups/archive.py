"""The file of a backup: a manifest and the copy of a database, in one tar that is read by name.

    manifest.json   what it is of: format, kind of database, revision, size, sha256, rows
    database        SQLite's own file, or a dump of PostgreSQL

Nothing is unpacked by the names that the file gives, and nothing is used before its size and its
sha256 are those of the manifest.
"""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coloop_server.errors import Conflict, Invalid, Unavailable
from coloop_server.private import FILE_MODE

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DATABASE: Final = "database"
MOST_MANIFEST_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 1024 * 1024

Kind = Literal["sqlite", "postgresql"]


class Manifest(BaseModel):
    """What a backup says of itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    coloop_backup: Annotated[int, Field(ge=1)] = FORMAT
    """Version of this format."""
    kind: Kind
    """Of the database."""
    revision: str
    """Of its tables."""
    made_at: str
    """UTC, ISO 8601."""
    size: Annotated[int, Field(ge=0)]
    """Bytes of the copy."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the copy."""
    rows: dict[str, int]
    """Rows by table."""


def write_archive(path: Path, manifest: Manifest, database: Path) -> None:
    """Write a backup aside, closed to others, and give it its name once it is on the disk."""
    aside = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        descriptor = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                told = manifest.model_dump_json(indent=2).encode()
                _add(tar, MANIFEST, io.BytesIO(told), len(told))
                with database.open("rb") as content:
                    _add(tar, DATABASE, content, manifest.size)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)  # unlike a rename, never over a file that is there
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise Conflict("backup.exists", f"{path} already exists; name another file") from error
    except OSError as error:
        raise Unavailable("backup.unwritable", f"{path} cannot be written: {error}") from error
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, FILE_MODE
    tar.addfile(member, content)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def opened_archive(path: Path) -> Iterator[tuple[Manifest, IO[bytes]]]:
    """A backup's manifest and the copy in it, which is not checked yet; see `copy_checked`."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("rb"))
            tar = opened.enter_context(tarfile.open(fileobj=file, mode="r:"))
            manifest = _read_manifest(path, tar)
            if manifest.size > path.stat().st_size:
                raise _is_none(path, "its copy of the database is truncated")
            content = _member(path, tar, DATABASE, manifest.size)
        except (OSError, tarfile.TarError) as error:
            raise _is_none(path, str(error)) from error
        yield manifest, content


def _read_manifest(path: Path, tar: tarfile.TarFile) -> Manifest:
    told = _member(path, tar, MANIFEST, None).read(MOST_MANIFEST_BYTES)
    try:
        document = json.loads(told)
        if isinstance(document, dict) and document.get("coloop_backup", 0) > FORMAT:
            raise _is_none(path, "a newer coloop wrote it")
        return Manifest.model_validate(document)
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        raise _is_none(path, "its manifest cannot be read") from error


def _member(path: Path, tar: tarfile.TarFile, name: str, size: int | None) -> IO[bytes]:
    found = tar.next()
    if found is None or found.name != name or not found.isreg():
        raise _is_none(path, f"where `{name}` should be there is {found and found.name!r}")
    if size is not None and found.size != size:
        raise _is_none(path, f"`{name}` has {found.size} bytes, its manifest says {size}")
    content = tar.extractfile(found)
    assert content is not None, "a regular file has content"
    return content


def copy_checked(path: Path, manifest: Manifest, content: IO[bytes], target: Path) -> None:
    """Write the copy to a new file, closed to others; refused where it is not what was saved."""
    mark, size = hashlib.sha256(), 0
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in _chunks(path, content):
            size += len(chunk)
            mark.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if size != manifest.size or mark.hexdigest() != manifest.sha256:
        raise _is_none(path, "its copy of the database is not the one that was saved")


def _chunks(path: Path, content: IO[bytes]) -> Iterator[bytes]:
    try:
        while chunk := content.read(CHUNK_BYTES):
            yield chunk
    except (OSError, tarfile.TarError) as error:
        raise _is_none(path, str(error)) from error


def sha256_of(path: Path) -> str:
    """Of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_none(path: Path, why: str) -> Invalid:
    return Invalid("backup.unusable", f"{path} is not a complete backup of coloop: {why}")
