"""`coloop backup` and `coloop restore`: a manifest and a copy of the database, in one tar.

    backup    copy of one moment -> checked -> archive, 0600; a server may go on meanwhile
    restore   archive whole, its tables known -> no server has the data -> copy checked
              -> what stood there is kept aside (SQLite) -> in place -> tables brought up to date

The copy is SQLite's own file, by its online backup, or a dump by PostgreSQL's `pg_dump`. Nothing is
unpacked by the names that an archive gives, and nothing is used before its size and its sha256 are
those of the manifest. Run folders are no part of it.
"""

import hashlib
import io
import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import URL, Engine, func, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from coloop.data.files.marks import settle_one
from coloop_server.database.connect import (
    known_revisions,
    migrate,
    open_engine,
    open_sessions,
    revisions_of,
)
from coloop_server.database.tables import Base
from coloop_server.errors import Conflict, Invalid, Unavailable
from coloop_server.lock import DatabaseLease, DataLock
from coloop_server.private import FILE_MODE, ensure_private_file
from coloop_server.settings import Settings

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DATABASE: Final = "database"
"""Names of the two members, in this order."""
MOST_MANIFEST_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 1024 * 1024
BUSY_SECONDS: Final = 30.0
PROGRAM_SECONDS: Final = 3600
"""Time limit for one copy by PostgreSQL's programs."""
INSTALLED: Final = Path("/usr/lib/postgresql")
FURTHER: Final = ("-wal", "-shm", "-journal")
"""Suffixes of further files of an SQLite database."""
COUNTED: Final = ("loops", "loop_versions", "runs")
"""Tables whose rows are reported to the user."""


class Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    coloop_backup: Annotated[int, Field(ge=1)] = FORMAT
    kind: Literal["sqlite", "postgresql"]
    revision: str
    made_at: str
    """UTC, ISO 8601."""
    size: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rows: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    manifest: Manifest
    kept: Path | None
    """The previous database; None if there was none, or in PostgreSQL."""


def make_backup(settings: Settings, path: Path) -> Manifest:
    """Copy the database into a new file."""
    path = path.absolute()
    if path.exists():
        raise Conflict("backup.exists", f"{path} already exists; name another file")
    if not path.parent.is_dir():
        raise Unavailable("backup.unwritable", f"there is no folder {path.parent}")
    kind = _kind(settings)
    with tempfile.TemporaryDirectory(prefix=".coloop-backup-", dir=path.parent) as folder:
        copy, archive = Path(folder) / "database", Path(folder) / "archive"
        source = settings.database
        if kind == "sqlite":
            _copy_sqlite(_sqlite_file(settings), copy)
            _check_sqlite(copy, path)
            source = f"sqlite:///{copy}"
        with _engine(source) as engine:
            revisions, rows = revisions_of(engine), _rows(engine)
        if kind == "postgresql":
            ensure_private_file(copy)
            # All but the row that says which server owns the database.
            more = ("--format=custom", "--exclude-table-data=servers", f"--file={copy}")
            _run_program("pg_dump", settings, *more)
        if not revisions:
            raise Unavailable("backup.no_database", "the database has no tables of coloop yet")
        with copy.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        manifest = Manifest(
            kind=kind,
            revision=revisions[0],
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            size=copy.stat().st_size,
            sha256=sha256,
            rows=rows,
        )
        try:
            _write_archive(archive, manifest, copy)
            os.link(archive, path)  # unlike a rename, never over a file that is there
            settle_one(path.parent)
        except FileExistsError as error:
            raise Conflict("backup.exists", f"{path} already exists; name another file") from error
        except OSError as error:
            raise Unavailable("backup.unwritable", f"{path} cannot be written: {error}") from error
    return manifest


def restore_backup(settings: Settings, path: Path, *, force: bool) -> Restored:
    """Replace the loops and run records with those of a backup.

    Args:
        force: also where there are some.
    """
    path = path.absolute()
    with _reading(path):
        tar = tarfile.open(path, "r:")  # noqa: SIM115 - closed below
    with tar:
        manifest = _read_manifest(path, tar)
        content = _member(path, tar, DATABASE, manifest.size)
        _check_fits(settings, path, manifest)
        with (
            DataLock(settings.data_dir),
            tempfile.TemporaryDirectory(prefix=".restoring-", dir=settings.data_dir) as folder,
        ):
            copy = Path(folder) / "database"
            _copy_checked(path, manifest, content, copy)
            if manifest.kind == "sqlite":
                return _restore_sqlite(settings, path, manifest, copy, force=force)
            return _restore_postgresql(settings, manifest, copy, force=force)


