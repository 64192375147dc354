"""Which steps a run shows samples of."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.algorithm_loops import algorithm_loop

from coloop.runtime import samples


def test_a_run_shorter_than_the_time_between_samples_shows_its_first_and_its_last_step(
    runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "INTERVAL_SECONDS", 1e9)

    ended = runner(algorithm_loop("grpo", steps=3))

    shown = ended.of("sample")
    assert [event["step"] for event in shown] == [1, 3]
    assert [event["path"] for event in shown] == ["samples/step-1.jsonl", "samples/step-3.jsonl"]
    assert all((ended.folder / event["path"]).read_text("utf-8") for event in shown)
    last = ended.events[-1]
    assert (last["type"], last["state"]) == ("run.state", "finished")
