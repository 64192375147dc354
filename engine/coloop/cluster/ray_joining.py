"""How a driver joins a Ray that runs already."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray._private.utils import read_ray_address

from coloop.errors import ClusterNotReached

REACH_SECONDS = 20.0
"""For which a Ray at an address that was named may leave a greeting without an answer."""
HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Preface and empty SETTINGS (RFC 9113, 3.4): a gRPC server answers them."""


def join(address: str) -> None:
    """Connect this process to the Ray at `host:port` or `ray://host:port`. Raises
    `ClusterNotReached` where nothing answers there."""
    reach(address)
    with kept_signals():
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.WARNING,
            configure_logging=False,
        )


def named_ray(address: str) -> str:
    """The address that `--address` means: `auto` is the Ray at RAY_ADDRESS, else the one that was
    last started on this machine. Raises `ClusterNotReached` where there is none."""
    if address != "auto":
        return address
    found: str | None = os.environ.get("RAY_ADDRESS") or read_ray_address(None)
    if not found:
        raise ClusterNotReached(
            "--address auto: no Ray runs on this machine and RAY_ADDRESS names none; start one "
            "with `ray start --head`, or leave `--address` out for a Ray of the run's own"
        )
    return found


def reach(address: str, seconds: float = REACH_SECONDS) -> None:
    """Raises `ClusterNotReached` where nothing that speaks Ray's protocol answers at `host:port` or
    `ray://host:port` in time: Ray itself waits for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds) as connection:
            connection.settimeout(seconds)
            connection.sendall(HTTP2_GREETING)
            if not connection.recv(1):
                raise OSError("the connection was closed")
    except (OSError, ValueError) as error:
        reason = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else error
        raise ClusterNotReached(
            f"no Ray answers at {address}: {reason}; look at `--address` and RAY_ADDRESS, or leave "
            "`--address` out for a Ray of the run's own"
        ) from error


@contextmanager
def kept_signals() -> Iterator[None]:
    """Who wanted SIGTERM before wants it afterwards: Ray takes it when it is connected to, and then
    it ends the process in the middle of a stage instead of asking the run to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
