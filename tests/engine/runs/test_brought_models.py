"""Models that a user brings: every architecture of transformers that has a causal language model
learns by rewards for two steps and is saved as transformers loads it, or is refused before."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from tests.engine.models.architectures import make_model
from tests.matrix import also
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.models import save_hf
from coloop.models.tokenizer import byte_tokenizer
from coloop.plan.settings.families import causal_types, refusal_of
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.io import parse
from coloop.validate import validate
from coloop.workers.training import BACKENDS, SingleBackend

LOOP = """
coloop: 1
name: brought
nodes:
  sums:
    kind: dataset
    source:
      type: inline
      rows: [{prompt: "1+1="}, {prompt: "12+30="}]
    rows_per_step: 2
  actor:
    kind: actor
    model: {type: pretrained, path: FOLDER}
    rollout: {completions_per_prompt: 4, max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {lr: 1.0e-4}}
  letters:
    kind: reward
    source: {type: builtin, name: regex, pattern: "^[!-~]"}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> letters.rollouts
  - letters.scores -> actor.rewards
schedule: {steps: 2}
hardware: {preset: cpu}
"""
PAIRS = """
coloop: 1
name: pairs
nodes:
  pairs:
    kind: dataset
    source:
      type: inline
      rows:
        - {prompt: "1+1=", chosen: "2", rejected: "x"}
        - {prompt: "2+2=", chosen: "4", rejected: "y"}
    rows_per_step: 2
  actor:
    kind: actor
    model: MODEL
    rollout: {max_new_tokens: 4}
    algorithm: {name: dpo, beta: 0.1}
  start: {kind: reference, model: {type: snapshot, of: actor}}
edges:
  - pairs.pairs -> actor.pairs
  - pairs.pairs -> start.pairs
  - start.log_probs -> actor.reference
mode: offline
schedule: {steps: 1}
hardware: {preset: cpu}
"""
OFTEN = (
    *(
        "llama",
        "gpt2",
        "gemma3",
        "gemma3_text",
        "qwen3_moe",
        "mixtral",
        "lfm2",
        "qwen3_5_text",
        "falcon_h1",
    ),
)
"""What every test session runs."""
RUNS = tuple(
    sorted(
        kind
        for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        if refusal_of({"model_type": kind}) is None
    )
)


class Keeping(SingleBackend):
    """Keeps the model that learned last."""

    model: torch.nn.Module

    def __init__(self, model: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(model, *arguments, **options)
        Keeping.model = model


def check_run(kind: str, run: Callable[..., Any], folder: Path) -> None:
    """Two steps of GRPO, a checkpoint, and an export that transformers loads: what was learned."""
    save_hf(folder / "start", make_model(kind), byte_tokenizer())

    with patch.dict(BACKENDS, single=Keeping):
        ended = run(LOOP.replace("FOLDER", str(folder / "start")))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("actor", "mismatch/max")) < 1e-3
    out = folder / "out"
    told = CliRunner().invoke(app, ["export", str(ended.folder), "actor", str(out)])
    assert told.exit_code == 0, told.output
    exported = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).eval()
    learned = dict(Keeping.model.named_parameters())
    found = dict(exported.named_parameters())
    assert found.keys() == learned.keys()
    assert all(torch.equal(found[name], one) for name, one in learned.items())
    saved = list_checkpoints(ended.folder / "checkpoints")[-1].path
    held = AutoModelForCausalLM.from_pretrained(saved / "actor", dtype=torch.float32).eval()
    start = AutoModelForCausalLM.from_pretrained(folder / "start", dtype=torch.float32).eval()
    ids = torch.arange(12)[None, :]
    with torch.no_grad():
        ours, theirs, before = (
            one(input_ids=ids, use_cache=False).logits for one in (exported, held, start)
        )
    assert torch.equal(ours, theirs)
    if max(ended.metrics("actor", "grad_norm")) > 0:  # else all rows had one score
        assert not torch.equal(ours, before)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", OFTEN)
def test_a_model_of_a_common_type_runs(kind: str, runner: Any, tmp_path: Path) -> None:
    check_run(kind, runner, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in RUNS if kind not in OFTEN])
def test_a_model_of_any_type_runs(kind: str, runner: Any, tmp_path: Path) -> None:
    check_run(kind, runner, tmp_path)


def test_types_are_those_that_transformers_has() -> None:
    assert causal_types() == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert len(RUNS) > 100


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "encoders"),
        ({"model_type": "bart", "is_encoder_decoder": True}, "encoder-decoder"),
        also({"model_type": "t5", "is_encoder_decoder": True}, "encoder-decoder"),
        ({"model_type": "xlnet"}, "attends to later ones"),
        ({"model_type": "fuyu"}, "pictures"),
        ({"model_type": "llava"}, "no causal language model of type `llava`"),
        also({"model_type": "misspelt"}, "no causal language model of type `misspelt`"),
    ],
)
def test_a_model_that_does_not_run_is_refused_by_its_config(
    config: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    spec = parse(LOOP.replace("FOLDER", str(tmp_path))).spec
    assert spec is not None

    found = [one for one in validate(spec, root=tmp_path).diagnostics if one.is_error]

    (refused,) = [one for one in found if one.code == "foreign.architecture"]
    assert said in refused.message
    assert refused.node == "actor"


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "llama"},
        {"model_type": "bert", "is_decoder": True},
        {"model_type": "bert", "architectures": ["BertForSequenceClassification"]},
        {"model_type": "own", "auto_map": {"AutoModelForCausalLM": "own.Own"}},
    ],
)
def test_a_model_that_may_run_is_not_refused(config: dict[str, Any]) -> None:
    assert refusal_of(config) is None


def test_pairs_are_learned_without_the_dropout_of_the_model(runner: Any, tmp_path: Path) -> None:
    save_hf(tmp_path / "start", make_model("gpt2", attn_pdrop=0.3), byte_tokenizer())
    model = f"{{type: pretrained, path: {tmp_path / 'start'}}}"

    ended = runner(PAIRS.replace("MODEL", model))

    assert ended.metrics("actor", "loss")[0] == pytest.approx(math.log(2), abs=1e-5)


def test_pairs_are_learned_without_the_dropout_of_an_adapter(runner: Any) -> None:
    model = "{type: scratch, architecture: tiny-qwen3, lora: {rank: 2, dropout: 0.5}}"

    ended = runner(PAIRS.replace("MODEL", model))

    assert ended.metrics("actor", "loss")[0] == pytest.approx(math.log(2), abs=1e-5)


@pytest.mark.slow
def test_an_adapter_learns_beside_experts(runner: Any, tmp_path: Path) -> None:
    save_hf(tmp_path / "start", make_model("qwen3_moe"), byte_tokenizer())
    text = LOOP.replace("FOLDER", f"{tmp_path / 'start'}, lora: {{rank: 2}}")

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    out = tmp_path / "out"
    told = CliRunner().invoke(app, ["export", str(ended.folder), "actor", str(out)])
    assert told.exit_code == 0, told.output
    merged = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    named = dict(merged.named_parameters())
    assert all(torch.equal(named[name], one) for name, one in ended.group("actor").items())
