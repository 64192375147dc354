"""What a run tells in the terminal: lines made of its events."""

import io
import json
from typing import Any

from rich.console import Console

from coloop.cli.watch import RunDisplay


def lines_of(*events: dict[str, Any]) -> list[str]:
    """What is printed of these events where there is no terminal."""
    out = io.StringIO()
    display = RunDisplay(Console(file=out, width=200, force_terminal=False))
    for event in events:
        display.take("event", json.dumps(event))
    return [line.strip() for line in out.getvalue().splitlines()]


def test_an_alert_says_the_step_and_what_to_do_next() -> None:
    alert = {
        "type": "alert",
        "level": "warning",
        "code": "learning.no_spread",
        "node": "actor",
        "step": 7,
        "message": "actor: rewards [0, 0] of every group are the same",
        "hint": "take problems that are sometimes solved",
    }

    lines = lines_of(alert)

    assert lines == [
        "learning.no_spread: step 7: actor: rewards [0, 0] of every group are the same",
        "→ take problems that are sometimes solved",
    ]


def test_a_failure_says_its_step_and_its_message_as_written() -> None:
    error = {"code": "x.y", "message": "a list[int] in [brackets]"}

    lines = lines_of({"type": "run.state", "state": "failed", "step": 3, "error": error})

    assert lines == ["failed at step 3", "a list[int] in [brackets]"]


def test_a_failure_says_what_to_do_next() -> None:
    error = {"code": "run.nothing_learned", "message": "m"}
    failed = {"type": "run.state", "state": "failed", "step": 3}

    hinted = lines_of({**failed, "error": {**error, "hint": "change the pattern"}})
    of_page = lines_of({**failed, "error": error})

    assert hinted[-1] == "→ change the pattern"
    assert of_page[-1].startswith("→ Read the message")


def test_of_an_alert_that_comes_again_and_again_three_are_shown() -> None:
    alert = {"type": "alert", "level": "warning", "code": "learn.no_rows", "message": "nothing"}
    told = [{**alert, "node": "actor", "step": step} for step in range(1, 21)]

    lines = lines_of(*told, {"type": "run.state", "state": "failed", "step": 20})

    assert [line for line in lines if line.startswith("learn.no_rows: step")] == [
        f"learn.no_rows: step {step}: nothing" for step in (1, 2, 3)
    ]
    assert lines[1].startswith("→ ")
    assert lines[-2:] == ["learn.no_rows: 17 more of actor, up to step 20", "failed at step 20"]


def test_a_run_that_ends_names_the_alerts_that_still_hold() -> None:
    alert = {"type": "alert", "level": "error", "node": "actor", "step": 7, "message": "m"}
    raised = [
        {**alert, "code": "learning.no_update", "metric": "grad_norm"},
        {**alert, "code": "learning.no_spread", "metric": "group/zero_variance"},
        {**alert, "code": "learning.no_spread", "metric": "group/zero_variance", "cleared": True},
        {**alert, "code": "checkpoint.failed"},
    ]

    lines = lines_of(*raised, {"type": "run.state", "state": "finished", "step": 9})

    assert lines[-2:] == ["1 unresolved: learning.no_update of actor", "finished at step 9"]


def test_best_checkpoints_are_told_once_at_the_end() -> None:
    best = {"type": "checkpoint", "path": "checkpoints/step-5", "best": True}
    ended = {"type": "run.state", "state": "finished", "step": 9}

    lines = lines_of(
        best,
        {**best, "best": False},
        {**ended, "message": "best probe.accuracy 0.75, at step 5"},
    )

    assert lines == [
        "checkpoint checkpoints/step-5",
        "finished at step 9; best probe.accuracy 0.75, at step 5",
    ]


def test_what_an_evaluation_reads_is_told_and_what_learners_report_is_not() -> None:
    read = {"type": "metrics", "step": 5, "metrics": {"accuracy": 0.75, "loss": None}}

    lines = lines_of(
        {**read, "node": "probe", "evaluation": True}, {**read, "node": "rm", "evaluation": False}
    )

    assert lines == ["step 5: probe accuracy 0.75"]
