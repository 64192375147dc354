"""Every algorithm of a policy takes three steps in a whole run: weights move by finite numbers."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.algorithm_loops import LOOPS, PARITY, algorithm_loop


@pytest.mark.parametrize("name", [*LOOPS, *PARITY])
def test_three_steps_move_the_weights(name: str, runner: Callable[..., Any]) -> None:
    ended = runner(algorithm_loop(name))

    assert ended.error is None, ended.error
    assert ended.state == "finished"
    steps = ended.metrics("actor", "grad_norm")
    # where all texts of a step are worth the same, it teaches nothing
    assert len(steps) >= 2
    assert all(map(math.isfinite, steps))
    assert max(steps) > 0
