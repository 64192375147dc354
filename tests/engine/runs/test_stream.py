"""`stream`: complete groups are scored while others are still written, and everything comes out as
it does without."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from coloop.errors import StopRequested
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.reward import RewardRole
from coloop.runtime.run_files.events import RunStateName
from coloop.workers import writing
from coloop.workers.worker import Worker

Run = Callable[..., Any]

PATIENCE = 120.0

DIGITS = """
    source:
      type: python
      code: |
        def reward(prompts, completions, **columns):
            return [sum(sign.isdigit() for sign in text) / 12 for text in completions]
"""
REWARDS = "".join(f"  mark{n}:\n    kind: reward{DIGITS}" for n in range(4))
FOUR = f"""
coloop: 1
name: streamed
nodes:
  problems: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 4}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: 2, max_new_tokens: 12, max_num_seqs: 2}}
    algorithm: {{name: grpo}}
{REWARDS}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> mark0.rollouts
  - actor.rollouts -> mark1.rollouts
  - actor.rollouts -> mark2.rollouts
  - actor.rollouts -> mark3.rollouts
  - mark0.scores -> actor.rewards
  - mark1.scores -> actor.rewards
  - mark2.scores -> actor.rewards
  - mark3.scores -> actor.rewards
schedule: {{steps: 2, stream: true}}
hardware: {{preset: cpu}}
run: {{seed: 3}}
"""
"""Its engine writes one group at a time."""

MUCH = f"""
coloop: 1
name: much
nodes:
  problems: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 4}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: 2, max_new_tokens: 12, max_num_seqs: 2, greedy_extra: true}}
    algorithm: {{name: grpo, kl: {{coefficient: 0.01, estimator: k3}}}}
    training: {{optimizer: {{name: adamw, lr: 1.0e-3}}, mini_batch: 4}}
    credit: {{missing: skip_row}}
  start: {{kind: reference, model: {{type: snapshot, of: actor, refresh: never}}}}
  digits:
    kind: reward{DIGITS}
  picky:
    kind: reward
    on_error: skip_row
    source:
      type: python
      code: |
        def reward(prompts, completions, **columns):
            return [len(text) / (0 if "7" in text else 12) for text in completions]
  varied:
    kind: filter
    keep: [{{rule: nonzero_variance}}]
    fill: {{groups: 3, max_rounds: 3, surplus: drop}}
  probe: {{kind: evaluate, instead_of: problems, every: 1, metrics: [score]}}
  held_out: {{kind: dataset, source: {{type: task, task: arithmetic, size: 4}}, rows_per_step: 2}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> digits.rollouts
  - actor.rollouts -> picky.rollouts
  - actor.rollouts -> start.rollouts
  - digits.scores -> varied.scores
  - varied.scores -> actor.rewards
  - {{from: picky.scores, to: actor.rewards, weight: 0.5}}
  - start.log_probs -> actor.reference
  - held_out.rows -> probe.rows
  - digits.scores -> probe.scores
schedule: {{steps: 3, stream: true}}
hardware: {{preset: cpu}}
run: {{seed: 3}}
"""
"""Refills, probes, two rewards of which one fails on some rows, a greedy extra, a KL reference."""


def without_stream(text: str) -> str:
    return text.replace(", stream: true", "")


@pytest.fixture(autouse=True)
def short_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is finished comes as soon as it can."""
    monkeypatch.setattr(writing, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(writing, "SOON_SECONDS", 0.0)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages that worked on rows before the others were there; the writer waits for the first
    of them."""
    found: list[str] = []
    first = threading.Event()
    begin, write = RewardRole.begin, Worker.write
    has_given = [False]

    def noted(role: RewardRole, call: Call) -> Any:
        found.append(call.stage)
        first.set()
        return begin(role, call)

    def writes(host: Worker, *arguments: Any) -> Any:
        if has_given[0]:
            assert first.wait(PATIENCE)
        told = write(host, *arguments)
        has_given[0] |= bool(told.replies and told.unfinished)
        return told

    monkeypatch.setattr(RewardRole, "begin", noted)
    monkeypatch.setattr(Worker, "write", writes)
    return found


def test_four_rewards_score_at_once_while_others_are_written(
    runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each first part waits until four rewards have one, and the writer waits for all of them: were
    one of the rewards alone, or not before the last text, the run would never end."""
    together = threading.Barrier(4)
    scored = threading.Event()
    begin, write = RewardRole.begin, Worker.write
    waited: set[str] = set()

    def scoring(role: RewardRole, call: Call) -> Any:
        if call.step == 1 and call.stage not in waited:
            waited.add(call.stage)
            together.wait(PATIENCE)
            scored.set()
        return begin(role, call)

    def writes(host: Worker, *arguments: Any) -> Any:
        told = write(host, *arguments)
        if told.replies and told.unfinished and not scored.is_set():
            writer_went_on.append(told.unfinished)
        elif not told.unfinished:
            assert scored.wait(PATIENCE)
        return told

    writer_went_on: list[int] = []
    monkeypatch.setattr(RewardRole, "begin", scoring)
    monkeypatch.setattr(Worker, "write", writes)
    ended = runner(FOUR)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert writer_went_on
    told = [(e["type"], e["stage"]) for e in ended.events if e.get("step") == 1 and "stage" in e]
    written = told.index(("stage.finished", "actor.generate"))
    for n in range(4):
        assert told.index(("stage.started", f"mark{n}.score")) < written
        assert told.index(("stage.finished", f"mark{n}.score")) > written
        assert told.count(("stage.started", f"mark{n}.score")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", [FOUR, MUCH], ids=["four-rewards", "much"])
def test_everything_comes_out_as_it_does_without(text: str, runner: Run, begun: list[str]) -> None:
    plain = runner(without_stream(text))
    assert not begun
    streamed = runner(text)

    assert begun
    assert streamed.state is plain.state is RunStateName.FINISHED, streamed.error
    assert streamed.readings() == plain.readings()
    left, right = plain.weights(), streamed.weights()
    assert all(left[name].equal(right[name]) for name in left)
    assert streamed.alerts() == plain.alerts()


def test_code_that_fails_early_ends_the_run_with_its_row(runner: Run, begun: list[str]) -> None:
    failing = MUCH.replace("    on_error: skip_row\n", "")

    ended = runner(failing)

    assert begun
    assert ended.state is RunStateName.FAILED
    assert (ended.error.code, ended.error.node) == ("user_code.failed", "picky")
    assert "division by zero" in ended.error.message
    assert "it is actor:problems" in ended.error.message


@pytest.mark.slow
def test_a_stop_between_two_groups_leaves_no_half_step(
    runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewards have begun, and the rest of the texts never comes; a resume does it all again."""
    whole = runner(FOUR)
    write = Worker.write
    is_asked = threading.Event()
    steps, has_given = [1], [False]

    def writes(host: Worker, *arguments: Any) -> Any:
        if steps[0] == 2 and has_given[0]:
            assert is_asked.wait(PATIENCE)
            assert host._progress.interrupted.wait(PATIENCE)
            raise StopRequested("in the middle")
        told = write(host, *arguments)
        has_given[0] = bool(told.replies and told.unfinished)
        steps[0] += not told.unfinished
        return told

    def is_here(event: dict[str, Any]) -> bool:
        found = event["type"] == "stage.started" and event.get("stage") == "mark2.score"
        if found and event["step"] == 2:
            is_asked.set()
        return bool(found and event["step"] == 2)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "write", writes)
        ended = runner(FOUR, stop_at=is_here)

    assert ended.state is RunStateName.STOPPED, ended.error
    assert ended.manifest()["timeline"]["step"] == 1
    went_on = runner(FOUR, resume=ended)
    assert went_on.state is RunStateName.FINISHED, went_on.error
    left, right = whole.weights(), went_on.weights()
    assert all(left[name].equal(right[name]) for name in left)
