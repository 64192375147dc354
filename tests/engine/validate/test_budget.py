"""Steps that are larger than anybody means."""

import pytest
from tests.engine.estimate.conftest import build

from coloop.validate import validate


def _codes(spec):
    return [one.code for one in validate(spec).diagnostics]


def test_a_step_of_millions_of_rows_is_warned_of():
    huge = build(nodes={"problems": {"rows_per_step": 100_000_000}})

    found = next(one for one in validate(huge).diagnostics if one.code == "numbers.large_step")

    assert not found.is_error
    assert "hours" in found.message
    assert "numbers.large_step" not in _codes(build())


@pytest.mark.parametrize(("size", "warned"), [(64, True), (128, False)])
def test_a_step_takes_no_more_rows_than_there_are(size, warned):
    source = {"type": "task", "task": "arithmetic", "size": size}
    spec = build(nodes={"problems": {"rows_per_step": 128, "source": source}})

    found = [one for one in validate(spec).diagnostics if one.code == "numbers.large_step"]

    assert bool(found) is warned
    if warned:
        assert found[0].field == "rows_per_step"
        assert found[0].fixes[0].changes[0].value == size
