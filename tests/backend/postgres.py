"""PostgreSQL without docker: the machine's own programs, as a user that may run them.

With COLOOP_TEST_POSTGRES=1 every server of `tests/backend` has a database of its own on one that is
started for these tests; `make test-postgres` does so.
"""

import atexit
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from coloop_server.database.connect import migrate, open_engine
from coloop_server.errors import Unavailable
from coloop_server.settings import Settings

NUMBERS = count(1)
ON_POSTGRES = os.environ.get("COLOOP_TEST_POSTGRES") == "1"
UP_SECONDS = 60

sqlite_only = pytest.mark.skipif(ON_POSTGRES, reason="it looks into SQLite's own file")


def new_database() -> SecretStr | None:
    """The address of an empty database, where tests run on PostgreSQL."""
    if not ON_POSTGRES:
        return None
    address = shared_server()
    name = f"coloop_{os.getpid()}_{next(NUMBERS)}"
    engine = open_engine(address).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return SecretStr(make_url(address).set(database=name).render_as_string(hide_password=False))


def execute(settings: Settings, statement: str, **values: Any) -> list[Any]:
    """What a statement of a test finds in the database of a server, whichever it is."""
    engine = open_engine(settings.database)
    with engine.begin() as connection:
        found = connection.execute(text(statement), values)
        rows = [tuple(row) for row in found] if found.returns_rows else []
    engine.dispose()
    return rows


def kept_handle(settings: Settings, run_id: str) -> dict[str, Any]:
    """The handle of a run, as it stands in the database."""
    ((kept,),) = execute(settings, "SELECT handle FROM runs WHERE id = :id", id=run_id)
    handle: dict[str, Any] = json.loads(kept) if isinstance(kept, str) else kept
    return handle


@cache
def shared_server() -> str:
    """One server for all tests of this process, ended with it."""
    stack = ExitStack()
    address = stack.enter_context(running())
    atexit.register(stack.close)
    deadline = time.monotonic() + UP_SECONDS
    while not answers(address):
        if time.monotonic() > deadline:
            pytest.fail(f"PostgreSQL did not answer within {UP_SECONDS} s")
        time.sleep(0.1)
    return address


def answers(address: str) -> bool:
    engine = open_engine(address)
    try:
        with engine.connect():
            return True
    except OperationalError:
        return False
    finally:
        engine.dispose()


def postgres_user() -> str | None:
    """A user that PostgreSQL agrees to run as; it refuses root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    return next((name for name in ("postgres", "nobody") if has_user(name)), None)


def has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's own programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    path = shutil.which("initdb")
    return Path(path).parent if path else None


def places_for(identity: pwd.struct_passwd) -> list[Path]:
    """Folders for data, by preference. The names of sockets in them have to be short."""
    return [Path(os.path.realpath(name)) for name in ("/tmp", "/var/tmp", identity.pw_dir)]


def can_enter(folder: Path, identity: pwd.struct_passwd) -> bool:
    """Whether the user reaches what lies in a folder."""
    for place in (folder, *folder.parents):
        try:
            status = place.stat()
        except OSError:
            return False
        is_own = status.st_uid == identity.pw_uid
        if not status.st_mode & (stat.S_IXUSR if is_own else stat.S_IXOTH):
            return False
    return True


@contextmanager
def running() -> Iterator[str]:
    """A PostgreSQL server of the test's own, as an address; skips where there is none."""
    programs, user = postgres_programs(), postgres_user()
    if programs is None or user is None or find_spec("psycopg") is None:
        pytest.skip("PostgreSQL or psycopg is not installed")
    identity = pwd.getpwnam(user)
    parent = next((place for place in places_for(identity) if can_enter(place, identity)), None)
    if parent is None:
        pytest.skip(f"there is no folder for data that {user} may enter")
    folder = Path(tempfile.mkdtemp(prefix="coloop-postgres-", dir=parent))
    os.chown(folder, identity.pw_uid, identity.pw_gid)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = {"user": identity.pw_uid} if os.geteuid() == 0 else {}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.enter_context(serving(programs, folder, port, options))
        yield f"postgresql://coloop@127.0.0.1:{port}/postgres"


@contextmanager
def serving(
    programs: Path, folder: Path, port: int, options: dict[str, Any]
) -> Iterator["subprocess.Popen[bytes]"]:
    """The server on a folder, from its first file to its end."""
    data = folder / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "coloop", "--auth=trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **options,
    )
    server = subprocess.Popen(
        [
            *(programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder),
            *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=400"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        **options,
    )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nobody wants the data again
        server.wait(30)


def is_up(address: str) -> bool:
    engine = open_engine(address)
    try:
        migrate(engine)
    except Unavailable:
        return False
    finally:
        engine.dispose()
    return True