def _restore_sqlite(
    settings: Settings, path: Path, manifest: Manifest, copy: Path, *, force: bool
) -> Restored:
    _check_sqlite(copy, path)
    with _engine(f"sqlite:///{copy}") as engine:
        revision = next(iter(revisions_of(engine)), None)
        if revision != manifest.revision:
            raise Invalid(
                "backup.unusable",
                f"the tables in {path} are of {revision}, its manifest says {manifest.revision}",
            )
        migrate(engine)
    _remove_further(copy)
    target = _sqlite_file(settings)
    kept = None
    if target.exists():
        _check_unused(settings)
        _check_empty(settings, force=force)
        with suppress(sqlite3.Error), closing(sqlite3.connect(target)) as before:
            before.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            before.execute("PRAGMA journal_mode=DELETE")
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        kept = target.with_name(f"{target.name}.before-{stamp}-{secrets.token_hex(2)}")
        os.replace(target, kept)
    _remove_further(target)
    os.replace(copy, target)
    settle_one(target.parent)
    return Restored(manifest=manifest, kept=kept)


def _restore_postgresql(
    settings: Settings, manifest: Manifest, copy: Path, *, force: bool
) -> Restored:
    with _engine(settings.database) as engine:
        migrate(engine)
        lease = DatabaseLease(open_sessions(engine), settings.data_dir)
        lease.claim()
        try:
            _check_empty(settings, force=force)
            engine.dispose()
            more = ("--clean", "--if-exists", "--single-transaction", "--exit-on-error", str(copy))
            _run_program("pg_restore", settings, *more)
            migrate(engine)
        finally:
            lease.close()
    return Restored(manifest=manifest, kept=None)


def _check_fits(settings: Settings, path: Path, manifest: Manifest) -> None:
    kind = _kind(settings)
    if manifest.kind != kind:
        raise Invalid(
            "backup.other_database",
            f"{path} is of {manifest.kind}, and COLOOP_DATABASE_URL names {kind}",
        )
    if manifest.revision not in known_revisions():
        raise Invalid(
            "backup.newer",
            f"the tables in {path} are of revision {manifest.revision!r}, which this coloop does"
            " not know; a newer one restores it",
        )


def _check_unused(settings: Settings) -> None:
    """Conflict if a server with another data folder uses the database."""
    with suppress(SQLAlchemyError, Unavailable), _engine(settings.database) as engine:
        migrate(engine)
        lease = DatabaseLease(open_sessions(engine), settings.data_dir)
        lease.claim()
        lease.close()


def _check_empty(settings: Settings, *, force: bool) -> None:
    try:
        with _engine(settings.database) as engine:
            rows, why = _rows(engine), ""
    except SQLAlchemyError as error:
        rows, why = {"rows": 1}, f" (it cannot be read: {error.__class__.__name__})"
    if any(rows.values()) and not force:
        counts = " and ".join(f"{rows.get(name, 0)} {name}" for name in ("loops", "runs"))
        raise Conflict(
            "restore.not_empty",
            f"the database holds {counts}{why}; --force replaces them by those of the backup",
        )


# The archive


def _write_archive(path: Path, manifest: Manifest, database: Path) -> None:
    ensure_private_file(path)
    text = manifest.model_dump_json(indent=2).encode()
    with path.open("wb") as file, database.open("rb") as copy:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for name, size, content in (
                (MANIFEST, len(text), io.BytesIO(text)),
                (DATABASE, manifest.size, copy),
            ):
                member = tarfile.TarInfo(name)
                member.size, member.mode = size, FILE_MODE
                tar.addfile(member, content)
        file.flush()
        os.fsync(file.fileno())


def _read_manifest(path: Path, tar: tarfile.TarFile) -> Manifest:
    with _reading(path):
        text = _member(path, tar, MANIFEST).read(MOST_MANIFEST_BYTES)
    try:
        document = json.loads(text)
        if isinstance(document, dict) and document.get("coloop_backup", 0) > FORMAT:
            raise _unusable(path, "a newer coloop wrote it")
        return Manifest.model_validate(document)
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        raise _unusable(path, "its manifest cannot be read") from error


def _member(path: Path, tar: tarfile.TarFile, name: str, size: int | None = None) -> IO[bytes]:
    """The next member's content; its name must match."""
    with _reading(path):
        member = tar.next()
    if member is None or member.name != name or not member.isreg():
        other = member and member.name
        raise _unusable(path, f"where `{name}` should be there is {other!r}")
    if size is not None and member.size != size:
        raise _unusable(path, f"`{name}` has {member.size} bytes, its manifest says {size}")
    content = tar.extractfile(member)
    assert content is not None, "a regular file has content"
    return content


