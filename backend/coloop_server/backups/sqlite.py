"""Copies of an SQLite database: by its online backup, so that a server may go on writing."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from coloop_server.errors import Invalid, Unavailable
from coloop_server.private import ensure_private_file

BUSY_SECONDS: Final = 30.0
FURTHER: Final = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""


def copy_database(source: Path, target: Path) -> None:
    """A whole copy as of one moment; `target` is a new file, closed to others."""
    if not source.is_file():
        raise Unavailable("backup.no_database", f"there is no database {source}")
    ensure_private_file(target)
    try:
        with (
            closing(
                sqlite3.connect(f"{source.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)
            ) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("DELETE FROM servers")
            copy.commit()
    except sqlite3.Error as error:
        raise Unavailable("backup.unreadable", f"{source} cannot be copied: {error}") from error


def check_database(path: Path, name: Path) -> None:
    """`Invalid` where a copy is damaged, or holds more than tables and their indexes.

    Args:
        name: the backup that it comes from, for the message.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as copy:
            copy.execute("PRAGMA trusted_schema=OFF")
            damage = [row[0] for row in copy.execute("PRAGMA integrity_check(1)")]
            orphans = copy.execute("PRAGMA foreign_key_check").fetchone()
            other = copy.execute(
                "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
                " OR sql LIKE 'CREATE VIRTUAL%'"
            ).fetchone()
    except sqlite3.Error as error:
        raise Invalid("backup.unusable", f"{name} holds no database: {error}") from error
    if damage != ["ok"] or orphans is not None:
        raise Invalid("backup.unusable", f"the database in {name} is damaged: {damage[0]}")
    if other is not None:
        raise Invalid(
            "backup.unusable", f"the database in {name} holds a {other[0]} {other[1]!r}, not ours"
        )


def put_in_place(copy: Path, target: Path, aside: Path) -> bool:
    """Give a checked copy the name of the database; what stood there is kept as `aside`. Whether
    there was something."""
    there = target.exists()
    if there:
        _settle(target)
        os.replace(target, aside)
    for ending in FURTHER:
        with suppress(FileNotFoundError):
            target.with_name(target.name + ending).unlink()
    os.replace(copy, target)
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return there


def _settle(path: Path) -> None:
    """What stands in the log beside a database goes into it; one that is no database stays as it
    is."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("PRAGMA journal_mode=DELETE")
