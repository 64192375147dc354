"""Steps that overlap, as the scheduler would run them."""

import pytest

from coloop.plan.cost.timeline import pace_of
from coloop.plan.overlap import Overlap
from coloop.plan.types import Stage

STAGES = (
    Stage(name="problems.load", node="problems", verb="load", kind="dataset"),
    Stage(
        name="actor.generate", node="actor", verb="generate", kind="actor", after=("problems.load",)
    ),
    Stage(name="exact.score", node="exact", verb="score", kind="reward", after=("actor.generate",)),
    Stage(
        name="start.score", node="start", verb="score", kind="reference", after=("actor.generate",)
    ),
    Stage(
        name="actor.learn",
        node="actor",
        verb="learn",
        kind="actor",
        after=("exact.score", "start.score"),
    ),
    Stage(name="actor.sync", node="actor", verb="sync", kind="actor", after=("actor.learn",)),
)
GROUPS = {"actor": "actor", "start": "start"}
APART = {
    "actor.generate": "write",
    "start.score": "train",
    "actor.learn": "train",
    "actor.sync": "train",
}
TOGETHER = dict.fromkeys(APART, "main")


def _pace(pools, staleness=0.0, **seconds):
    taken = {stage.name: seconds.get(stage.verb, 0.0) for stage in STAGES}
    taken["exact.score"] = 0.0
    overlap = Overlap(staleness=staleness, groups=GROUPS, changing=frozenset({"actor"}))
    return pace_of(STAGES, taken, pools, overlap)


def test_stages_of_a_step_follow_each_other_without_staleness():
    pace = _pace(APART, generate=10, score=2, learn=5, sync=1)

    assert pace.seconds == 10 + 2 + 5 + 1


@pytest.mark.parametrize(
    ("generate", "learn", "seconds"),
    [(10, 5, 10), (4, 9, 2 + 9 + 1), (8, 5, 8)],
)
def test_a_step_ahead_takes_as_long_as_the_busier_pool(generate, learn, seconds):
    pace = _pace(APART, staleness=1, generate=generate, score=2, learn=learn, sync=1)

    assert pace.seconds == pytest.approx(seconds)


def test_a_share_of_a_step_ahead_hides_that_share():
    """Half of the rows are generated while the step before learns, the others when it has."""
    pace = _pace(APART, staleness=0.5, generate=10, score=2, learn=5, sync=1)

    assert pace.seconds == pytest.approx(10 / 2 + 2 + 5 + 1)


def test_one_pool_gains_nothing_from_staleness():
    together = _pace(TOGETHER, staleness=1, generate=10, score=2, learn=5, sync=1)

    assert together.seconds == pytest.approx(10 + 2 + 5 + 1)


def test_what_does_not_shrink_with_more_gpus_is_what_overlap_hides():
    """On all GPUs in turn, and on halves side by side: only the longest text takes as long on a
    half."""
    in_turn = _pace(TOGETHER, generate=60 + 10, score=2, learn=20, sync=1)
    side_by_side = _pace(APART, staleness=1, generate=60 + 20, score=4, learn=40, sync=1)

    assert in_turn.seconds == 60 + 10 + 2 + 20 + 1
    assert side_by_side.seconds == pytest.approx(80)


def test_each_stage_is_shown_once_within_a_step():
    pace = _pace(APART, staleness=2, generate=10, score=2, learn=5, sync=1)

    assert sorted(run.stage for run in pace.runs) == sorted(stage.name for stage in STAGES)
    assert all(0 <= run.start <= pace.seconds for run in pace.runs)


def test_stages_that_wait_for_each_other_still_take_time():
    circle = (
        Stage(name="a.score", node="a", verb="score", kind="reward", after=("b.score",)),
        Stage(name="b.score", node="b", verb="score", kind="reward", after=("a.score",)),
    )
    pace = pace_of(circle, {"a.score": 1.0, "b.score": 2.0}, {}, Overlap())

    assert pace.seconds == 3.0
    assert pace_of((), {}, {}, Overlap(staleness=1)).seconds == 0.0
