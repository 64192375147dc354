"""Judges by URL in whole runs: a run that goes on asks nothing twice, and nothing is lost at the
cost limit; a rehearsal reaches no other machine."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.engine.chat_service import judged_by, prompt_of, reply
from tests.engine.web_service import Asked, Behaviour, WebService, serving

from coloop.explain.rehearsal import rehearsed
from coloop.plan.compile import compile_plan
from coloop.plan.cost import estimate
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.diagnostics import Change
from coloop.spec.io import dump, load, patch, to_dict

Run = Callable[..., Any]

JUDGED = """
coloop: 1
name: judged-by-url
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 2}
  solver:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 3, max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  judge:
    kind: verifier
    method: generative
    on_error: stop
    template: {text: "{{ prompt }}{{ completion }}? {{ criteria }} {{ answer_format }}"}
    read:
      rubric: [{name: right, text: it is right, weight: 2}, {name: short, text: it is short}]
      scale: [0, 9]
      on_no_match: 0
    rollout: {engine: chat, max_new_tokens: 64, chat: {url: "http://localhost:1/v1", model: m}}
  clean:
    kind: reward
    template: {text: "{{ completion }}!"}
    read: {number: "([0-9])", scale: [0, 9], on_no_match: 0}
    source: {type: chat, url: "http://localhost:1/v1", model: m}
edges:
  - sums.rows -> solver.prompts
  - solver.rollouts -> judge.rollouts
  - solver.rollouts -> clean.rollouts
  - {from: judge.scores, to: solver.rewards, aggregate: mean}
  - clean.scores -> solver.rewards
schedule: {steps: 4}
hardware: {preset: cpu}
run: {seed: 5, checkpoint_every: 2}
"""
PRICES = {"input_price": 1.0e6, "output_price": 0.0}
"""A prompt costs its tokens."""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Behaviour], WebService]]:
    opened: list[Any] = []

    def start(behave: Behaviour) -> WebService:
        opened.append(serving(behave))
        web: WebService = opened[-1].__enter__()
        monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
        return web

    yield start
    for block in opened:
        block.__exit__(None, None, None)


def by_url(web: WebService, **settings: Any) -> str:
    """The loop with a server, and these settings of the judge's service."""
    service = {"url": f"http://{web.host}/v1", "model": "m", "retries": 0, "concurrency": 1}
    clean = {"type": "chat", **service}
    return patch(
        JUDGED,
        [
            Change(op="set", path="nodes.judge.rollout.chat", value={**service, **settings}),
            Change(op="set", path="nodes.clean.source", value=clean),
        ],
    )


def verdict(text: str) -> str:
    digits = sum(map(str.isdigit, text.partition("?")[0]))
    return str(digits % 10) if text.endswith("!") else json.dumps({"right": digits, "short": 4})


def unsteady() -> Behaviour:
    """A server that answers the same question with another number each time."""
    seen: list[str] = []

    def behave(asked: Asked) -> Any:
        seen.append(prompt_of(asked))
        number = len(seen) % 10
        if seen[-1].endswith("!"):
            return reply(str(number))
        return reply(json.dumps({"right": number, "short": 1}))

    return behave


def test_a_run_goes_on_with_the_answers_that_it_had(runner: Run, served: Any) -> None:
    """The server never says the same twice, and is not asked the same twice."""
    answers = unsteady()
    left = [20]
    answered: list[str] = []

    def tired(asked: Asked) -> Any:
        left[0] -= 1
        if left[0] < 0:
            return (503, "tired")
        answered.append(json.dumps(asked.body))
        return answers(asked)

    web = served(tired)
    ended = runner(by_url(web))
    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "service.failed"
    assert ended.error.node in {"judge", "clean"}  # both ask at the same time

    left[0] = 1000
    resumed = runner(by_url(web), resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert len(answered) > 20
    assert len(set(answered)) == len(answered)
    cached = [resumed.metrics(node, "service/cached") for node in ("judge", "clean")]
    assert sum(map(sum, cached)) > 0


def test_a_whole_run_reports_criteria_tokens_and_time(runner: Run, served: Any) -> None:
    ended = runner(by_url(served(judged_by(verdict)), **PRICES))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("judge", "rubric/short") == [pytest.approx(4 / 9)] * 4
    assert ended.metrics("judge", "service/requests") == [6.0] * 4
    assert ended.metrics("judge", "service/cost") == [pytest.approx(60.0)] * 4
    assert ended.metrics("judge", "service/total_cost") == [
        pytest.approx(60.0 * step) for step in range(1, 5)
    ]
    assert ended.metrics("judge", "parse/none") == [0.0] * 4
    samples = [
        json.loads(line)
        for line in (ended.folder / "samples" / "step-1.jsonl").read_text("utf-8").splitlines()
    ]
    solved = next(row for row in samples if row["node"] == "solver")
    assert {"judge", "judge.right", "judge.short", "clean"} <= solved["scores"].keys()
    said = next(row for row in samples if row["node"] == "judge")
    assert json.loads(said["completion"]).keys() == {"right", "short"}


def test_a_cost_limit_ends_the_run_and_a_higher_one_goes_on(
    runner: Run, served: Any, equal: Any
) -> None:
    web = served(judged_by(verdict))
    whole = runner(by_url(web))
    before = len(web.asked)

    ended = runner(by_url(web, max_cost=150.0, **PRICES))
    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "service.failed"
    assert ended.error.message.startswith("judge: rollout.chat.max_cost: ")
    assert "raise `max_cost` and resume the run" in ended.error.message

    resumed = runner(by_url(web, max_cost=1000.0, **PRICES), resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole.weights())
    assert len(web.asked) - before == before  # no question was asked twice
    assert "max_cost: 1000.0" in (resumed.folder / "spec.yaml").read_text(encoding="utf-8")
    assert "max_cost: 150.0" in (resumed.folder / "spec.1.yaml").read_text(encoding="utf-8")


def test_prose_instead_of_verdicts_is_an_alert(runner: Run, served: Any) -> None:
    ended = runner(by_url(served(judged_by(lambda text: "Very nice indeed."))))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("judge", "parse/none") == [1.0] * 4
    told = {(event["code"], event["node"]) for event in ended.of("alert")}
    assert {("learning.nothing_parsed", "judge"), ("learning.nothing_parsed", "clean")} <= told
    messages = [event["message"] for event in ended.of("alert", code="learning.nothing_parsed")]
    assert any(
        "judge: " in one and "`read.rubric` finds nothing in 'Very" in one for one in messages
    )
    assert any(
        "`read.number` (([0-9])) finds nothing in 'Very nice indeed.'" in one for one in messages
    )


def test_a_judge_by_url_needs_no_memory_and_waits_for_a_service() -> None:
    spec = load(JUDGED)
    plan = compile_plan(spec)
    assert [weights.name for weights in plan.weights] == ["solver"]

    found = estimate(spec)
    stages = {stage.stage: stage for stage in found.stages}
    assert stages["judge.score"].bound == stages["clean.score"].bound == "service"
    assert stages["judge.score"].seconds > 0.1


def test_a_rehearsal_asks_no_service(runner: Run) -> None:
    made = rehearsed(load(JUDGED))
    nodes = to_dict(made.spec)["nodes"]
    assert nodes["judge"]["rollout"]["engine"] == "torch"
    assert nodes["clean"]["source"]["type"] == "python"
    assert "`judge`: a tiny model instead of the chat model at localhost" in made.notes

    ended = runner(dump(made.spec))
    assert ended.state is RunStateName.FINISHED, ended.error
    assert min(ended.metrics("judge", "parse/none")) < 1.0
