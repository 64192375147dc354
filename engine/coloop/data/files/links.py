"""What a folder holds, held against a rule of where paths may lead.

Libraries open the files of a model folder by name and follow links. That the folder lies where it
may says nothing of what they will read.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MOST_ENTRIES: Final = 200_000
"""Of one folder and of all below it."""


class TooManyEntries(ValueError):
    """A folder holds more than is looked through."""


def entry_outside(folder: Path, admits: Callable[[Path], bool]) -> Path | None:
    """The first link or folder below a folder that leads to where it may not; None: there is none.
    What a link leads to is looked through as well; what cannot be listed holds nothing.

    Args:
        admits: whether a path, followed to its end, lies where it may.

    Raises:
        TooManyEntries: not all of them were seen, and those that were may be there.
    """
    waiting, seen, count = [folder], set[Path](), 0
    while waiting:
        shown = waiting.pop()
        listed = shown.resolve()
        if listed in seen:
            continue
        seen.add(listed)
        for entry in _entries(listed):
            count += 1
            if count > MOST_ENTRIES:
                raise TooManyEntries(f"more than {MOST_ENTRIES:,} entries")
            if not (entry.is_symlink() or entry.is_dir(follow_symlinks=False)):
                continue
            if not admits(shown / entry.name):
                return shown / entry.name
            if _is_folder(entry):
                waiting.append(shown / entry.name)
    return None


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from entries


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Whether it is one or leads to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


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
            raise ValueError(f"`{entry.name}` is a link that leads outside the folder")
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path, root)
        elif entry.is_file():
            yield path
