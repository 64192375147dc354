"""A whole loop on one GPU: each stage holds there what was foretold of it, and a run that was
stopped goes on from its checkpoint."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.training.conftest import tiny_model
from torch import Tensor

from coloop.models import character_tokenizer, load_weights, save_hf
from coloop.plan.cost import Explanation, explain
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.io import parse

Run = Callable[..., Any]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

SIZES = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 128,
}
"""126M parameters: tensors weigh more than what a process holds beside them."""
LOOP = """
coloop: 1
name: on-one-gpu
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 96}, rows_per_step: 32}
  actor:
    kind: actor
    model: {type: pretrained, path: model}
    rollout: {engine: torch, completions_per_prompt: 8, max_new_tokens: 64, max_num_seqs: 64}
    algorithm: {name: grpo, kl: {coefficient: 0.001, estimator: k3}}
    training: {optimizer: {name: adamw, lr: 0.05, epsilon: 1.0}, micro_batch: 32}
  start: {kind: reference, model: {type: snapshot, of: actor}}
  digit: {kind: reward, source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> digit.rollouts
  - actor.rollouts -> start.rollouts
  - digit.scores -> actor.rewards
  - start.log_probs -> actor.reference
schedule: {steps: 3}
hardware: {preset: 1xH100}
run: {checkpoint_every: 1}
"""
"""Its optimizer does not enlarge rounding: no step is wider than the gradient."""


class Meter:
    """Most bytes of the GPU that each stage had: tensors, and what the process holds beside
    them."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self._before = torch.cuda.memory_allocated()

    def __call__(self, event: dict[str, Any], folder: Path) -> None:
        del folder
        if event["type"] == "stage.started":
            torch.cuda.reset_peak_memory_stats()
        elif event["type"] == "stage.finished":
            free, total = torch.cuda.mem_get_info()
            beside = total - free - torch.cuda.memory_reserved()
            held = torch.cuda.max_memory_allocated() - self._before + beside
            self.held[event["stage"]] = max(self.held.get(event["stage"], 0), held)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """The folder of the loop, with its model."""
    model = tiny_model(vocab_size=len(character_tokenizer()), **SIZES)
    save_hf(tmp_path / "model", model, character_tokenizer())
    del model
    yield tmp_path
    torch.cuda.empty_cache()


def explained(root: Path) -> Explanation:
    parsed = parse(LOOP)
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return explain(parsed.spec, root=root)


def foretold(told: Explanation) -> dict[str, int]:
    """Bytes of the one GPU by stage."""
    [gpu] = told.estimate.gpus
    stages = {stage for part in gpu.parts for stage in part.stages}
    return {
        stage: sum(part.bytes for part in gpu.parts if stage in part.stages) for stage in stages
    }


def test_each_stage_holds_on_a_gpu_what_was_foretold_of_it(runner: Run, root: Path) -> None:
    told, meter = explained(root), Meter()
    low, high = told.memory_band

    ended = runner(LOOP, root=root, on_event=meter, threads=None)

    assert ended.state is RunStateName.FINISHED, ended.error
    stages = foretold(told)
    assert stages.keys() == {"actor.generate", "start.score", "actor.learn", "actor.sync"}
    ratios = {stage: meter.held[stage] / size for stage, size in stages.items()}
    assert all(low <= ratio <= high for ratio in ratios.values()), ratios


def apart(weights: dict[str, Tensor], others: dict[str, Tensor]) -> float:
    """How far weights are from others."""
    squares = [(weights[name] - one).float().square().sum() for name, one in others.items()]
    return float(torch.stack(squares).sum().sqrt())


def test_a_run_on_a_gpu_that_was_stopped_goes_on_from_its_checkpoint(
    runner: Run, root: Path
) -> None:
    """A GPU adds up in no fixed order, so weights are the same as far as the steps are wide."""
    options = {"root": root, "threads": None}
    whole = runner(LOOP, **options)
    begun = load_weights(root / "model")

    stopped = runner(
        LOOP,
        stop_at=lambda event: event["type"] == "stage.finished" and event["step"] == 2,
        **options,
    )
    assert stopped.state is RunStateName.STOPPED
    assert stopped.manifest()["timeline"]["step"] == 1
    resumed = runner(LOOP, resume=stopped, **options)

    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert resumed.manifest()["timeline"]["step"] == 3
    ours, theirs = resumed.group("actor"), whole.group("actor")
    assert apart(ours, theirs) <= 0.01 * apart(theirs, begun)
