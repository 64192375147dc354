"""Python looks for circles seldom while a run lasts, and as before after it."""

import gc

import pytest

from coloop import collecting


@pytest.mark.parametrize("failure", [None, RuntimeError])
def test_what_was_set_comes_back(failure: type[Exception] | None) -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()

    try:
        with collecting.seldom():
            inside = gc.get_threshold(), gc.get_freeze_count()
            if failure is not None:
                raise failure
    except RuntimeError:
        pass

    assert inside[0][0] > before[0]
    assert inside[1] > frozen
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
