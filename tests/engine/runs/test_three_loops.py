"""The three loops of quite different shape run to their end on the same code."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["grpo-arithmetic", "spin", "two-halves", "ppo-four-models"])
def test_a_loop_runs_to_its_end(
    name: str, runner: Callable[..., Any], tiny: Callable[..., str], finished: Callable[..., Any]
) -> None:
    ended = finished(runner(tiny(name)))

    assert [event["seq"] for event in ended.events] == list(range(1, len(ended.events) + 1))
    assert ended.of("checkpoint")
    learner = {"grpo-arithmetic": "actor", "two-halves": "tens"}.get(name, "policy")
    norms = ended.metrics(learner, "grad_norm")
    assert sum(norm > 0 for norm in norms) > len(norms) / 2
