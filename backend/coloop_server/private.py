"""Private files of the user, such as the data folder; and files from anyone, which are opened only
if they are regular files."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

FOLDER_MODE = 0o700
FILE_MODE = 0o600
MODES = {os.O_RDONLY: "rb", os.O_WRONLY: "ab", os.O_RDWR: "r+b"}


def ensure_private_folder(folder: Path) -> None:
    """Create the folder if needed, and close it to other users."""
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    if folder.stat().st_uid == os.geteuid():
        folder.chmod(FOLDER_MODE)


def ensure_folder(folder: Path) -> None:
    """Create a missing folder for this user only; an existing one keeps its mode."""
    if not folder.is_dir():
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)


def ensure_private_file(path: Path) -> None:
    """Create an empty file if needed, and close it to other users."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, FILE_MODE))
    if path.stat().st_uid == os.geteuid():
        path.chmod(FILE_MODE)


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only this user can read."""
    write_private_bytes(path, text.encode())


def write_private_bytes(path: Path, data: bytes) -> None:
    """Replace a file by one that only this user can read."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def read_or_write(path: Path, text: str) -> str:
    """The file's text. If it is missing, or left empty by an interrupted write, `text` is written
    first."""
    with suppress(FileNotFoundError):
        if known := path.read_text(encoding="utf-8").strip():
            return known
    write_private(path, text)
    return path.read_text(encoding="utf-8").strip()


def open_plain(path: Path, flags: int = os.O_RDONLY) -> IO[bytes]:
    """Open a regular file without waiting; OSError for anything else, including links."""
    safe = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags | safe, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a plain file")
        return os.fdopen(descriptor, MODES[flags & os.O_ACCMODE])
    except BaseException:
        os.close(descriptor)
        raise
