"""Keeps what a process holds from other processes of the same user."""

from contextlib import suppress

from coloop.sandbox.inside import kernel


def keep_private() -> None:
    """Nobody but root reads the memory, the environment or the descriptors of this process.

    For a server and a driver, which hold tokens and keys. A program that they start is readable
    again, so it must be given no secret. Where the system has no such means nothing happens.
    """
    if kernel.IS_KNOWN:
        with suppress(OSError):
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
