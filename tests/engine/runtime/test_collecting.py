"""Python collects garbage less often during a run, and as before after it."""

import gc
from contextlib import suppress

import pytest

from coloop.workers import collecting


@pytest.mark.parametrize("failure", [None, RuntimeError])
def test_what_was_set_comes_back(failure: type[Exception] | None) -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()

    try:
        with collecting.less_often():
            inside = gc.get_threshold(), gc.get_freeze_count()
            if failure is not None:
                raise failure
    except RuntimeError:
        pass

    assert inside[0][0] > before[0]
    assert inside[1] > frozen
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("was_on", [True, False])
def test_nothing_is_looked_for_while_modules_are_loaded(was_on: bool) -> None:
    try:
        if not was_on:
            gc.disable()
        with suppress(ImportError), collecting.not_while_loading():
            inside = gc.isenabled()
            raise ImportError
        after = gc.isenabled()
    finally:
        gc.enable()

    assert (inside, after) == (False, was_on)