def _copy_checked(path: Path, manifest: Manifest, content: IO[bytes], target: Path) -> None:
    """Write the copy to a new private file; refused if it differs from what was saved."""
    checksum, size = hashlib.sha256(), 0
    ensure_private_file(target)
    with target.open("wb") as file:
        while True:
            with _reading(path):
                chunk = content.read(CHUNK_BYTES)
            if not chunk:
                break
            size += len(chunk)
            checksum.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if size != manifest.size or checksum.hexdigest() != manifest.sha256:
        raise _unusable(path, "its copy of the database is not the one that was saved")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, tarfile.TarError) as error:
        raise _unusable(path, str(error)) from error


def _unusable(path: Path, why: str) -> Invalid:
    return Invalid("backup.unusable", f"{path} is not a complete backup of coloop: {why}")


# SQLite


def _copy_sqlite(source: Path, target: Path) -> None:
    """A consistent copy; a server may keep writing."""
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


def _check_sqlite(copy: Path, path: Path) -> None:
    """`Invalid` if the copy in a backup is damaged, or contains more than tables and indexes."""
    try:
        with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA trusted_schema=OFF")
            damage = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
            orphans = database.execute("PRAGMA foreign_key_check").fetchone()
            other = database.execute(
                "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
                " OR sql LIKE 'CREATE VIRTUAL%'"
            ).fetchone()
    except sqlite3.Error as error:
        raise Invalid("backup.unusable", f"{path} holds no database: {error}") from error
    if damage != ["ok"] or orphans is not None:
        raise Invalid("backup.unusable", f"the database in {path} is damaged: {damage[0]}")
    if other is not None:
        raise Invalid(
            "backup.unusable", f"the database in {path} holds a {other[0]} {other[1]!r}, not ours"
        )


def _sqlite_file(settings: Settings) -> Path:
    file = make_url(settings.database).database
    if not file or file == ":memory:":
        raise Unavailable("backup.no_database", "the database is in memory only")
    return Path(file).absolute()


def _remove_further(database: Path) -> None:
    for ending in FURTHER:
        database.with_name(database.name + ending).unlink(missing_ok=True)


# PostgreSQL


def _run_program(name: str, settings: Settings, *options: str) -> None:
    """Run `pg_dump` or `pg_restore` on the database. The password is passed in a private file,
    since other users can see command lines and environments."""
    url = make_url(settings.database)
    address = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    command = [_find_program(name), f"--dbname={address.render_as_string()}", "--no-password"]
    environment = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    environment |= {
        f"PG{key.upper()}": str(value)
        for key, value in url.query.items()
        if key not in ("password", "passfile")
    }
    with tempfile.TemporaryDirectory(prefix="coloop-") as folder:
        passwords = Path(folder) / "passwords"
        ensure_private_file(passwords)
        password = str(url.password or "").replace("\\", "\\\\").replace(":", "\\:")
        passwords.write_text(f"*:*:*:*:{password}\n")
        try:
            result = subprocess.run(
                [*command, "--no-owner", "--no-privileges", *options],
                env={**environment, "PGPASSFILE": str(passwords)},
                capture_output=True,
                text=True,
                timeout=PROGRAM_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable("backup.failed", f"{name} cannot be run: {error}") from error
    if result.returncode != 0:
        lines = (result.stderr.strip() or "it printed no message").splitlines()
        raise Unavailable("backup.failed", f"{name} failed: {lines[0]}")


def _find_program(name: str) -> str:
    """A program of PostgreSQL; the newest if several are installed."""
    if (program := shutil.which(name)) is not None:
        return program
    versions = {
        int(path.parents[1].name) if path.parents[1].name.isdigit() else 0: path
        for path in INSTALLED.glob(f"*/bin/{name}")
    }
    if not versions:
        raise Unavailable(
            "backup.no_program",
            f"{name} is not installed; it comes with PostgreSQL's client programs"
            " (postgresql-client)",
        )
    return str(versions[max(versions)])


# Databases


def _kind(settings: Settings) -> Literal["sqlite", "postgresql"]:
    name = make_url(settings.database).get_backend_name()
    if name == "sqlite":
        return "sqlite"
    if name == "postgresql":
        return "postgresql"
    raise Unavailable("backup.other_database", f"{name} databases cannot be copied by coloop")


@contextmanager
def _engine(address: str) -> Iterator[Engine]:
    engine = open_engine(address)
    try:
        yield engine
    finally:
        engine.dispose()


def _rows(engine: Engine) -> dict[str, int]:
    there = set(inspect(engine).get_table_names())
    tables = [Base.metadata.tables[name] for name in COUNTED if name in there]
    with engine.connect() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in tables
        }
