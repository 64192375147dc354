"""How often Python looks for circles among objects while a run lasts, in the driver and in ranks,
and in the server while it serves.

Rows, tables and messages hold no circles and go when nobody holds them. But they are made by the
ten thousand, and every so many new objects Python walks through all that live, those of the
libraries included: of a step of 4,096 rows that was a third of the driver's time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN = 50_000
"""New objects after which circles are looked for; Python's own number is 700."""


@contextmanager
def seldom() -> Iterator[None]:
    """Look seldom, and not among what is there already."""
    before = gc.get_threshold()
    from_now_on()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def not_while_loading() -> Iterator[None]:
    """Look for none while modules are loaded: what they make stays, and to walk through it again
    and again is a seventh of the time that a process takes to begin."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def from_now_on() -> None:
    """The same for as long as the process lives."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN, *gc.get_threshold()[1:])
