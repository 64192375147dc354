"""Input that is wrong ends a run with an error that names it; what was done before is kept."""

import errno
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.run_requests import request

from coloop.errors import RunFolderExists
from coloop.runtime.reporting import samples
from coloop.runtime.run_files.events import CheckpointRequest, EditRequest, RunStateName
from coloop.runtime.run_files.recorder import JsonlFiles

KEEPING = """
coloop: 1
name: keeping
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  length: {kind: reward, source: {type: builtin, name: length, max: 6}}
  keep: {kind: filter, keep: [{rule: score, min: 5}]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> length.rollouts
  - length.scores -> keep.scores
  - keep.scores -> actor.rewards
schedule: {steps: 30}
hardware: {preset: cpu}
"""

FILLING = """
coloop: 1
name: filling
nodes:
  gold: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
  pool: {kind: buffer, capacity: 8, unique: prompt}
  policy:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: sft}
edges:
  - gold.rows -> pool.rows
  - pool.rows -> policy.demonstrations
schedule:
  phases:
    - {name: collect, until: pool.full}
    - {name: train, steps: 1, learn: [policy.demonstrations]}
hardware: {preset: cpu}
"""

PROPOSING = """
coloop: 1
name: proposing
nodes:
  seeds: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  proposer:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  parsed: {kind: template, parse: {question: "(?s)(.+)"}, text: "{{ question }}="}
  solver:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  solved:
    kind: reward
    source: {type: python, code: "def reward(prompts, **columns): return [SCORE for _ in prompts]"}
  learnable: {kind: reward, source: {type: builtin, name: band, low: 0.2, high: 0.8}}
edges:
  - seeds.rows -> proposer.prompts
  - proposer.rollouts -> parsed.rows
  - parsed.rows -> solver.prompts
  - solver.rollouts -> solved.rollouts
  - solved.scores -> solver.rewards
  - proposer.rollouts -> learnable.rollouts
  - {from: solved.scores, to: learnable.scores, aggregate: mean}
  - learnable.scores -> proposer.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""
"""A proposer that is paid for problems that are solved sometimes."""

WARM = {"schedule.phases": [{"name": "rl", "steps": 4, "learn": ["actor.rewards"]}]}


def failure(ended: Any) -> dict[str, Any]:
    """The error of a run that must have failed, as its events tell it."""
    assert ended.state is RunStateName.FAILED
    [failed] = ended.of("run.state", state="failed")
    assert failed["message"] == failed["error"]["message"]
    error: dict[str, Any] = failed["error"]
    return error


def test_a_filter_that_keeps_nothing_ends_the_run_with_the_rule(
    runner: Callable[..., Any],
) -> None:
    ended = runner(KEEPING)

    error = failure(ended)
    assert error["code"] == "run.nothing_learned"
    assert "keep kept none of 4 rows (score cut 4)" in error["message"]
    assert "(`keep`)" in error["hint"]
    assert ended.alerts().count("filter.kept_nothing") == 20
    assert ended.manifest()["timeline"]["step"] == 20


def test_a_buffer_that_cannot_fill_ends_the_run(runner: Callable[..., Any]) -> None:
    ended = runner(FILLING)

    error = failure(ended)
    assert error["code"] == "run.nothing_learned"
    assert "pool.write" in error["message"]
    assert ended.manifest()["timeline"]["step"] == 22


def test_a_buffer_that_cannot_fill_is_left_at_its_cap(runner: Callable[..., Any]) -> None:
    ended = runner(FILLING.replace("until: pool.full", "until: pool.full, max_steps: 5"))

    assert ended.state is RunStateName.FINISHED
    [alert] = [event for event in ended.of("alert") if event["code"] == "buffer.not_full"]
    assert alert["node"] == "pool"
    assert "it got 4 of 8 rows (`capacity`) in 5 steps of phase collect" in alert["message"]
    assert "`max_steps` of collect" in alert["hint"]
    assert ended.manifest()["timeline"]["step"] == 6


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_proposer_of_problems_that_are_all_alike_is_named(
    score: float, runner: Callable[..., Any]
) -> None:
    ended = runner(PROPOSING.replace("SCORE", str(score)))

    assert ended.state is RunStateName.FINISHED, ended.error
    told = {event["node"]: event for event in ended.of("alert", code="learning.no_spread")}
    assert told.keys() == {"proposer", "solver"}
    assert f"(mean {score:g})" in told["solver"]["message"]
    assert "its problems come from `proposer`" in told["solver"]["message"]
    assert "come from" not in told["proposer"]["message"]


def test_a_pass_over_an_empty_buffer_is_told(runner: Callable[..., Any]) -> None:
    text = FILLING.replace(
        "name: collect, until: pool.full", "name: idle, steps: 1, learn: [policy]"
    )
    text = text.replace("name: train, steps: 1", "name: train, epochs: {of: pool, count: 1}")

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED
    [alert] = [event for event in ended.of("alert") if event["code"] == "phase.empty"]
    assert "pool has no rows" in alert["message"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (None, {}, "does not exist"),
        ("", {}, "has no rows"),
        ('{"question": "1+1="}\n', {"prompt": "query"}, "has no column `query`"),
        ('{"prompt": "1+1="}\n{"prompt": 7}\n', {}, "line 2"),
        ("{nonsense\n", {}, "line 1"),
    ],
    ids=["missing file", "empty file", "missing column", "wrong type", "no json"],
)
def test_a_dataset_that_cannot_be_read_is_named(
    content: str | None,
    columns: dict[str, str],
    message: str,
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    tmp_path: Path,
) -> None:
    if content is not None:
        (tmp_path / "rows.jsonl").write_text(content, encoding="utf-8")
    source = {"type": "file", "path": "rows.jsonl"}
    values = {"nodes.problems.source": source, "nodes.problems.columns": columns}

    ended = runner(tiny("grpo-arithmetic", values))

    error = failure(ended)
    assert error["code"] == "data.unreadable"
    assert error["node"] == "problems"
    assert message in error["message"]


def test_a_prompt_longer_than_the_model_names_the_writer(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    rows = [{"prompt": "1+" * 400, "answer": "2", "target": "2"}]
    values = {**WARM, "nodes.problems.source": {"type": "inline", "rows": rows}}

    ended = runner(tiny("grpo-arithmetic", values))

    error = failure(ended)
    assert error["code"] == "rollout.request_refused"
    assert error["node"] == "actor"
    assert "512" in error["message"]


@pytest.mark.slow
def test_template_code_that_fails_names_its_node(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    code = "def write(prompt, **columns):\n    return {'prompt': prompt[1000]}\n"
    values = {"nodes.ask_tens": {"kind": "template", "code": code}}

    ended = runner(tiny("two-halves", values))

    error = failure(ended)
    assert error["code"] == "user_code.failed"
    assert error["node"] == "ask_tens"
    assert "IndexError" in error["message"]


def test_a_run_folder_that_exists_is_left_alone(
    runner: Callable[..., Any], tiny: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("precious", encoding="utf-8")

    with pytest.raises(RunFolderExists, match="--resume taken"):
        runner(tiny("spin"), run_id="taken")

    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["thesis.txt"]


def test_a_refresh_from_a_best_that_does_not_exist_is_named(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    do = {"refresh": {"node": "start", "from": "best"}}
    values = {"schedule.triggers": [{"when": {"metric": "probe.score", "above": -1.0}, "do": do}]}

    error = failure(runner(tiny("grpo-arithmetic", values)))

    assert error["code"] == "checkpoint.unusable"
    assert "run.best" in error["message"]


@pytest.mark.slow
def test_weights_that_are_lost_are_named(
    runner: Callable[..., Any], tiny: Callable[..., str]
) -> None:
    text = tiny("two-halves")
    stopped = runner(text, stop_at=lambda event: event["type"] == "metrics" and event["step"] == 3)
    [checkpoint] = (stopped.folder / "checkpoints").iterdir()
    (checkpoint / "tens" / "trainer.pt").write_bytes(b"nothing")

    error = failure(runner(text, resume=stopped))

    assert error["code"] == "checkpoint.unusable"
    assert "tens" in error["message"]


@pytest.fixture
def small_files() -> Iterator[Callable[[], None]]:
    """Makes every file end at a size at which trainer state does not fit, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_and_the_old_checkpoint_survives(
    runner: Callable[..., Any], tiny: Callable[..., str], small_files: Callable[[], None]
) -> None:
    def fill(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "checkpoint":
            small_files()

    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 2})

    ended = runner(text, on_event=fill)

    assert ended.alerts().count("checkpoint.failed") == 2
    error = failure(ended)
    assert error["code"] == "storage.full"
    assert "the previous checkpoint is intact" in error["message"]
    assert [path.name for path in (ended.folder / "checkpoints").iterdir()] == ["step-2"]


