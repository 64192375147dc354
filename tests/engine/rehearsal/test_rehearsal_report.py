"""What is made of a rehearsal's events."""

from coloop.explain.rehearsal import summarize

BEGUN = {"type": "phase", "phase": "rl", "learn": ["actor.rewards"], "state": "started"}
ENDED = {**BEGUN, "state": "finished"}
LEARNED = {
    "type": "metrics",
    "node": "actor",
    "metrics": {"loss": 0.1, "loss/rewards": 0.1},
    "evaluation": False,
}


def stage(name: str, rows: int, tokens: int) -> dict:
    return {
        "type": "stage.finished",
        "stage": name,
        "samples": rows,
        "tokens": tokens,
        "seconds": 0.5,
    }


def test_stages_are_summed_over_steps_in_their_order() -> None:
    result = summarize(
        [BEGUN, stage("a.load", 4, 0), stage("b.learn", 8, 64), stage("a.load", 4, 0)]
    )

    assert [(one.stage, one.runs, one.rows, one.tokens) for one in result.stages] == [
        ("a.load", 2, 8, 0),
        ("b.learn", 1, 8, 64),
    ]


def test_a_rehearsal_in_which_every_port_had_a_loss_is_well() -> None:
    result = summarize([BEGUN, LEARNED, LEARNED, ENDED])

    assert result.ok
    assert result.learned == {"actor.rewards": 2}


def test_a_port_that_never_had_a_loss_is_a_failure() -> None:
    result = summarize([BEGUN, {**LEARNED, "evaluation": True}, ENDED])

    assert result.failures == ("`actor.rewards` is live but never learned from a row",)


def test_a_phase_that_does_not_end_is_a_failure() -> None:
    assert summarize([BEGUN, LEARNED]).failures == ("phase `rl` did not end",)


def test_a_buffer_that_is_waited_for_and_not_full_is_a_failure() -> None:
    message = "pool is not full after 8 steps; the run continues"
    alert = {
        "type": "alert",
        "level": "warning",
        "code": "buffer.not_full",
        "message": message,
        "cleared": False,
    }

    assert summarize([BEGUN, LEARNED, alert, ENDED]).failures == (message,)


def test_a_failed_run_is_told_with_node_and_stage() -> None:
    error = {"message": "it broke", "node": "exact", "stage": "exact.score", "hint": "mend it"}
    result = summarize([BEGUN, {"type": "run.state", "state": "failed", "error": error}])

    assert result.failures == ("it broke (node `exact`, stage `exact.score`); mend it",)


def test_alerts_are_told_once() -> None:
    alert = {"type": "alert", "level": "warning", "code": "x", "message": "odd", "cleared": False}

    result = summarize([BEGUN, LEARNED, alert, alert, {**alert, "cleared": True}, ENDED])

    assert result.alerts == ("odd",)
