"""Models that begin with what an earlier run has learned."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.runs.conftest import load
from torch import Tensor

from coloop.errors import ModelUnavailable
from coloop.runtime.checkpoints.earlier_runs import with_folders
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.model import PretrainedModel
from coloop.spec.nodes import model_of

Run = Callable[..., Any]

SCRATCH = "{type: scratch, architecture: tiny-qwen3}"
EARLIER = "{type: run, run: small, node: actor}"
SCORED = """
coloop: 1
name: scored
nodes:
  preferences: {kind: dataset, source: {type: task, task: preference, size: 8}, rows_per_step: 2}
  judge:
    kind: reward
    source: {type: model}
    model: {type: run, run: small, node: actor}
    algorithm: {name: bradley_terry}
edges: [preferences.pairs -> judge.pairs]
schedule: {steps: 1}
hardware: {preset: cpu}
"""


def beginning(text: str) -> str:
    """The loop, whose updates leave the weights as they are."""
    found = text.replace("algorithm: {name: grpo}", "algorithm: {name: grpo}\n    training: FROZEN")
    still = "{optimizer: {name: sgd, lr: 1.0e-30, weight_decay: 0.0}}"
    return found.replace("training: FROZEN", f"training: {still}")


def later(text: str, model: str = EARLIER) -> str:
    """A loop of another name that begins with an earlier run's weights."""
    return beginning(text.replace(SCRATCH, model).replace("name: small", "name: later"))


@pytest.mark.slow
def test_a_model_begins_with_the_weights_that_an_earlier_run_ended_with(
    runner: Run, small: str, equal: Callable[..., bool]
) -> None:
    earlier = runner(small)
    other = runner(small + "run: {seed: 1}\n", run_id="other")

    ended = runner(later(small))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.group("actor"), other.group("actor"))  # the newest finished run of the loop
    assert not equal(ended.group("actor"), earlier.group("actor"))
    assert "other/checkpoints/step-2/actor" in ended.plan()["weights"][0]["source"]
    named = runner(later(small, EARLIER.replace("run: small", f"run: {earlier.folder.name}")))
    assert equal(named.group("actor"), earlier.group("actor"))


def test_a_loop_may_have_been_looked_at_before_its_folders_are_found(
    small: str, tmp_path: Path
) -> None:
    spec = load(later(small))
    assert spec.graph.edges_into("actor")  # which is kept

    begun = with_folders(spec, {"actor": tmp_path})

    assert model_of(begun.nodes["actor"]) == PretrainedModel(type="pretrained", path=str(tmp_path))


@pytest.mark.slow
def test_what_did_not_finish_counts_only_by_its_own_name(
    runner: Run, small: str, equal: Callable[..., bool]
) -> None:
    stopped = runner(small, stop_at=lambda event: event.get("step") == 1, run_id="half")
    assert stopped.state is RunStateName.STOPPED

    with pytest.raises(ModelUnavailable, match=r"`actor`: `model.run: small`: there is no run"):
        runner(later(small))
    ended = runner(later(small, "{type: run, run: half, node: actor}"))

    assert equal(ended.group("actor"), stopped.group("actor"))


