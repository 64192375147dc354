"""Loops drawn from a grammar (`tests/engine/graphs.py`), over writers of a script: what they
bring is what their plan counts, and the order in which stages end changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.graphs import drawn
from tests.engine.roles.test_order import ShuffledLanes, played
from tests.engine.roles.test_row_counts import check

from coloop.plan.run_check import check_runs
from coloop.validate import validate

pytestmark = pytest.mark.slow

Bench = Callable[..., Any]

QUICK = range(6)
MANY = range(6, 160)
SEEDS = [*QUICK, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_loop_brings_what_is_planned_whatever_ends_first(seed: int, bench: Bench) -> None:
    value = drawn(seed, may_be_ahead=False)
    parts = (value["nodes"], value["edges"], value["schedule"])
    spec = bench(*parts).spec
    assert [one.describe() for one in validate(spec).diagnostics if one.is_error] == []
    assert check_runs(spec) == []

    check(bench(*parts))

    expected = played(bench(*parts))
    assert played(bench(*parts, lanes=ShuffledLanes(seed))) == expected
