"""Copies of a PostgreSQL database: by its own `pg_dump` and `pg_restore`.

The password goes to them in a file of its own, closed to others: command lines and environments of
processes can be seen by more.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from coloop_server.errors import Unavailable
from coloop_server.private import FILE_MODE

SECONDS: Final = 3600
"""Longest time for one copy."""

INSTALLED: Final = Path("/usr/lib/postgresql")


def dump(url: URL, target: Path) -> None:
    """Everything but the row that says which server owns the database; `target` is a new file."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    _run(
        *("pg_dump", url, "--format=custom", "--no-owner", "--no-privileges"),
        *("--exclude-table-data=servers", f"--file={target}"),
    )


def restore(url: URL, source: Path) -> None:
    """The tables of a dump in the place of those that are there: all of them, or none."""
    _run(
        *("pg_restore", url, "--clean", "--if-exists", "--no-owner", "--no-privileges"),
        *("--single-transaction", "--exit-on-error", str(source)),
    )


def _run(program: str, url: URL, *options: str) -> None:
    with _environment(url) as environment:
        plain = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
        address = plain.render_as_string()
        try:
            asked = subprocess.run(
                [find_program(program), f"--dbname={address}", "--no-password", *options],
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable("backup.failed", f"{program} cannot be run: {error}") from error
    if asked.returncode != 0:
        said = (asked.stderr.strip() or "it printed no message").splitlines()
        raise Unavailable("backup.failed", f"{program} failed: {said[0]}")


@contextmanager
def _environment(url: URL) -> Iterator[dict[str, str]]:
    """Of the programs: where the password is, and what the address says beside it."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    with tempfile.TemporaryDirectory(prefix="coloop-") as folder:
        passwords = Path(folder) / "passwords"
        fields = ("*", "*", "*", "*", str(url.password or ""))
        line = ":".join(field.replace("\\", "\\\\").replace(":", "\\:") for field in fields)
        with os.fdopen(os.open(passwords, os.O_CREAT | os.O_WRONLY, FILE_MODE), "w") as file:
            file.write(line + "\n")
        told = {
            f"PG{name.upper()}": str(value)
            for name, value in url.query.items()
            if name not in ("password", "passfile")
        }
        yield {**kept, **told, "PGPASSFILE": str(passwords)}


def find_program(name: str) -> Path:
    """A program of PostgreSQL; the newest where there are several."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    versions = sorted(INSTALLED.glob(f"*/bin/{name}"), key=lambda path: _version(path.parents[1]))
    if not versions:
        raise Unavailable(
            "backup.no_program",
            f"{name} is not installed; it comes with PostgreSQL's client programs"
            " (postgresql-client)",
        )
    return versions[-1]


def _version(folder: Path) -> int:
    return int(folder.name) if folder.name.isdigit() else 0
