"""Loops drawn from a grammar (`tests/engine/graphs.py`), run on tiny models: they end, whatever
learns has had rows or has said that it has none, and a stopped run goes on to equal bits."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.graphs import drawn

Runner = Callable[..., Any]
Equal = Callable[..., bool]

QUICK = (4, 13)
"""Straight lines of two writers a step ahead, with a fill and greedy extras; three rounds of one
writer, which another one goes on with in rounds of its own, read by a probe."""
MANY = [seed for seed in range(60) if seed not in QUICK]
SEEDS = [*QUICK, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]
NOTHING = "learn.no_rows"


def text_of(seed: int) -> str:
    return json.dumps(drawn(seed))


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_loop_runs_and_goes_on_where_it_was_stopped(
    seed: int, runner: Runner, finished: Callable[[Any], Any], equal: Equal
) -> None:
    text = text_of(seed)

    ended = finished(runner(text))

    learned = [event for event in ended.of("stage.finished") if event["stage"].endswith(".learn")]
    assert learned
    assert rounds_told(ended) == rounds_planned(ended)
    without = {(one["step"], one["node"]) for one in learned if not one["samples"]}
    assert not without or NOTHING in ended.alerts()
    stopped = runner(text, stop_at=lambda event: is_in_step_two(event, seed))
    resumed = finished(runner(text, resume=stopped))
    if json.loads(text)["schedule"].get("max_staleness"):
        assert resumed.manifest()["timeline"]["step"] == 3
        return  # which weights wrote a step is a matter of time there
    assert equal(resumed.weights(), ended.weights())
    after = stopped.manifest()["timeline"]["step"]
    assert resumed.readings(after=after) == ended.readings(after=after)


def rounds_told(ended: Any) -> dict[str, set[int | None]]:
    """By stage of the step, the rounds in which it said that it ran."""
    found: dict[str, set[int | None]] = {}
    for event in ended.of("stage.finished"):
        if "evaluation" not in event:
            found.setdefault(event["stage"], set()).add(event.get("round"))
    return found


def rounds_planned(ended: Any) -> dict[str, set[int | None]]:
    """The same as planned; where nobody goes on, rounds end early."""
    [phase] = ended.plan()["phases"]
    told = rounds_told(ended)
    most = {name: region["rounds"] for region in phase["regions"] for name in region["stages"]}
    return {
        name: set(range(1, min(most[name], len(told[name])) + 1)) if name in most else {None}
        for name in (stage["name"] for stage in phase["stages"])
    }


def is_in_step_two(event: dict[str, Any], seed: int) -> bool:
    """One of the stages of the second step, in its last round where it goes round."""
    verbs = ("generate", "score", "credit", "prepare")
    return (
        event["type"] == "stage.finished"
        and event["step"] == 2
        and event["stage"].endswith(verbs[seed % len(verbs)])
        and event.get("round") in (None, 2)
    )
