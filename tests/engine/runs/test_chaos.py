"""A few of the kills of `python -m tests.bench --only chaos`, and kills of a driver in places where
a loop is half way."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.bench.bench_chaos import SYSTEMS, WORKERS, differences
from tests.bench.killing import Strikes, disturbed, most_between, text_of

from coloop.spec.io import parse
from coloop.validate import validate

KILLS = 3


def begins(stage: str, step: int) -> Strikes:
    """When a stage of a step is at work."""
    return lambda event: _is_of("stage.started", event, stage, step)


def ends(stage: str, step: int) -> Strikes:
    """When a stage of a step is over."""
    return lambda event: _is_of("stage.finished", event, stage, step)


def again(stage: str, step: int) -> Strikes:
    """When a driver that has gone on does the stage of this step once more."""
    return lambda event: event["attempt"] > 1 and _is_of("stage.started", event, stage, step)


def _is_of(kind: str, event: Mapping[str, Any], stage: str, step: int) -> bool:
    return (
        event["type"] == kind
        and event["stage"] == stage
        and event["step"] == step
        and event.get("evaluation") is None
    )


PLACES: dict[str, tuple[Strikes, ...]] = {
    "ppo-four-models": (
        begins("policy.learn", 2),
        begins("rm.learn", 5),
        ends("policy.learn", 9),
        again("critic.learn", 9),
        begins("policy.generate", 14),
    ),
    "prime": (
        begins("policy.learn", 2),
        begins("prm.learn", 4),
        ends("prm.learn", 8),
        again("band.prepare", 8),
        begins("policy.learn", 12),
    ),
    "tango": (
        begins("verifier.learn", 3),
        begins("verifier.score", 8),
        again("verifier.score", 8),
        ends("generator.learn", 9),
        begins("verifier.learn", 10),
        begins("verifier.score", 14),
    ),
    "search-r1": (
        begins("policy.learn", 2),
        begins("policy.generate", 6),
        again("policy.generate", 6),
        ends("policy.learn", 8),
        begins("critic.learn", 11),
    ),
}
"""Where a driver is killed, one place after the other: in a warm-up, while texts are written that
call tools, or critiques of them, in a refill, between updates of two learners, and in the first
step of a driver that has gone on."""


@pytest.mark.parametrize("loop", SYSTEMS)
def test_what_is_killed_is_a_loop_that_runs(loop: str) -> None:
    parsed = parse(text_of(loop, 1, SYSTEMS[loop]))

    assert parsed.spec is not None, parsed.diagnostics
    assert validate(parsed.spec).ok


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", WORKERS)
@pytest.mark.parametrize("loop", SYSTEMS)
def test_whatever_is_killed_a_loop_learns_and_remembers_the_same(
    loop: str, victim: str, tmp_path: Path
) -> None:
    text, chance = text_of(loop, WORKERS[victim], SYSTEMS[loop]), random.Random(7)

    calm = disturbed(tmp_path / "calm", text, victim, 0, chance)
    most = most_between(calm, KILLS)
    wild = disturbed(tmp_path / "wild", text, victim, KILLS, chance, most=most)

    assert wild.kills == KILLS
    assert differences(calm, wild) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("loop", PLACES)
def test_a_driver_may_be_killed_half_way(loop: str, tmp_path: Path) -> None:
    text, chance, places = text_of(loop, 1, SYSTEMS[loop]), random.Random(7), PLACES[loop]

    calm = disturbed(tmp_path / "calm", text, "driver", 0, chance)
    wild = disturbed(tmp_path / "wild", text, "driver", len(places), chance, places)

    assert wild.kills == len(places)
    assert differences(calm, wild) == []
