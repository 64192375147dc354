"""What a quiet run says before its first step."""

import json
import sys
import threading
from types import SimpleNamespace

import pytest

from coloop.cli.run import LOADING, Waiting, report_wait, wait_reason
from coloop.workers.ray import ray_settings


def lines_until(most: int) -> tuple[list[str], list[float]]:
    """What is said while there is something to wait for this often, and for how long each time."""
    said: list[str] = []
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) > most

    report_wait(said.append, lambda: "Ray starts", wait)
    return said, pauses


def test_a_run_that_begins_within_ten_seconds_says_nothing() -> None:
    assert lines_until(0) == ([], [10.0])


def test_one_that_waits_says_for_what_and_how_long_ever_later() -> None:
    said, pauses = lines_until(3)

    assert said == [
        "Ray starts; 10 s so far",
        "Ray starts; 20 s so far",
        "Ray starts; 40 s so far",
    ]
    assert pauses == [10.0, 10.0, 20.0, 40.0]


@pytest.mark.parametrize(
    ("cluster", "address", "has_ray", "words"),
    [
        ("ray", None, False, "Ray starts on this machine (load 9 on 2 cores: this takes longer)"),
        ("ray", "10.0.0.1:6379", False, "waiting for Ray at 10.0.0.1:6379 to answer"),
        ("ray", None, True, LOADING),
        ("local", None, False, LOADING),
    ],
)
def test_it_is_said_what_is_waited_for_now(
    cluster: str,
    address: str | None,
    has_ray: bool,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_settings, "busy_words", lambda: "load 9 on 2 cores")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: has_ray))

    assert wait_reason(cluster, address) == words


@pytest.mark.parametrize("state", ["running", "failed"])
def test_a_run_that_has_begun_or_ended_waits_for_nothing(state: str) -> None:
    with Waiting(pytest.fail, lambda: "") as waiting:
        waiting.take("event", json.dumps({"type": "run.state", "state": "starting"}))
        assert _is_telling()
        waiting.take("event", json.dumps({"type": "run.state", "state": state}))
        waiting._thread.join(60)
        assert not _is_telling()


def _is_telling() -> bool:
    return any(one.name == "waiting" for one in threading.enumerate())
