"""Files that belong to the user alone: the data folder and what lies in it."""

import os
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def ensure_private_folder(folder: Path) -> None:
    """Make the folder where it is missing, and close it to other users."""
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    if folder.stat().st_uid == os.geteuid():
        folder.chmod(FOLDER_MODE)


def ensure_private_file(path: Path) -> None:
    """Make an empty file where it is missing, and close it to other users."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, FILE_MODE))
    if path.stat().st_uid == os.geteuid():
        path.chmod(FILE_MODE)


def read_or_write(path: Path, text: str) -> str:
    """What the file says; `text`, written for good, where there is none yet."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return text
