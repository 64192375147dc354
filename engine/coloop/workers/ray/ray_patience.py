"""A Ray that this process starts waits for its node on a busy machine."""

import os
import time
from functools import wraps
from pathlib import Path
from typing import Any

from ray._private import services

NODE_SECONDS = 150.0
"""How long a Ray waits for its own node to register. Ray itself waits 30 s, which is no setting."""
PAUSE_SECONDS = 0.1


def wait_for_slow_nodes() -> None:
    """Make a Ray that this process starts wait longer for its node, as long as that one runs."""
    ask = services.get_node
    if hasattr(ask, "__wrapped__"):  # it waits already
        return

    @wraps(ask)
    def ask_until_registered(*args: Any) -> Any:
        deadline = time.monotonic() + NODE_SECONDS
        while True:
            try:
                return ask(*args)
            except RuntimeError:  # Ray raises it for a node that has not registered
                if time.monotonic() > deadline or not _has_child("raylet"):
                    raise
            time.sleep(PAUSE_SECONDS)

    services.get_node = ask_until_registered


def _has_child(name: str) -> bool:
    """Whether this process has a child of that name; True where that cannot be told."""
    try:
        paths = Path(f"/proc/{os.getpid()}/task").glob("*/children")
        numbers = [number for path in paths for number in path.read_text().split()]
        return any(Path(f"/proc/{number}/comm").read_text().strip() == name for number in numbers)
    except OSError:
        return True
