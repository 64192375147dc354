"""`python -m coloop.cli.spare`: a driver process that loads before it gets its run.

    server ──stdin──> {"address": "host:port", "hosts": 2}              join that Ray
           <─stdout── {"joined": true}, or {"joined": false, "reason": ...}
           ──stdin──> {"arguments": ["run", ...], "log": "/path"}       run that command

It exits when its server is gone or no run comes in time. Once it has its command, it outlives the
server like any driver.
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

from coloop.workers import collecting, openmp

IDLE_SECONDS = 900.0
"""How long a spare driver waits for its run."""

Order = Mapping[str, Any]


def main() -> None:
    """Load, join, wait, run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", help="A mark that identifies this process.")
    parser.add_argument("--seconds", type=float, default=IDLE_SECONDS)
    seconds = parser.parse_args().seconds
    openmp.set_default_threads(1)
    answers = os.dup(1)
    os.dup2(2, 1)  # output of libraries goes to standard error
    orders: queue.Queue[Order] = queue.Queue()
    threading.Thread(target=_listen, args=(orders,), name="orders", daemon=True).start()
    _load()
    while True:
        try:
            order = orders.get(timeout=seconds)
        except queue.Empty:
            os._exit(0)
        if "arguments" in order:
            os.close(answers)
            _become(order["arguments"], order["log"])
        os.write(answers, json.dumps(_join(order["address"], order["hosts"])).encode() + b"\n")


def _listen(orders: "queue.Queue[Order]") -> None:
    """Read orders until the one to run; exit if standard input ends before it."""
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        orders.put(order)
        if "arguments" in order:
            return
    os._exit(0)


def _load() -> None:
    with collecting.not_while_loading():
        for name in ("coloop.cli.run", "coloop.runtime.start", "coloop.workers.ray.ray_cluster"):
            import_module(name)


def _join(address: str, hosts: int) -> dict[str, Any]:
    from coloop.workers.ray.ray_joining import join
    from coloop.workers.ray.ray_spares import SPARES

    try:
        join(address)
        SPARES.load(hosts)
    except Exception as error:  # the server reports why it could not join
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
