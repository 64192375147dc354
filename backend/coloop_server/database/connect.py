"""Opening the database and bringing it up to date."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from coloop_server.errors import Unavailable
from coloop_server.private import ensure_private_file

MIGRATIONS = Path(__file__).parents[1] / "migrations"
VERSIONS = "alembic_version"
BUSY_SECONDS = 3
"""How long a writer waits for another; afterwards the client is told to retry."""

Sessions = sessionmaker[Session]


def open_engine(address: str) -> Engine:
    """An engine for `address`. PostgreSQL goes through psycopg 3."""
    try:
        url = make_url(address)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite":
            close_to_others(url.database)
            engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
            event.listen(engine, "connect", prepare_sqlite)
            return engine
        return create_engine(url, pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise Unavailable(
            "database.unusable",
            f"COLOOP_DATABASE_URL cannot be used: {error}; "
            "expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME "
            "(which needs the package psycopg)",
        ) from error


def close_to_others(file: str | None) -> None:
    """SQLite gives its further files the mode of the first one. Other errors appear when it is
    opened."""
    if file and file != ":memory:":
        with suppress(OSError):
            ensure_private_file(Path(file))


def prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def migrate(engine: Engine) -> None:
    """Run all missing migrations. Alembic is loaded only if there are any: that takes a tenth of
    the time until the first response."""
    try:
        with engine.begin() as connection:
            if _revisions(connection) != [max(known_revisions())]:
                upgrade(connection)
    except SQLAlchemyError as error:
        where = engine.url.render_as_string(hide_password=True)
        raise Unavailable(
            "database.unreachable", f"the database {where} cannot be opened: {error}"
        ) from error


def upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def revisions_of(engine: Engine) -> list[str]:
    """Applied migrations of the database; none for a new one."""
    with engine.connect() as connection:
        return _revisions(connection)


def _revisions(connection: Connection) -> list[str]:
    if not inspect(connection).has_table(VERSIONS):
        return []
    return list(connection.execute(text(f"SELECT version_num FROM {VERSIONS}")).scalars())


def known_revisions() -> set[str]:
    """Revisions of all migrations, from file names such as `v0001_...`."""
    return {path.name[1:5] for path in (MIGRATIONS / "versions").glob("v*.py")}


def open_sessions(engine: Engine) -> Sessions:
    return sessionmaker(engine, expire_on_commit=False)
