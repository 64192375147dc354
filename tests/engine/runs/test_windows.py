"""Steps that overlap: the next texts are written while the last ones are learned, no text is older
than it may be, and nothing is lost, learned twice or done in another order."""

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.engine.smallest import AHEAD

from coloop.runtime.run_files.events import RunStateName
from coloop.workers.worker import Worker

Run = Callable[..., Any]

PATIENCE = 120.0

PROBED = AHEAD.replace(
    "edges:",
    "  probe: {kind: evaluate, instead_of: problems, every: 4, metrics: [score]}\n"
    "  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, "
    "rows_per_step: 2}\n"
    "edges:\n  - held_out.rows -> probe.rows\n  - brief.scores -> probe.scores",
).replace("keep: 2", "checkpoint_every: 5")
"""Readings and checkpoints lie between its steps."""


def span(ended: Any, stage: str) -> dict[int, tuple[int, int]]:
    """By step, the places in the events at which a stage began and ended; probes left out."""
    found: dict[int, list[int]] = {}
    for event in ended.events:
        if event.get("stage") == stage and "evaluation" not in event:
            found.setdefault(event["step"], []).append(event["seq"])
    return {step: (places[0], places[-1]) for step, places in found.items()}


def test_the_next_texts_are_written_while_the_last_are_learned(
    runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each update waits until the next texts are begun: without overlap the run would never end."""
    begun, changed = [0], threading.Condition()
    learn, generate = Worker.learn, Worker.generate

    def generating(host: Worker, *arguments: Any) -> Any:
        with changed:
            begun[0] += 1
            changed.notify_all()
        return generate(host, *arguments)

    def learning(host: Worker, order: Any) -> Any:
        number = host._homes["actor"].weights.version + 1
        with changed:
            assert changed.wait_for(lambda: begun[0] > number or number == 10, PATIENCE)
        return learn(host, order)

    monkeypatch.setattr(Worker, "generate", generating)
    monkeypatch.setattr(Worker, "learn", learning)
    ended = runner(AHEAD)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("actor", "staleness/max") == [0.0] + [1.0] * 9
    learned = span(ended, "actor.learn")
    for first, second in pairwise(learned[step] for step in range(1, 11)):
        assert first[1] < second[0]


@pytest.mark.slow
def test_readings_and_checkpoints_wait_for_every_step_before_them(runner: Run) -> None:
    ended = runner(PROBED)

    assert ended.state is RunStateName.FINISHED, ended.error
    written, learned = span(ended, "actor.generate"), span(ended, "actor.learn")
    assert sorted(written) == sorted(learned) == list(range(1, 11))
    for step in (4, 5, 8):
        assert learned[step][1] < written[step + 1][0]
    assert max(ended.metrics("actor", "staleness/max")) <= 1


def test_nobody_runs_ahead_where_nothing_may_be_late(runner: Run) -> None:
    """The control: without staleness the same loop takes its steps one after another."""
    ended = runner(AHEAD.replace("max_staleness: 1", "max_staleness: 0"))

    written, learned = span(ended, "actor.generate"), span(ended, "actor.learn")
    assert all(learned[step][1] < written[step + 1][0] for step in range(1, 10))
    assert ended.metrics("actor", "staleness/max") == [0.0] * 10


@pytest.mark.sample(1)
@pytest.mark.parametrize("most", [2, 3])
def test_texts_are_never_older_than_they_may_be(most: int, runner: Run) -> None:
    ended = runner(AHEAD.replace("max_staleness: 1", f"max_staleness: {most}"))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("actor", "staleness/max")) <= most
    rows = [event["samples"] for event in ended.of("stage.finished", stage="actor.learn")]
    assert rows == [4] * 10


def learning_at(step: int) -> Callable[[dict[str, Any]], bool]:
    """Whether an event says that the actor begins to learn from a step."""

    def is_here(event: dict[str, Any]) -> bool:
        is_learn = event.get("stage") == "actor.learn" and event["type"] == "stage.started"
        return is_learn and event["step"] == step

    return is_here


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", [3, 5, 7])
def test_a_stop_leaves_no_half_step_and_a_resume_learns_every_row_once(
    step: int, runner: Run
) -> None:
    ended = runner(AHEAD, stop_at=learning_at(step))

    assert ended.state is RunStateName.STOPPED, ended.error
    done = ended.manifest()["timeline"]["step"]
    # what was loaded for steps that were taken back comes again
    assert ended.manifest()["roles"]["problems"]["drawn"] == 2 * done

    went_on = runner(AHEAD, resume=ended)

    assert went_on.state is RunStateName.FINISHED, went_on.error
    assert went_on.manifest()["timeline"]["step"] == 10
    assert went_on.manifest()["roles"]["problems"]["drawn"] == 20


@pytest.mark.sample(1)
@pytest.mark.parametrize(("most", "ahead"), [(0.5, 2), (0.8, 3), (1.5, 2)])
def test_of_a_fraction_only_that_share_is_written_ahead(
    most: float, ahead: int, runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each update but the last waits until the first prompts of the next step are begun."""
    begun, changed = [0], threading.Condition()
    generate, learn = Worker.generate, Worker.learn
    written: list[int] = []

    def generating(host: Worker, group: str, node: str, asked: Any, sampling: Any) -> Any:
        with changed:
            written.append(len(asked))
            begun[0] += 1
            changed.notify_all()
        return generate(host, group, node, asked, sampling)

    def learning(host: Worker, order: Any) -> Any:
        number = host._homes["actor"].weights.version + 1
        calls = 2 * number if most < 1 else number + 1
        with changed:
            assert changed.wait_for(lambda: begun[0] >= calls or number == 10, PATIENCE)
        return learn(host, order)

    monkeypatch.setattr(Worker, "generate", generating)
    monkeypatch.setattr(Worker, "learn", learning)
    four = AHEAD.replace("rows_per_step: 2", "rows_per_step: 4")

    ended = runner(four.replace("max_staleness: 1", f"max_staleness: {most}"))

    assert ended.state is RunStateName.FINISHED, ended.error
    late = ended.metrics("actor", "staleness")
    assert sum(written) == 40
    assert max(ended.metrics("actor", "staleness/max")) <= -(-most // 1)
    if most < 1:
        assert written == [4] + [ahead, 4 - ahead] * 9
        assert late == [0.0] + [ahead / 4] * 9
    assert max(late) <= most


@pytest.mark.slow
def test_a_fraction_with_stream_and_a_stop_learns_every_row_once(runner: Run) -> None:
    """As `language/examples/fully-async.yaml` has it, with rewards that score as texts come."""
    text = AHEAD.replace("max_staleness: 1", "max_staleness: 0.5, stream: true").replace(
        "max_new_tokens: 3}", "max_new_tokens: 3, on_sync: resume}"
    )

    ended = runner(text, stop_at=learning_at(4))
    assert ended.state is RunStateName.STOPPED, ended.error
    done = ended.manifest()["timeline"]["step"]
    assert ended.manifest()["roles"]["problems"]["drawn"] == 2 * done

    went_on = runner(text, resume=ended)

    assert went_on.state is RunStateName.FINISHED, went_on.error
    assert went_on.manifest()["roles"]["problems"]["drawn"] == 20
    rows = [event["samples"] for event in went_on.of("stage.finished", stage="actor.learn")]
    assert rows == [4] * 10
    assert max(went_on.metrics("actor", "staleness/max")) <= 1
