"""What lies in the folder of a server's own Ray. Light: Ray's first process imports it, too.

head.json    which process it is, where it answers, where its files are
owner.json   the server that wants it; the next server writes itself here
token        what everybody who speaks to it has to know
lock         held while it is started, taken or ended, by whomever
"""

import fcntl
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coloop.workers.ray.ray_remains import end_writers
from coloop_server.private import ensure_private_folder, write_private
from coloop_server.processes import identity, is_same

TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"
PROBE_SECONDS = 5.0
REMOVE_TRIES = 10
ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
"""Ray's states of jobs that have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    pid: int
    started: str
    address: str
    """The dashboard's address, for its jobs."""
    joined_at: str
    """`host:port` for drivers."""
    temp_dir: str

    @property
    def is_running(self) -> bool:
        return is_same(self.pid, self.started)


class RayFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.note = path / "head.json"
        self.owner = path / "owner.json"
        self.token_file = path / "token"
        self.log = path / "head.log"
        self.spare_log = path / "spare.log"
        """Output of a driver before it has a run."""

    def noted(self) -> Head | None:
        """The Ray that was started last, running or not."""
        try:
            return Head(**json.loads(self.note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def known(self) -> Head | None:
        head = self.noted()
        return head if head is not None and head.is_running else None

    def claim(self) -> None:
        """Make this process the owner of the Ray."""
        owner = {"pid": os.getpid(), "started": identity(os.getpid())}
        write_private(self.owner, json.dumps(owner))

    def has_owner(self) -> bool:
        """Whether the owning process still runs."""
        try:
            owner = json.loads(self.owner.read_text(encoding="utf-8"))
            return is_same(int(owner["pid"]), str(owner["started"]))
        except (OSError, ValueError, TypeError, KeyError):
            return False

    def headers(self) -> dict[str, str]:
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
        except OSError:
            return {}
        return {"Authorization": f"Bearer {token}"}

    def end_rest(self, head: Head) -> None:
        """End the remaining processes of a killed Ray, including drivers with their own sessions,
        since its agents do not notice."""
        end_writers(lambda path: path.startswith(f"{head.temp_dir}/"))
        remove_folder(Path(head.temp_dir))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Prevents other processes from starting, taking or ending this Ray meanwhile."""
        ensure_private_folder(self.path)
        descriptor = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def list_jobs(address: str, headers: dict[str, str]) -> list[dict[str, Any]] | None:
    """All jobs of a Ray; None if it does not answer."""
    request = urllib.request.Request(f"{address}/api/jobs/", headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PROBE_SECONDS) as answer:
            jobs = json.loads(answer.read())
    except (OSError, ValueError, urllib.error.URLError):
        return None
    return jobs if isinstance(jobs, list) else None


def remove_folder(folder: Path) -> None:
    """Retries, as Ray's last processes may still write logs."""
    for _ in range(REMOVE_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.2)
