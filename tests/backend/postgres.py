"""PostgreSQL without docker: the machine's own programs, as a user that may run them."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from coloop_server.database.connect import migrate, open_engine
from coloop_server.errors import Unavailable


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


@contextmanager
def running() -> Iterator[str]:
    """A PostgreSQL server of the test's own, as an address; skips where there is none."""
    programs, user = postgres_programs(), postgres_user()
    if programs is None or user is None or find_spec("psycopg") is None:
        pytest.skip("PostgreSQL or psycopg is not installed")
    folder = Path(os.path.realpath("/tmp")) / f"coloop-postgres-{os.getpid()}"
    folder.mkdir(mode=0o700)
    identity = pwd.getpwnam(user)
    os.chown(folder, identity.pw_uid, identity.pw_gid)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = {"user": identity.pw_uid} if os.geteuid() == 0 else {}
    data = folder / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "coloop", "--auth=trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
        **options,
    )
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        **options,
    )
    try:
        yield f"postgresql://coloop@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # does not wait for connections that a test left open
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def is_up(address: str) -> bool:
    engine = open_engine(address)
    try:
        migrate(engine)
    except Unavailable:
        return False
    finally:
        engine.dispose()
    return True
