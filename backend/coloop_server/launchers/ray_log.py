"""What the log of a Ray that did not start says, in a sentence."""

import re

REASONS: tuple[tuple[str, str], ...] = (
    (r"no space left on device", "the disk is full; free space on the disk of TMPDIR"),
    (r"AF_UNIX path length", "the path of TMPDIR is too long; set RAY_TMPDIR to a short folder"),
    (
        r"cannot allocate memory|out of memory|oom.?kill|MemoryError|bad_alloc",
        "there is not enough free memory",
    ),
    (r"address already in use|errno 98", "a port that it needed is in use"),
    (r"too many open files|errno 24", "too many files are open; raise `ulimit -n`"),
    (
        r"resource temporarily unavailable|can't start new thread",
        "no more processes may be started; raise `ulimit -u`",
    ),
    (
        r"permission denied|operation not permitted",
        "it lacks permission to write its files or to open its ports",
    ),
    (r"/dev/shm", "the shared memory in /dev/shm is too small"),
    (r"timed out during startup", "its node did not register in time; the machine is too busy"),
    (
        r"gcs.{0,80}(did not start|failed|unavailable|timed out)|failed to (connect|get).{0,40}gcs",
        "its control process (GCS) ended or did not answer",
    ),
    (
        r"dashboard.{0,80}(failed|timed out|exited)",
        "its dashboard, which takes jobs, did not start",
    ),
    (r"unexpectedly exited|some ray subprocesses", "one of its processes was killed"),
)
"""Patterns in the order in which they are looked for, and what they mean."""
ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Timeout)): (.+)$")


def reason_in(text: str) -> str | None:
    """Why Ray did not start, by the end of its log; the last error that stands there where it is
    none that is known; None where nothing does."""
    for pattern, reason in REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    errors = [
        found[2].strip() for line in text.splitlines() if (found := ERROR.match(line.strip()))
    ]
    return errors[-1].rstrip(".") if errors else None
