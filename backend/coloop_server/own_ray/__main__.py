"""The first process of a server's own Ray: `python -m coloop_server.own_ray FOLDER start --head`.

    server --Popen--> this process: ray start --head --block
      '--owner.json--> thread: has it an owner? does a job go on?

Runs outlive the server, and their Ray with them. With neither an owner nor a job it ends itself,
so nothing stays behind when the last run is over and no server came back.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from coloop_server.own_ray.folder import ENDED, Head, RayFolder, list_jobs, remove_folder

LOOK_SECONDS = 2.0


def main() -> None:
    folder = RayFolder(Path(sys.argv.pop(1)))
    idle_shutdown = IdleShutdown(folder, os.getpid())
    threading.Thread(target=idle_shutdown.run, name="idle-shutdown", daemon=True).start()
    from ray.scripts.scripts import main as ray

    from coloop.workers.ray.ray_patience import wait_for_slow_nodes

    wait_for_slow_nodes()
    try:
        ray()
    finally:
        if idle_shutdown.head is not None:
            remove_folder(Path(idle_shutdown.head.temp_dir))


class IdleShutdown:
    """Ends this process's Ray when nothing uses it any more."""

    def __init__(self, folder: RayFolder, pid: int) -> None:
        self.folder = folder
        self.pid = pid
        self.head: Head | None = None
        """As its server wrote it; kept, because the folder may be removed."""
        self.headers: dict[str, str] = {}

    def run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            if self.look():
                os.kill(self.pid, signal.SIGTERM)
                return

    def look(self) -> bool:
        """Whether to end now; from then on no server takes it."""
        self.read_note()
        if self.head is None or self.is_needed(self.head):
            return False
        if not self.folder.path.is_dir():
            return True
        with self.folder.alone():
            if self.is_needed(self.head):
                return False
            if self.folder.noted() == self.head:
                self.folder.note.unlink(missing_ok=True)
            return True

    def read_note(self) -> None:
        head = self.folder.noted()
        if head is not None and head.pid == self.pid:
            self.head = head
        self.headers = self.folder.headers() or self.headers

    def is_needed(self, head: Head) -> bool:
        """Whether it has a server or a job; a dashboard that does not answer may have jobs."""
        if self.folder.has_owner():
            return True
        jobs = list_jobs(head.address, self.headers)
        return jobs is None or any(job.get("status") not in ENDED for job in jobs)


if __name__ == "__main__":
    main()
