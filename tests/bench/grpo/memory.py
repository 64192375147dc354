"""Memory of all processes of an arm together, read from `/proc`.

    anonymous and shared   each page by the part that a process has of it, so that what processes of
                           an arm share (after a fork, by shared memory) counts once
    files                  of each file the most that one process of the arm has resident

Summed resident memory counts a library once for each process that has it. The kernel's own share of
a page (PSS) does not, but it goes by all processes of the machine: it would depend on which arms
stand beside. No other arm has an arm's anonymous pages, so of those it is right.

One reading walks the page tables of a process: some 20 ms of the processor for 400 MiB, while the
process may wait to map memory. So an arm is watched only while nobody takes its time.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PAUSE_SECONDS, PAUSE_SHARE = 0.1, 4
"""Between two looks: so long, and so many times as long as a look takes."""
WATCHED_SECONDS = 3.0
"""Of steps that are watched at least: what comes and goes within a step is met often enough."""
OWN_KINDS = ("Pss_Anon:", "Pss_Shmem:")
SHARED_MEMORY = ("/dev/shm/", "/memfd:", "/SYSV")
"""Begin the names of files whose pages `OWN_KINDS` count."""
GONE = (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError)


@dataclass(slots=True)
class Held:
    """The most that was seen."""

    anonymous: int = 0
    files: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return self.anonymous + sum(self.files.values())

    def see(self, root: int) -> None:
        """Look at a process and all that it has started, now."""
        anonymous = 0
        for pid in _tree(root):
            with suppress(*GONE):
                anonymous += _anonymous(pid)
        self.anonymous = max(self.anonymous, anonymous)

    def see_files(self, root: int) -> None:
        """Look at the files that they have mapped."""
        for pid in _tree(root):
            with suppress(*GONE):
                for name, size in _files(pid).items():
                    self.files[name] = max(self.files.get(name, 0), size)


@contextmanager
def watched(held: Held, root: int) -> Iterator[None]:
    """Look at a process and what it starts, again and again."""
    has_ended = threading.Event()

    def look() -> None:
        while True:
            began = time.monotonic()
            held.see(root)
            took = time.monotonic() - began
            if has_ended.wait(max(PAUSE_SECONDS, PAUSE_SHARE * took)):
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()
        held.see_files(root)


def _tree(root: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [root, *(one.pid for one in psutil.Process(root).children(recursive=True))]
    return []


def _anonymous(pid: int) -> int:
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return sum(int(words[1]) for words in lines if words[0] in OWN_KINDS) * 1024


def _files(pid: int) -> dict[str, int]:
    """Bytes of each file that the process has resident and has not changed, by device and inode."""
    found: dict[str, int] = {}
    name = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):  # range, access, offset, device, inode, path
            is_file = len(words) > 5 and not words[5].startswith(SHARED_MEMORY) and words[4] != "0"
            name = f"{words[3]} {words[4]}" if is_file else ""
        elif name and words[0] == "Rss:":
            found[name] = found.get(name, 0) + int(words[1]) * 1024
        elif name and words[0] == "Anonymous:":
            found[name] -= int(words[1]) * 1024
    return found
