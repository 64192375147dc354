"""`coloop backup` and `coloop restore`: what is copied, what is checked, and in which order.

    backup    copy of one moment -> checked -> archive, 0600; a server may go on meanwhile
    restore   archive whole, its tables known -> no server has the data -> copy checked
              -> what stood there is kept aside (SQLite) -> in place -> tables brought up to date

Run folders are no part of it: they are files, to be copied as such.
"""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, func, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from coloop_server.backups import postgresql, sqlite
from coloop_server.backups.archive import (
    Kind,
    Manifest,
    copy_checked,
    opened_archive,
    sha256_of,
    write_archive,
)
from coloop_server.database.connect import MIGRATIONS, migrate, open_engine, open_sessions
from coloop_server.database.tables import Base
from coloop_server.errors import Conflict, Invalid, Unavailable
from coloop_server.lock import DatabaseLease, DataLock
from coloop_server.settings import Settings

COUNTED = ("loops", "loop_versions", "runs")
"""Tables whose rows a person asks about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did."""

    manifest: Manifest
    kept: Path | None
    """The database that stood there before; None where there was none, or in PostgreSQL."""


def make_backup(settings: Settings, path: Path) -> Manifest:
    """Copy the database into a new file."""
    path = path.absolute()
    if path.exists():
        raise Conflict("backup.exists", f"{path} already exists; name another file")
    if not path.parent.is_dir():
        raise Unavailable("backup.unwritable", f"there is no folder {path.parent}")
    with tempfile.TemporaryDirectory(prefix=".coloop-backup-", dir=path.parent) as folder:
        copy = Path(folder) / "database"
        kind = _kind(settings)
        if kind == "sqlite":
            sqlite.copy_database(_sqlite_file(settings), copy)
            sqlite.check_database(copy, path)
            with _engine(f"sqlite:///{copy}") as engine:
                revision, rows = _revision(engine), _rows(engine)
        else:
            with _engine(settings.database) as engine:
                revision, rows = _revision(engine), _rows(engine)
            postgresql.dump(make_url(settings.database), copy)
        if revision is None:
            raise Unavailable("backup.no_database", "the database has no tables of coloop yet")
        manifest = Manifest(
            kind=kind,
            revision=revision,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            size=copy.stat().st_size,
            sha256=sha256_of(copy),
            rows=rows,
        )
        write_archive(path, manifest, copy)
    return manifest


def restore_backup(settings: Settings, path: Path, *, force: bool) -> Restored:
    """Put the loops and run records of a backup in the place of those that are there.

    Args:
        force: also where there are some.
    """
    path = path.absolute()
    with opened_archive(path) as (manifest, content):
        _check_fits(settings, path, manifest)
        with (
            DataLock(settings.data_dir),
            tempfile.TemporaryDirectory(prefix=".restoring-", dir=settings.data_dir) as folder,
        ):
            copy = Path(folder) / "database"
            copy_checked(path, manifest, content, copy)
            if manifest.kind == "sqlite":
                return _restore_sqlite(settings, path, manifest, copy, force=force)
            return _restore_postgresql(settings, manifest, copy, force=force)


def _restore_sqlite(
    settings: Settings, path: Path, manifest: Manifest, copy: Path, *, force: bool
) -> Restored:
    sqlite.check_database(copy, path)
    with _engine(f"sqlite:///{copy}") as engine:
        found = _revision(engine)
        if found != manifest.revision:
            raise Invalid(
                "backup.unusable",
                f"the tables in {path} are of {found}, its manifest says {manifest.revision}",
            )
        migrate(engine)
    target = _sqlite_file(settings)
    if target.exists():
        _check_unused(settings)
        _check_empty(settings, force=force)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    aside = target.with_name(f"{target.name}.before-{stamp}-{secrets.token_hex(2)}")
    for ending in sqlite.FURTHER:
        with suppress(FileNotFoundError):
            copy.with_name(copy.name + ending).unlink()
    return Restored(
        manifest=manifest, kept=aside if sqlite.put_in_place(copy, target, aside) else None
    )


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
            postgresql.restore(make_url(settings.database), copy)
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
    known = {one.revision for one in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if manifest.revision not in known:
        raise Invalid(
            "backup.newer",
            f"the tables in {path} are of revision {manifest.revision!r}, which this coloop does"
            " not know; a newer one restores it",
        )


def _check_unused(settings: Settings) -> None:
    """Conflict where a server with another data folder has the database, which it says in it."""
    with suppress(SQLAlchemyError, Unavailable), _engine(settings.database) as engine:
        migrate(engine)
        lease = DatabaseLease(open_sessions(engine), settings.data_dir)
        lease.claim()
        lease.close()


def _check_empty(settings: Settings, *, force: bool) -> None:
    try:
        with _engine(settings.database) as engine:
            rows = _rows(engine)
    except SQLAlchemyError as error:
        rows, why = {"rows": 1}, f" (it cannot be read: {error.__class__.__name__})"
    else:
        why = ""
    if any(rows.values()) and not force:
        told = " and ".join(f"{rows.get(name, 0)} {name}" for name in ("loops", "runs"))
        raise Conflict(
            "restore.not_empty",
            f"the database holds {told}{why}; --force replaces them by those of the backup",
        )


def _kind(settings: Settings) -> Kind:
    name = make_url(settings.database).get_backend_name()
    if name == "sqlite":
        return "sqlite"
    if name == "postgresql":
        return "postgresql"
    raise Unavailable("backup.other_database", f"{name} databases cannot be copied by coloop")


def _sqlite_file(settings: Settings) -> Path:
    file = make_url(settings.database).database
    if not file or file == ":memory:":
        raise Unavailable("backup.no_database", "the database is in memory only")
    return Path(file).absolute()


@contextmanager
def _engine(address: str) -> Iterator[Engine]:
    engine = open_engine(address)
    try:
        yield engine
    finally:
        engine.dispose()


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _rows(engine: Engine) -> dict[str, int]:
    """Rows of the tables that are there."""
    there = set(inspect(engine).get_table_names())
    tables = [Base.metadata.tables[name] for name in COUNTED if name in there]
    with engine.connect() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in tables
        }
