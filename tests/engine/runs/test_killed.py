"""What a driver leaves that is killed is all that a resume needs, whatever it had told.

A copy of the run folder at an event is what a kill at this event leaves.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engine.run_requests import request
from tests.engine.runs.conftest import Ended

from coloop.runtime.run_files.events import EditRequest, RunStateName, StopRequest

Run = Callable[..., Any]
Text = Callable[..., str]
Event = Mapping[str, Any]

RATE = "nodes.actor.training.optimizer.lr"
SILENT = {
    "nodes.exact.source": {
        "type": "python",
        "code": "def reward(prompts, completions, **columns):\n    return [None] * len(prompts)\n",
    },
    "nodes.probe.every": 100,
}


class Kill:
    """Copies the run folder at the first event that is waited for."""

    def __init__(self, is_here: Callable[[Event], bool], target: Path) -> None:
        self._is_here = is_here
        self._target = target

    def __call__(self, event: Event, folder: Path) -> None:
        if self._is_here(event) and not self._target.exists():
            shutil.copytree(folder, self._target)

    @property
    def left(self) -> Ended:
        """The run as it was when it was killed."""
        return Ended(state=RunStateName.RUNNING, folder=self._target, error=None)


def in_step(step: int, stage: str) -> Callable[[Event], bool]:
    return lambda event: (
        event["type"] == "stage.finished" and event["stage"] == stage and event["step"] == step
    )


@pytest.mark.slow
def test_an_edit_that_no_checkpoint_has_is_made_again_at_its_step(
    runner: Run, tiny: Text, equal: Callable[..., bool], tmp_path: Path
) -> None:
    """Edits in steps 4 and 5, a checkpoint of step 3, and a kill in step 6."""
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 3, "nodes.probe.every": 100})
    kill = Kill(in_step(6, "actor.generate"), tmp_path / "killed")
    rates = {4: 3.0e-3, 5: 2.0e-3}

    def edit(event: Event, folder: Path) -> None:
        kill(event, folder)
        rate = rates.get(event.get("step", 0))
        if event["type"] == "stage.started" and event["stage"] == "actor.generate" and rate:
            request(folder, EditRequest(changes={RATE: rate}))

    whole = runner(text, on_event=edit)
    resumed = runner(text, resume=kill.left)

    assert [event["step"] for event in whole.of("edit")] == [4, 5]
    assert equal(resumed.weights(), whole.weights())
    assert resumed.readings() == whole.readings()
    assert [event["step"] for event in resumed.of("edit")] == [4, 5]
    assert [event["step"] for event in resumed.of("alert", code="edit.made_again")] == [4, 5]


@pytest.mark.slow
def test_an_edit_that_a_driver_had_not_read_is_made_by_the_next(
    runner: Run, tiny: Text, tmp_path: Path
) -> None:
    """One edit is made in step 4, two are asked for when the driver is killed in step 5."""
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 1, "nodes.probe.every": 100})
    kill = Kill(in_step(5, "actor.generate"), tmp_path / "killed")

    def edit(event: Event, folder: Path) -> None:
        if event["type"] == "stage.started" and event["step"] == 4:
            request(folder, EditRequest(changes={RATE: 3.0e-3}))
        kill(event, folder)

    runner(text, on_event=edit)
    for rate in (2.0e-3, 4.0e-3):
        request(kill.left.folder, EditRequest(changes={RATE: rate}))
    request(kill.left.folder, StopRequest())
    resumed = runner(text, resume=kill.left)

    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert [event["changes"][RATE] for event in resumed.of("edit")][-2:] == [2.0e-3, 4.0e-3]
    assert resumed.metrics("actor", "lr")[-1] == 4.0e-3


@pytest.mark.slow
def test_who_goes_back_to_a_checkpoint_goes_back_before_later_edits(
    runner: Run, tiny: Text, tmp_path: Path
) -> None:
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 3, "nodes.probe.every": 100})
    kill = Kill(in_step(6, "actor.generate"), tmp_path / "killed")

    def edit(event: Event, folder: Path) -> None:
        kill(event, folder)
        if event["type"] == "stage.started" and event["step"] == 4:
            request(folder, EditRequest(changes={RATE: 3.0e-3}))

    runner(text, on_event=edit)
    again = Kill(in_step(5, "actor.generate"), tmp_path / "again")
    chosen = runner(text, resume=kill.left, checkpoint=3, on_event=again)
    later = runner(text, resume=again.left)

    for ended in (chosen, later):
        assert ended.metrics("actor", "lr")[-1] == 1.0e-3
        [left_out] = ended.of("alert", code="edit.left_out")
        assert f"the edit of step 4 ({RATE} = 0.003)" in left_out["message"]


@pytest.mark.slow
def test_the_report_of_a_run_that_was_killed_has_the_metrics_of_its_earlier_phases(
    runner: Run, tiny: Text, tmp_path: Path
) -> None:
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 1})
    kill = Kill(in_step(6, "actor.generate"), tmp_path / "killed")

    whole = runner(text, on_event=kill)
    resumed = runner(text, resume=kill.left)

    assert metrics_of(resumed).keys() == metrics_of(whole).keys()
    assert "actor.loss/demonstrations" in metrics_of(resumed)


def test_steps_in_which_nothing_is_learned_are_counted_over_a_kill(
    runner: Run, tiny: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coloop.runtime.steps.LONGEST_IDLE_STEPS", 3)
    phases = [{"name": "rl", "steps": 6, "learn": ["actor.rewards"]}]
    text = tiny("grpo-arithmetic", {**SILENT, "schedule.phases": phases, "run.checkpoint_every": 1})
    kill = Kill(in_step(3, "actor.generate"), tmp_path / "killed")

    runner(text, on_event=kill)
    resumed = runner(text, resume=kill.left)
    assert resumed.error.code == "run.nothing_learned"
    assert resumed.manifest()["timeline"]["step"] == 3
    once_more = runner(text, resume=resumed)
    assert once_more.manifest()["timeline"]["step"] == 6


def metrics_of(ended: Ended) -> dict[str, float]:
    """The last metrics, as the report has them."""
    report = json.loads((ended.folder / "report.json").read_text(encoding="utf-8"))
    return dict(report["metrics"])
