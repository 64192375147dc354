"""Policies for which a service writes, in whole runs: the same as with the weights here."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.openai_service import completions_of
from tests.engine.web_service import Asked, Behaviour, WebService, serving

from coloop.data.seeds import derive_seed
from coloop.models import build_model
from coloop.plan.run_check import check_runs
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse, patch
from coloop.spec.model import ScratchModel
from coloop.workers.rollout import TorchEngine

Run = Callable[..., Any]

HINTED = """
coloop: 1
name: hinted
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 3}
  hinter:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, max_new_tokens: 4}
  ask: {kind: template, text: "{{ prompt }}{{ hinter.completion }}"}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 3, max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  digits: {kind: reward, source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}
  probe: {kind: evaluate, instead_of: problems, every: 1, metrics: [score]}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
edges:
  - problems.rows -> hinter.prompts
  - hinter.rollouts -> ask.rows
  - ask.rows -> actor.prompts
  - actor.rollouts -> digits.rollouts
  - digits.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - digits.scores -> probe.scores
schedule: {steps: 4}
hardware: {preset: cpu}
run: {seed: 5}
"""


JUDGED = """
coloop: 1
name: judged
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 2}
  solver:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 3, max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  hinter:
    kind: verifier
    method: generative
    model: {type: scratch, architecture: tiny-qwen3}
    template: {text: "{{ prompt }}{{ completion }}?"}
    read: {number: "([0-9])", scale: [0, 9], on_no_match: 0}
    rollout: {engine: torch, completions_per_prompt: 2, max_new_tokens: 4}
edges:
  - sums.rows -> solver.prompts
  - solver.rollouts -> hinter.rollouts
  - {from: hinter.scores, to: solver.rewards, aggregate: mean}
schedule: {steps: 3}
hardware: {preset: cpu}
run: {seed: 5}
"""
"""A judge in words in the hinter's place: `remote` changes the node of that name."""


@pytest.fixture(scope="module")
def hinter() -> Behaviour:
    """The service with the weights that the hinter would have here."""
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    loaded = build_model(section, seed=derive_seed(5, "hinter", "weights"), root=Path())
    return completions_of(TorchEngine(loaded.model, loaded.tokenizer), loaded.tokenizer)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Behaviour], WebService]]:
    """Starts a service that runs may call."""
    opened: list[Any] = []

    def start(behave: Behaviour) -> WebService:
        opened.append(serving(behave))
        web: WebService = opened[-1].__enter__()
        monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
        return web

    yield start
    for block in opened:
        block.__exit__(None, None, None)


def remote(web: WebService | None, text: str = HINTED, **more: Any) -> str:
    """The loop with a service that writes for the hinter."""
    host = "localhost:1" if web is None else web.host
    rollout = {"engine": "remote", "url": f"http://{host}/v1", "max_new_tokens": 4, **more}
    return patch(text, [Change(op="set", path="nodes.hinter.rollout", value=rollout)])


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["", ", stream: true"])
def test_a_service_writes_as_weights_that_are_here(
    schedule: str, runner: Run, whole: Run, served: Any, hinter: Behaviour, equal: Any
) -> None:
    text = HINTED.replace("{steps: 4}", f"{{steps: 4{schedule}}}")
    here = whole(text)

    ended = runner(remote(served(hinter), text))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.group("actor"), here.group("actor"))
    assert not (ended.folder / "checkpoints").joinpath("hinter").exists()


def test_another_model_there_teaches_something_else(
    runner: Run, whole: Run, served: Any, equal: Any
) -> None:
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    other = build_model(section, seed=1, root=Path())
    web = served(completions_of(TorchEngine(other.model, other.tokenizer), other.tokenizer))

    assert not equal(runner(remote(web)).group("actor"), whole(HINTED).group("actor"))


def test_a_judge_in_words_may_be_elsewhere(
    runner: Run, whole: Run, served: Any, hinter: Behaviour, equal: Any
) -> None:
    ended = runner(remote(served(hinter), JUDGED, completions_per_prompt=2))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.group("solver"), whole(JUDGED).group("solver"))


def test_a_judge_that_reads_probabilities_wants_weights_here() -> None:
    change = Change(op="set", path="nodes.hinter.read.score", value="probability")
    parsed = parse(patch(remote(None, JUDGED), [change]))
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]

    assert "read.score" in [one.field for one in check_runs(parsed.spec)]


@pytest.mark.slow
def test_it_writes_a_step_ahead_in_a_pool_of_its_own(
    runner: Run, whole: Run, served: Any, hinter: Behaviour, equal: Any
) -> None:
    text = HINTED.replace("{steps: 4}", "{steps: 4, max_staleness: 1}")
    pools = {"train": {"workers": 1}, "write": {"workers": 1}}
    changes = [
        Change(op="set", path="hardware", value={"preset": "cpu", "pools": pools}),
        Change(op="set", path="nodes.actor.pool", value="train"),
        Change(op="set", path="nodes.actor.rollout.pool", value="write"),
        Change(op="set", path="nodes.hinter.pool", value="write"),
    ]
    text = patch(text, changes)

    ended = runner(remote(served(hinter), text))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.group("actor"), whole(text).group("actor"))


def test_a_run_that_a_failure_ended_goes_on_bit_for_bit(
    runner: Run, whole: Run, served: Any, hinter: Behaviour, equal: Any
) -> None:
    asked: list[int] = []
    is_well = False

    def tired(request: Asked) -> Any:
        asked.append(1)
        return hinter(request) if len(asked) < 14 or is_well else (404, "no such model")

    text = remote(served(tired))
    ended = runner(text)

    assert ended.state is RunStateName.FAILED
    assert (ended.error.code, ended.error.node) == ("service.failed", "hinter")
    assert "answered status 404" in ended.error.message
    is_well = True
    resumed = runner(text, resume=ended)

    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.group("actor"), whole(HINTED).group("actor"))


def test_no_file_of_a_run_holds_the_secret_of_an_engine(
    runner: Run, served: Any, hinter: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_SECRET_WRITER", "tell-nobody-9f3a")
    said: set[str] = set()

    def listen(asked: Asked) -> Any:
        said.add(asked.headers["authorization"])
        return hinter(asked)

    ended = runner(remote(served(listen), secret="writer"))

    assert said == {"Bearer tell-nobody-9f3a"}
    assert ended.state is RunStateName.FINISHED
    for path in ended.folder.rglob("*"):
        assert path.is_dir() or b"tell-nobody" not in path.read_bytes(), path


REFUSED = [
    (
        "nodes.hinter.algorithm",
        {"name": "sft"},
        "which learns: a service does not receive new weights",
    ),
    ("nodes.hinter.rollout.turns", {"max": 2}, "generates a text in one request"),
    ("nodes.actor.model", {"type": "copy", "of": "hinter"}, "whose weights `actor` needs here"),
    (
        "nodes.hinter.model",
        {"type": "copy", "of": "actor"},
        "does not name the model of the service",
    ),
]


@pytest.mark.parametrize(("path", "value", "what"), REFUSED)
def test_what_wants_its_weights_here_is_refused_by_name(path: str, value: Any, what: str) -> None:
    text = patch(remote(None), [Change(op="set", path=path, value=value)])
    if "algorithm" in path:
        edge = "problems.rows -> hinter.demonstrations"
        text = patch(text, [Change(op="add_edge", path="edges", value=edge)])
    parsed = parse(text)
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]

    found = [one for one in check_runs(parsed.spec) if what in one.message]

    assert [one.node for one in found] == ["hinter"]
    assert found[0].code == "run.not_yet_runnable"
