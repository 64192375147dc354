"""What a run tells in the terminal: lines made of its events."""

import io
import json
from typing import Any

from rich.console import Console

from coloop.cli.display import RunDisplay


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
