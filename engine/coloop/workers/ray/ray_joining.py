"""How a driver joins a Ray that runs already."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray
from ray._private import utils
from ray._private.utils import read_ray_address

from coloop.errors import ClusterNotReached

REACH_SECONDS = 20.0
"""For which a Ray at an address that was named may leave the question for its health unanswered."""
PROBE = Path(__file__).with_name("ray_probe.py")
"""Run as a file: what its package loads takes longer than an answer."""


NODE_SECONDS = 2.0
"""Between two looks at how many nodes have come."""


def join(address: str, nodes: int = 1, seconds: float = 0.0) -> None:
    """Connect to the Ray at `host:port` or `ray://host:port`; raises `ClusterNotReached`.

    Args:
        nodes: that it must have; with more than one it is starting, and may not answer yet.
        seconds: longest wait for them.
    """
    ends = time.monotonic() + seconds
    while True:
        try:
            reach(address)
            break
        except ClusterNotReached:
            if nodes == 1 or time.monotonic() > ends:
                raise
            time.sleep(NODE_SECONDS)
    with kept_signals():
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.WARNING,
            configure_logging=False,
        )
    while nodes > 1 and (there := sum(node["Alive"] for node in ray.nodes())) < nodes:
        if time.monotonic() > ends:
            raise ClusterNotReached(
                f"the Ray at {address} has {there} of {nodes} nodes after {seconds:.0f} s; see the "
                "logs of `ray start` on the others, or lower --wait-nodes"
            )
        time.sleep(NODE_SECONDS)


def named_ray(address: str) -> str:
    """The address that `--address` means; `auto`: RAY_ADDRESS, else the last Ray of this machine.
    Raises `ClusterNotReached` where there is none."""
    if address != "auto":
        return address
    named: str | None = os.environ.get("RAY_ADDRESS") or read_ray_address(None)
    if not named:
        raise ClusterNotReached(
            "--address auto: no Ray runs on this machine and RAY_ADDRESS names none; start one "
            "with `ray start --head`, or omit `--address` to start a separate Ray"
        )
    return named


def reach(address: str, seconds: float = REACH_SECONDS) -> None:
    """Raises `ClusterNotReached` where no Ray answers in time. A process of its own asks, because
    nothing else ends Ray's waiting."""
    reason = _why_not(address, seconds)
    if reason is not None:
        raise ClusterNotReached(
            f"no Ray answers at {address}: {reason}; check `--address` and RAY_ADDRESS, or omit "
            "`--address` to start a separate Ray"
        )


def _why_not(address: str, seconds: float) -> str | None:
    try:
        asked = subprocess.run(
            [sys.executable, "-P", str(PROBE), address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=seconds,
            check=False,
            start_new_session=True,  # Ctrl-C is for the run, which asks this process to end
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"
    if asked.returncode == 0:
        return None
    told = asked.stdout.strip().splitlines()
    return told[-1] if told else f"the process that queries it exited with code {asked.returncode}"


@contextmanager
def kept_signals() -> Iterator[None]:
    """Keep the handlers of SIGTERM: Ray's own would end the process in the middle of a stage."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, takes = signal.getsignal(signal.SIGTERM), utils.set_sigterm_handler
    utils.set_sigterm_handler = lambda _: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = takes
        signal.signal(signal.SIGTERM, before)
