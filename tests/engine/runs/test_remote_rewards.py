"""Rewards of a service in whole runs: they teach as the same numbers from Python do, stop when they
are told to, and leave no secret behind."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engine.run_requests import request
from tests.engine.web_service import Asked, Behaviour, WebService, serving

from coloop.runtime.run_files.events import RunStateName, StopRequest

Run = Callable[..., Any]

PYTHON = """{
    type: python,
    code: "def reward(prompts, completions, **columns):\\n
      \\x20   return [sum(map(str.isdigit, text)) / 6 for text in completions]\\n"
  }"""

LOOP = """
coloop: 1
name: judged
nodes:
  problems: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 3}}
  actor:
    kind: actor
    pool: train
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{pool: write, completions_per_prompt: 3, max_new_tokens: 6, max_num_seqs: 3}}
    algorithm: {{name: grpo}}
    training: {{optimizer: {{name: adamw, lr: 1.0e-3}}}}
  judge:
    kind: reward
    on_error: skip_row
    source: {source}
  varied:
    kind: filter
    keep: [{{rule: nonzero_variance}}]
    fill: {{groups: 2, max_rounds: 3, surplus: drop}}
  probe: {{kind: evaluate, instead_of: problems, every: 1, metrics: [score]}}
  held_out: {{kind: dataset, source: {{type: task, task: arithmetic, size: 4}}, rows_per_step: 2}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> judge.rollouts
  - judge.scores -> varied.scores
  - varied.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - judge.scores -> probe.scores
schedule: {{steps: 3{schedule}}}
hardware: {{preset: cpu, pools: {{train: {{workers: 1}}, write: {{workers: 1}}}}}}
run: {{seed: 3}}
"""
"""A refill and a probe around the reward, the writer in a pool of its own."""


def digits(asked: Asked) -> list[float]:
    return [sum(map(str.isdigit, text)) / 6 for text in asked.body["completions"]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Behaviour], WebService]]:
    """Starts a service that runs may call."""
    with_end = []

    def start(behave: Behaviour) -> WebService:
        block = serving(behave)
        web = block.__enter__()
        with_end.append(block)
        monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
        return web

    yield start
    for block in with_end:
        block.__exit__(None, None, None)


def loop(web: WebService | None, schedule: str = "", **source: Any) -> str:
    if web is None:
        return LOOP.format(source=PYTHON, schedule=schedule)
    given = {"type": "remote", "url": web.url, "retries": 0, "batch": 2, **source}
    return LOOP.format(source=json.dumps(given), schedule=schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["", ", stream: true", ", max_staleness: 1"])
def test_a_service_teaches_as_python_does(
    schedule: str, runner: Run, whole: Run, served: Any, equal: Any
) -> None:
    by_python = whole(loop(None, schedule))

    ended = runner(loop(served(digits), schedule))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.weights(), by_python.weights())
    assert ended.readings() == by_python.readings()


def test_other_numbers_teach_something_else(
    runner: Run, whole: Run, served: Any, equal: Any
) -> None:
    web = served(lambda asked: [-score for score in digits(asked)])

    ended = runner(loop(web))

    assert not equal(ended.weights(), whole(loop(None)).weights())


def test_a_run_that_a_failure_ended_goes_on_bit_for_bit(
    runner: Run, whole: Run, served: Any, equal: Any
) -> None:
    asked: list[int] = []
    is_well = False

    def tired(request: Asked) -> Any:
        asked.append(1)
        return (503, "tired") if len(asked) > 12 and not is_well else digits(request)

    text = loop(served(tired)).replace("on_error: skip_row", "on_error: stop")
    ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert (ended.error.code, ended.error.node) == ("service.failed", "judge")
    assert "answered status 503" in ended.error.message
    is_well = True
    resumed = runner(text, resume=ended)

    assert resumed.state is RunStateName.FINISHED
    assert equal(resumed.weights(), whole(loop(None)).weights())


def test_a_stop_is_obeyed_while_a_service_hangs(runner: Run, served: Any) -> None:
    """The service asks for the stop itself, once it was asked, and then says nothing."""
    folders: list[Path] = []
    asked_at: list[float] = []

    def hang(asked: Asked) -> Iterator[bytes]:
        if not asked_at:
            asked_at.append(time.monotonic())
            request(folders[0], StopRequest())
        web.ended.wait(200)
        yield b""

    web = served(hang)
    ended = runner(
        loop(web, timeout_seconds=600),
        on_event=lambda event, folder: folders.append(folder),
    )

    assert ended.state is RunStateName.STOPPED
    assert time.monotonic() - asked_at[0] < 60


def test_rows_without_an_answer_are_told_and_survived(runner: Run, served: Any) -> None:
    ended = runner(loop(served(lambda asked: (500, "no"))))

    assert "reward.rows_failed" in ended.alerts()
    [first, *_] = ended.of("alert", code="reward.rows_failed")
    assert "rows failed; the first: judge, row 0: source.url: http://127.0.0.1:" in first["message"]


SECRET = "tell-nobody-9f3a"


def texts_in(folder: Path) -> Mapping[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.sample(1)
@pytest.mark.parametrize("is_well", [True, False])
def test_no_file_of_a_run_holds_the_secret(
    is_well: bool, runner: Run, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_SECRET_JUDGE", SECRET)
    said: list[str] = []

    def echo(asked: Asked) -> Any:
        said.append(asked.headers["authorization"])
        return digits(asked) if is_well else (500, f"{said[-1]}")

    ended = runner(loop(served(echo), secret="judge"))

    assert set(said) == {f"Bearer {SECRET}"}
    assert ended.events
    for path, text in texts_in(ended.folder).items():
        assert SECRET.encode() not in text, path


def test_a_service_that_is_not_listed_is_not_called_by_a_run(
    runner: Run, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts a run without checking it first finds the guard all the same."""
    web = served(digits)
    monkeypatch.delenv("COLOOP_ALLOWED_REMOTES")

    ended = runner(loop(web))

    assert ended.error.code == "service.failed"
    assert f"COLOOP_ALLOWED_REMOTES={web.host}" in ended.error.message
    assert web.asked == []
