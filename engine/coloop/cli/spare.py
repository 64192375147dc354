"""`python -m coloop.cli.spare`: a driver that loads before its run is known.

    server ──stdin──> {"address": "host:port", "hosts": 2}              join that Ray
           <─stdout── {"joined": true}, or {"joined": false, "reason": ...}
           ──stdin──> {"arguments": ["run", ...], "log": "/path"}       be that command

Its server gone, or no run known after a while, it ends; once it has its command, it outlives the
server as any driver does.
"""

import argparse
import json
import os
import queue
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from coloop.workers import collecting

IDLE_SECONDS = 900.0
"""For which a spare driver waits for its run."""

Told = Mapping[str, Any]


def main() -> None:
    """Load, join, wait, run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", help="A mark by which this process is found.")
    parser.add_argument("--seconds", type=float, default=IDLE_SECONDS)
    seconds = parser.parse_args().seconds
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    told: queue.Queue[Told] = queue.Queue()
    threading.Thread(target=_listen, args=(told,), name="orders", daemon=True).start()
    _load()
    while True:
        try:
            order = told.get(timeout=seconds)
        except queue.Empty:
            os._exit(0)
        if "arguments" in order:
            os.close(answers)
            _become(order["arguments"], order["log"])
        os.write(answers, json.dumps(_join(order["address"], order["hosts"])).encode() + b"\n")


def _listen(told: "queue.Queue[Told]") -> None:
    """Orders up to the one to run. Without it nobody needs this process, whatever it does."""
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        told.put(order)
        if "arguments" in order:
            return
    os._exit(0)


def _load() -> None:
    """What `coloop run` imports as well, sooner or later."""
    with collecting.not_while_loading():
        for name in ("coloop.cli.run", "coloop.runtime.start", "coloop.workers.ray.ray_cluster"):
            import_module(name)


def _join(address: str, hosts: int) -> dict[str, Any]:
    from coloop.workers.ray.ray_joining import join
    from coloop.workers.ray.ray_spares import SPARES

    try:
        join(address)
        SPARES.load(hosts)
    except Exception as error:  # whatever keeps it from joining, its server tells
        return {"joined": False, "reason": str(error)}
    return {"joined": True}


def _become(arguments: list[str], log: str) -> None:
    from coloop.cli.app import app

    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    app(arguments, prog_name="coloop")


if __name__ == "__main__":
    main()