@pytest.mark.slow
def test_the_best_checkpoint_is_taken_where_the_loop_asks_for_it(
    runner: Run, small: str, equal: Callable[..., bool]
) -> None:
    every = small.replace("every: 9", "every: 1")
    earlier = runner(every + "run: {best: probe.score, checkpoint_every: 1, keep: 9}\n")
    steps = [event["step"] for event in earlier.of("checkpoint") if event["best"]]

    ended = runner(later(small, EARLIER.replace("node: actor", "node: actor, at: best")))

    assert equal(ended.group("actor"), earlier.group("actor", steps[-1]))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("{type: run, run: none, node: actor}", "there is no run 'none'"),
        ("{type: run, run: small, node: critic}", "has no weights of 'critic'; it has actor"),
        ("{type: run, run: small, node: actor, at: best}", r"set what is best in its loop"),
    ],
)
def test_what_an_earlier_run_does_not_have_is_told_before_anything_begins(
    runner: Run, small: str, model: str, told: str
) -> None:
    runner(small)

    with pytest.raises(ModelUnavailable, match=told):
        runner(later(small, model), run_id="never")

    assert not (runner.runs_dir / "never").exists()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_head_that_the_earlier_run_lacks_is_new_and_one_that_it_has_comes_along(
    runner: Run, small: str
) -> None:
    earlier = runner(small)

    scored = runner(SCORED)
    again = runner(SCORED.replace("run: small, node: actor", "run: scored, node: judge"))

    assert scored.state is again.state is RunStateName.FINISHED, (scored.error, again.error)
    trunk = "model.layers.0.mlp.up_proj.weight"
    assert _near(scored.group("judge")[trunk], earlier.group("actor")[trunk])
    assert _near(again.group("judge")["score.weight"], scored.group("judge")["score.weight"])


def test_who_writes_is_told_by_name_that_a_scorers_weights_have_no_words(
    runner: Run, small: str
) -> None:
    scored = runner(SCORED.replace("{type: run, run: small, node: actor}", SCRATCH))

    ended = runner(later(small, "{type: run, run: scored, node: judge}"))

    assert scored.state is RunStateName.FINISHED, scored.error
    assert ended.state is RunStateName.FAILED
    assert (ended.error.code, ended.error.node) == ("model.unavailable", "actor")
    assert "`actor`: `model`: " in ended.error.message
    assert "no language-model head" in ended.error.message


def _near(left: Tensor, right: Tensor) -> bool:
    """Whether one small update lies between them, not a model drawn anew."""
    return bool((left - right).abs().max() < 0.1 * right.abs().max())


def test_an_adapter_of_an_earlier_run_is_merged_and_may_get_another(
    runner: Run, small: str, equal: Callable[..., bool]
) -> None:
    adapted = SCRATCH.replace("tiny-qwen3", "tiny-qwen3, lora: {rank: 2, alpha: 4}")
    first = runner(small.replace(SCRATCH, adapted))

    merged = runner(later(small))
    second = runner(later(small, EARLIER.replace("node: actor", "node: actor, lora: {rank: 2}")))

    assert merged.state is second.state is RunStateName.FINISHED, (merged.error, second.error)
    assert equal(merged.group("actor"), second.group("actor"))  # an adapter begins at nothing
    assert first.group("actor").keys() == merged.group("actor").keys()


@pytest.mark.slow
@pytest.mark.parametrize("model", [EARLIER, EARLIER.replace("actor}", "actor, lora: {rank: 2}}")])
def test_a_run_goes_on_though_the_run_that_it_began_with_is_gone(
    runner: Run, small: str, equal: Callable[..., bool], model: str
) -> None:
    earlier = runner(small)
    text = small.replace(SCRATCH, model).replace("name: small", "name: later")
    text += "run: {checkpoint_every: 1}\n"
    whole = runner(text)
    stopped = runner(text, stop_at=lambda event: event.get("step") == 1)
    assert stopped.state is RunStateName.STOPPED
    runner(small + "run: {seed: 1}\n")
    shutil.rmtree(earlier.folder)

    ended = runner(text, resume=stopped)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.weights(), whole.weights())


@pytest.mark.slow
def test_a_run_without_a_checkpoint_goes_on_with_what_it_began_with(
    runner: Run, small: str, equal: Callable[..., bool]
) -> None:
    runner(small)
    text = small.replace(SCRATCH, EARLIER).replace("name: small", "name: later")
    whole = runner(text)
    broken = runner(text, stop_at=lambda event: event.get("step") == 1)
    shutil.rmtree(broken.folder / "checkpoints")
    (broken.folder / "events.jsonl").unlink()
    runner(small + "run: {seed: 1}\n")

    ended = runner(text, resume=broken)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert equal(ended.weights(), whole.weights())
    assert all(torch.isfinite(one).all() for one in ended.weights().values())
