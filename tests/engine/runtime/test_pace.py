"""Rates over time, with a clock that the test moves."""

import pytest

from coloop.runtime.reporting.pace import WINDOW_EVALUATIONS, WINDOW_STEPS, Pace

EDGES = {"data.rows->actor.prompts": "actor", "held.rows->probe.rows": "probe"}
PROMPTS, HELD = EDGES


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def step(pace: Pace, clock: Clock, phase: str = "rl", seconds: float = 2.0, rows: int = 6) -> None:
    """One step with a stage that takes a quarter of it."""
    pace.step_began(phase)
    pace.stage_finished("actor.generate", seconds / 4, rows, 0)
    pace.delivered(PROMPTS, rows)
    clock.now += seconds
    pace.step_finished(seconds)


def evaluation(
    pace: Pace, clock: Clock, seconds: float = 1.0, rows: int = 10, probe: str = "probe"
) -> None:
    pace.evaluation_began()
    pace.stage_finished("actor.generate", seconds / 2, rows, 0)
    pace.delivered(HELD, rows)
    pace.delivered(PROMPTS, rows)
    clock.now += seconds
    pace.evaluation_finished(probe, f"{probe}.evaluate", seconds, rows)


def test_a_stage_is_told_while_busy_and_over_the_whole_step() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)

    step(pace, clock)
    step(pace, clock, seconds=4.0)

    gauge = pace.stages()["actor.generate"]
    assert gauge.samples_per_second == pytest.approx(12 / 1.5)
    assert gauge.wall_samples_per_second == pytest.approx(12 / 6)
    assert gauge.share == pytest.approx(0.25)
    assert pace.step_seconds == pytest.approx(3.0)


def test_evaluations_do_not_count_as_work_of_the_step() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)

    evaluation(pace, clock)
    step(pace, clock)
    evaluation(pace, clock)
    step(pace, clock)

    assert pace.edges()[PROMPTS].rows_per_second == pytest.approx(3.0)
    assert pace.edges()[PROMPTS].rows == 32
    assert pace.stages()["actor.generate"].seconds == pytest.approx(0.5)
    assert pace.bottleneck() == "actor.generate"
    held = pace.edges()[HELD]
    assert held.evaluation
    assert held.rows_per_second == pytest.approx(20 / 6)
    assert pace.evaluation_share == pytest.approx(2 / 6)
    assert pace.nodes()["probe"].busy == pytest.approx(2 / 6)


def test_a_stage_that_two_probes_ask_gives_as_many_rows_as_its_edges_bring() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)

    evaluation(pace, clock, rows=10)
    evaluation(pace, clock, rows=30, probe="exam")

    gauge = pace.stages()["actor.generate"]
    assert gauge.wall_samples_per_second == pytest.approx(10 / 2 + 30 / 2)
    assert gauge.wall_samples_per_second == pytest.approx(pace.edges()[PROMPTS].rows_per_second)
    assert gauge.share == pytest.approx(0.5)
    assert gauge.samples_per_second == pytest.approx(40.0)


def test_the_rate_of_evaluations_falls_until_the_next_one() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    evaluation(pace, clock)
    before = pace.edges()[HELD].rows_per_second

    clock.now += 9.0

    assert before == pytest.approx(10.0)
    assert pace.edges()[HELD].rows_per_second == pytest.approx(1.0)


def test_only_the_last_evaluations_and_steps_count() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    for _ in range(3):
        step(pace, clock, seconds=100.0)
        evaluation(pace, clock, rows=500)

    for _ in range(max(WINDOW_STEPS, WINDOW_EVALUATIONS)):
        step(pace, clock)
        evaluation(pace, clock)

    assert pace.step_seconds == pytest.approx(2.0)
    assert pace.edges()[PROMPTS].rows_per_second == pytest.approx(3.0)
    assert pace.edges()[HELD].rows_per_second == pytest.approx(10 / 3)


def test_a_phase_has_rates_of_its_own() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    step(pace, clock, "rl")

    pace.step_began("imitate")

    assert pace.edges()[PROMPTS].rows_per_second is None
    assert pace.step_seconds == pytest.approx(2.0)
    pace.stage_finished("other.learn", 1.0, 4, 0)
    clock.now += 1.0
    pace.step_finished(1.0)
    assert pace.edges()[PROMPTS].rows_per_second == 0.0
    assert set(pace.stages()) == {"other.learn"}
    assert set(pace.stages_of("rl")) == {"actor.generate"}
    assert set(pace.stages_of("imitate")) == {"other.learn"}
    pace.step_began("rl")
    assert pace.edges()[PROMPTS].rows_per_second == pytest.approx(3.0)


