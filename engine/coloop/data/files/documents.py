"""Folders of documents: which of their files are read."""

import os
from collections.abc import Iterator
from pathlib import Path

COLUMNS = ("text", "title", "path")
"""What a document has as a row: what stands in it, its name without suffix, where it lies."""


def documents_in(path: Path) -> Iterator[Path]:
    """The files of a folder and of the folders in it, by name; hidden ones are left out. Of a file,
    the file.

    Raises:
        ValueError: a link leads out of the folder.
        OSError: a folder cannot be read.
    """
    if not path.is_dir():
        yield path
        return
    yield from _below(path, path.resolve())


def _below(folder: Path, root: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        named = sorted(entries, key=lambda entry: entry.name)
    for entry in named:
        path = folder / entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and not path.resolve().is_relative_to(root):
            raise ValueError(f"`{entry.name}` is a link that leads out of the folder")
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path, root)
        elif entry.is_file():
            yield path
