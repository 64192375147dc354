"""A server for benches: on a free port, with folders and a token of its own."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.machine import ROOT

TOKEN = "token-of-the-bench"
NOT_TAKEN = ("COLOOP_", "PYTHONDONTWRITEBYTECODE")
BEARER = {"Authorization": f"Bearer {TOKEN}"}
"""What a program sends; a browser opens `/?token=` once."""


@contextmanager
def serve(**told: str) -> Iterator[str]:
    """The address of a server that ends with the block; `told` is its environment besides."""
    with tempfile.TemporaryDirectory(prefix="coloop-bench-server-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "coloop_server", "--no-browser", "--port", "0"],
            env=environment_in(folder) | told,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield await_address(process)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def environment_in(folder: str) -> dict[str, str]:
    """Of a server whose files all lie in one folder, and whose modules are compiled once, as they
    are for a user."""
    paths = [str(ROOT / "engine"), str(ROOT / "backend"), os.environ.get("PYTHONPATH", "")]
    return {
        **{name: v for name, v in os.environ.items() if not name.startswith(NOT_TAKEN)},
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "COLOOP_DATA_DIR": f"{folder}/data",
        "COLOOP_RUNS_DIR": f"{folder}/runs",
        "COLOOP_LAUNCHER": "process",
        "COLOOP_TOKEN": TOKEN,
    }


def await_address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if found := re.search(r"coloop is at (http://\S+)", line):
            return found[1]
    raise RuntimeError(f"the server did not start:\n{seen}")
