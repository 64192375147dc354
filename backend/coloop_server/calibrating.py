"""Measures the machine once, beside the server, so that predicted times fit it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from coloop.errors import SettingInvalid
from coloop.plan.settings.corrections import processor_name
from coloop.plan.settings.measured import measured_here
from coloop.plan.settings.processor import processor_here

AFTER_SECONDS = 20.0
"""The page and its first loop come first."""
LOWEST_PRIORITY = 19


@contextmanager
def calibrated(seconds: float = AFTER_SECONDS) -> Iterator[None]:
    """While this is open, `coloop calibrate` runs once if nothing is known of this machine."""
    if not _is_unknown():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_calibrate, args=(seconds, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _is_unknown() -> bool:
    measured = measured_here()
    try:
        return measured is not None and not measured.knows(processor_name(processor_here()))
    except SettingInvalid:
        return False


def _calibrate(seconds: float, ended: threading.Event) -> None:
    if ended.wait(seconds):
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "coloop", "calibrate", "--if-missing", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST_PRIORITY)
    while process.poll() is None and not ended.wait(0.2):
        pass
    if process.poll() is None:
        process.terminate()
        process.wait()