@pytest.mark.slow
def test_a_run_goes_on_when_the_disk_has_room_again(
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 2})

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        on_event = lambda event, folder: (  # noqa: E731
            patched.setattr("coloop.workers.weights.save_hf", full)
            if event["type"] == "checkpoint" and event["step"] == 4
            else None
        )
        ended = runner(text, on_event=on_event)
    resumed = runner(text, resume=ended)

    assert ended.state is RunStateName.FAILED
    assert resumed.state is RunStateName.FINISHED
    assert equal(resumed.weights(), whole(text).weights())


@pytest.mark.slow
def test_observers_that_cannot_write_do_not_end_a_run(
    runner: Callable[..., Any], tiny: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(JsonlFiles, "gauges", full)
    monkeypatch.setattr(JsonlFiles, "step_gauges", full)
    monkeypatch.setattr(samples, "FOLDER", "spec.yaml")
    monkeypatch.setattr("coloop.runtime.start.write_report", full)

    ended = runner(tiny("two-halves"))

    assert ended.state is RunStateName.FINISHED, ended.error


@pytest.mark.slow
def test_requests_that_do_not_fit_are_told_and_nothing_else(
    runner: Callable[..., Any],
    tiny: Callable[..., str],
    whole: Callable[..., Any],
    equal: Callable[..., bool],
) -> None:
    lr = "nodes.actor.training.optimizer.lr"

    def ask(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "phase" and event["state"] == "started":
            request(folder, EditRequest(changes={lr: "much"}))
            request(folder, EditRequest(changes={"nodes.nobody.rows_per_step": 3}))
            request(folder, EditRequest(changes={"nodes.actor.model.architecture": "tiny-llama"}))
            with (folder / "control.jsonl").open("a", encoding="utf-8") as file:
                file.write('{"type": "dance"}\nnonsense\n{"type": "edit"}\n')
            request(folder, CheckpointRequest())

    text = tiny("grpo-arithmetic")

    ended = runner(text, on_event=ask)

    assert ended.state is RunStateName.FINISHED
    assert ended.alerts().count("control.edit_refused") == 6
    assert ended.alerts().count("control.unreadable") == 6
    assert [event["step"] for event in ended.of("checkpoint")] == [0, 3, 7]
    assert equal(ended.weights(), whole(text).weights())
