"""How Ray is set where coloop starts one of its own."""

import os
import sys
from pathlib import Path

from coloop.errors import RayNotStarted

AT_EVEN_PRIORITY = {"RAY_worker_niceness": "0"}
"""Ray gives its workers nice 15, which starves a run beside anything else on the machine."""

PATIENCE = {
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "120",
    "RAY_worker_register_timeout_seconds": "180",
    "RAY_agent_register_timeout_ms": "180000",
}
"""Ray's own limits for its processes to start (30 to 60 s) are too short for a busy machine."""

AUTHENTICATION = "RAY_AUTH_MODE"
"""How a Ray asks who comes; unset, one that starts asks for a token."""

SOCKET_BYTES = 103 if sys.platform == "darwin" else 107  # longest path of a Unix socket
SOCKET = "/session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store.0"
"""What Ray adds to its folder for the longest of its sockets."""
SHORT = Path("/tmp")


def default_ray_folder() -> Path:
    """Where Ray makes its sessions when it is not told: `ray` in RAY_TMPDIR, TMPDIR or /tmp."""
    named = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or str(SHORT)
    return Path(named).absolute() / "ray"


def ray_folder() -> Path:
    """Where a Ray of one's own makes its sessions: its default, or a folder in /tmp where that path
    is too long for Unix sockets. Raises `RayNotStarted` where neither can be used."""
    default = default_ray_folder()
    return default if fits_sockets(default) else short_folder() / "ray"


def short_folder() -> Path:
    """A folder of this user with a short path, made where it is missing. Raises `RayNotStarted`."""
    folder = SHORT / f"coloop-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        is_own = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
        reason = "it belongs to another user"
    except OSError as error:
        is_own, reason = False, str(error)
    if not is_own:
        longest = SOCKET_BYTES - len(SOCKET) - len("/ray")
        raise RayNotStarted(
            f"TMPDIR is too long for Ray's sockets ({default_ray_folder().parent}), and {folder} "
            f"cannot be used: {reason}; set RAY_TMPDIR to a folder with a path of at most "
            f"{longest} bytes"
        )
    return folder


def fits_sockets(folder: Path) -> bool:
    """Whether the paths of Ray's sockets are short enough below its folder."""
    return len(os.fsencode(f"{folder}{SOCKET}")) <= SOCKET_BYTES


RAY_STARTS = "Ray starts on this machine"  # what somebody waits for who reads this


def starting_words(more: str = "") -> str:
    """What people are told while Ray starts; `more`: of this Ray."""
    load = f" ({words}: this takes longer)" if (words := busy_words()) else ""
    return f"{RAY_STARTS}{more}{load}"


def busy_words() -> str:
    """How busy this machine is, for a message about something slow; empty where it is not."""
    cores = os.cpu_count() or 1
    try:
        load = os.getloadavg()[0]
    except OSError:
        return ""
    return f"load {load:.0f} on {cores} cores" if load > 2 * cores else ""
