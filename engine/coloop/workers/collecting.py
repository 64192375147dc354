"""How often Python's garbage collector runs in the driver, in ranks and in a serving server.

Rows, tables and messages have no cycles but are made by the ten thousand: with Python's defaults
collections took a third of the driver's time in a step of 4,096 rows.
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
    """No garbage collection during imports, where it takes a seventh of the time."""
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
