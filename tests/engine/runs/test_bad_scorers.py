"""Scorers that cannot score end the run with a sentence that names them; nothing is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from coloop.models import build_model, save_hf
from coloop.runtime.run_files.events import RunError, RunStateName
from coloop.spec.model import ScratchModel

Runner = Callable[..., Any]

LOOP = """
coloop: 1
name: four-models
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 5}
    algorithm: {name: ppo, kl: {coefficient: 0.1}}
  start: {kind: reference, model: {type: snapshot, of: actor, refresh: never}}
  critic: {kind: critic, model: {type: copy, of: actor}, algorithm: {name: value}}
  brief: {kind: reward, source: {type: builtin, name: length, max: 4}}
  taste:
    kind: reward
    source: {type: model}
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {labels: {name: regression}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> brief.rollouts
  - actor.rollouts -> taste.rollouts
  - actor.rollouts -> start.rollouts
  - actor.rollouts -> critic.rollouts
  - brief.scores -> taste.labels
  - taste.scores -> actor.rewards
  - start.log_probs -> actor.reference
  - critic.values -> actor.values
  - actor.returns -> critic.returns
schedule: {steps: 1}
hardware: {preset: cpu}
"""
OF = {
    "actor": "actor\n    model: {type: scratch, architecture: tiny-qwen3}",
    "start": "reference, model: {type: snapshot, of: actor, refresh: never}",
    "critic": "critic, model: {type: copy, of: actor}",
    "taste": "{type: model}\n    model: {type: scratch, architecture: tiny-qwen3}",
}
"""By node, the text in which its model is written."""


def beginning(node: str, folder: str) -> str:
    """The loop in which a node begins with the weights of a folder."""
    before, model = OF[node].split("model: {t", 1)
    assert model
    return LOOP.replace(OF[node], f"{before}model: {{type: pretrained, path: {folder}}}")


def scratch(architecture: str, root: Path) -> Any:
    section = ScratchModel.model_validate({"type": "scratch", "architecture": architecture})
    return build_model(section, seed=0, root=root)


def failed(ended: Any) -> RunError:
    assert ended.state is RunStateName.FAILED
    assert ended.error is not None
    error: RunError = ended.error
    return error


COLUMN = """
coloop: 1
name: column
nodes:
  sums: {kind: dataset, source: {type: inline, rows: [{prompt: "1+1=", worth: VALUE}]}}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 2}
    algorithm: {name: grpo}
  worth: {kind: reward, source: {type: builtin, name: column, column: worth}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> worth.rollouts
  - worth.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1.0e+308", "the score of row actor:sums:0.0.0 is 1e+308, and a number between -1e+19"),
        ('"1e400"', "the score of row actor:sums:0.0.0 is inf, and a number between -1e+19"),
    ],
)
def test_a_score_that_is_too_large_to_learn_from_is_named(
    value: str, words: str, runner: Runner
) -> None:
    error = failed(runner(COLUMN.replace("VALUE", value)))

    assert error.node == "worth"
    assert words in error.message
    assert "bound it" in error.message


@pytest.mark.sample(2)
@pytest.mark.parametrize("node", OF)
def test_weights_that_are_not_numbers_are_named_before_anybody_learns(
    node: str, runner: Runner, tmp_path: Path
) -> None:
    made = scratch("tiny-qwen3", tmp_path)
    with torch.no_grad():
        made.model.get_parameter("model.norm.weight")[0] = torch.nan
    made.model.save_pretrained(tmp_path / "rotten")
    made.tokenizer.save_pretrained(tmp_path / "rotten")

    ended = runner(beginning(node, "rotten"), root=tmp_path)

    error = failed(ended)
    assert (error.code, error.node) == ("data.unreadable", node)
    assert "nan" in error.message
    assert "at the weights it was loaded from" in error.message
    assert not ended.of("stage.finished", stage="actor.learn")


@pytest.mark.parametrize("node", ["critic", "start"])
def test_a_scorer_of_another_tokenizer_is_named(node: str, runner: Runner, tmp_path: Path) -> None:
    made = scratch("tiny-bytes", tmp_path)
    save_hf(tmp_path / "bytes", made.model, made.tokenizer)

    error = failed(runner(beginning(node, "bytes"), root=tmp_path))

    assert (error.code, error.node) == ("data.unreadable", node)
    assert f"written by actor with another tokenizer than {node} has" in error.message
    assert "give both models the same tokenizer" in error.message


@pytest.mark.parametrize("number", ["7.0", "-1.0"])
def test_a_label_outside_of_the_classes_is_named(number: str, runner: Runner) -> None:
    code = f"def reward(prompts, completions, **columns): return [{number} for _ in prompts]"
    text = LOOP.replace(
        "{type: builtin, name: length, max: 4}", f'{{type: python, code: "{code}"}}'
    )
    text = text.replace(
        "{labels: {name: regression}}",
        "{labels: {name: label_ce}}\n    read: {labels: [good, fair, poor], values: {poor: -3}}",
    )

    error = failed(runner(text))

    assert (error.code, error.node) == ("data.unreadable", "taste")
    assert f"has the label {number}, and `taste.labels` learns the classes" in error.message