def test_a_step_that_was_taken_back_leaves_nothing() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    pace.step_began("rl")
    pace.stage_finished("actor.generate", 50.0, 999, 0)
    pace.delivered(PROMPTS, 999)

    step(pace, clock)

    assert pace.edges()[PROMPTS].rows_per_second == pytest.approx(3.0)
    assert pace.stages()["actor.generate"].seconds == pytest.approx(0.5)


def test_what_is_left_is_steps_and_evaluations_by_their_own_seconds() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    evaluation(pace, clock, seconds=6.0)
    assert pace.seconds_left(10, {"probe": 2}) is None

    step(pace, clock, seconds=2.0)
    step(pace, clock, seconds=4.0)
    evaluation(pace, clock, seconds=10.0)

    # steps of 3 s, evaluations of 8 s; the other probe was never read
    assert pace.seconds_left(10, {"probe": 2, "other": 5}) == pytest.approx(10 * 3 + 2 * 8)
    assert pace.seconds_left(0, {"probe": 1}) == pytest.approx(8.0)
    assert pace.seconds_left(-3, {}) == 0.0


def test_the_time_of_a_step_is_that_of_its_phase() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    step(pace, clock, "warm-up", seconds=2.0)

    pace.step_began("rl")
    assert pace.step_seconds == pytest.approx(2.0)  # nothing better is known yet
    step(pace, clock, "rl", seconds=6.0)

    assert pace.step_seconds == pytest.approx(6.0)


def test_what_a_stage_waited_for_is_a_share_of_the_steps_time() -> None:
    """Of a step of 10 s it worked 4, was starved for 3 and blocked for 1; its node has no more."""
    pace = Pace({})
    pace.step_began("main")
    pace.stage_finished("judge.score", 4.0, 8, 0, starved=3.0, blocked=1.0)
    pace.step_finished(10.0)

    gauge, node = pace.stages()["judge.score"], pace.nodes()["judge"]

    assert (gauge.share, gauge.starved, gauge.blocked) == pytest.approx((0.4, 0.3, 0.1))
    assert (node.busy, node.starved, node.blocked) == pytest.approx((0.4, 0.3, 0.1))


def test_waits_and_work_of_a_node_together_are_never_more_than_the_whole() -> None:
    """Two stages of one node wait at the same time."""
    pace = Pace({})
    pace.step_began("main")
    pace.stage_finished("judge.score", 4.0, 8, 0, starved=5.0)
    pace.stage_finished("judge.learn", 1.0, 8, 0, starved=6.0, blocked=9.0)
    pace.step_finished(10.0)

    node = pace.nodes()["judge"]

    assert (node.busy, node.starved, node.blocked) == pytest.approx((0.5, 0.5, 0.0))


def test_edges_say_what_waits_and_how_old_it_was_that_was_learned() -> None:
    keys = {"actor.rollouts->judge.rollouts": "judge", "judge.scores->actor.rewards": "actor"}
    pace = Pace(keys, teaching=["judge.scores->actor.rewards"])

    pace.queued({"actor.rollouts->judge.rollouts": 24})
    pace.learned("actor", 1.5)

    read, taught = pace.edges().values()
    assert (read.queue, read.staleness) == (24, None)
    assert (taught.queue, taught.staleness) == (0, 1.5)


def test_the_mean_of_a_phase_is_over_all_of_its_steps() -> None:
    """400 steps of which the last are the fastest."""
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    for _ in range(10):
        step(pace, clock, phase="warm-up", seconds=0.5)
    for number in range(400):
        step(pace, clock, seconds=0.8 if number >= 390 else 2.0)
        if number % 50 == 0:
            evaluation(pace, clock, seconds=9.0)

    rl = pace.phases["rl"]
    assert rl.steps == 400
    assert rl.step_seconds == pytest.approx((390 * 2.0 + 10 * 0.8) / 400)  # 1.97
    assert rl.bottleneck == "actor.generate"
    assert pace.phase_step_seconds == pytest.approx(1.97)
    assert pace.step_seconds == pytest.approx(0.8)
    assert pace.window_steps == WINDOW_STEPS
    assert pace.phases["warm-up"].step_seconds == pytest.approx(0.5)
    stage = pace.stages_of("rl")["actor.generate"]
    assert stage.seconds == pytest.approx((390 * 2.0 + 10 * 0.8) / 400 / 4)
    assert pace.stages_of("warm-up")["actor.generate"].seconds == pytest.approx(0.5 / 4)
    assert pace.stages_of("rl")["probe.evaluate"].seconds == pytest.approx(9.0)


def test_before_the_first_step_of_a_phase_its_mean_is_not_known() -> None:
    clock = Clock()
    pace = Pace(EDGES, clock=clock)
    step(pace, clock, phase="warm-up")
    pace.step_began("rl")

    assert pace.phase_step_seconds is None
    assert pace.step_seconds == pytest.approx(2.0)
    assert pace.window_steps == 1
