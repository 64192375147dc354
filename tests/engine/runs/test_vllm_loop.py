"""Loops whose texts vLLM writes, in a pool of its own or beside those who learn: the tokens are
those of the torch engine, and new weights reach it after each step."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from coloop.models import build_model, save_hf
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.diagnostics import Change
from coloop.spec.io import patch
from coloop.spec.model import ScratchModel

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]

LOOP = """
coloop: 1
name: written-by-vllm
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 64}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3-wide}
    rollout: {engine: vllm, pool: write, completions_per_prompt: 4, max_new_tokens: 6}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: sgd, lr: 0.2}}
  digit: {kind: reward, source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> digit.rollouts
  - digit.scores -> actor.rewards
schedule: {steps: 10}
hardware: {preset: cpu, pools: {main: {workers: 1}, write: {workers: 1}}}
"""


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.ray)])
def cluster(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("local_ray")
    name: str = request.param
    return name


def test_ten_steps_in_a_pool_of_its_own_learn_what_the_torch_engine_would(
    cluster: str, runner: Callable[..., Any]
) -> None:
    by_torch = patch(LOOP, [Change(op="set", path="nodes.actor.rollout.engine", value="torch")])

    ended, other = runner(LOOP, cluster=cluster), runner(by_torch)

    assert ended.state is RunStateName.FINISHED, ended.error
    [weights] = ended.plan()["weights"]
    assert [(one["engine"], one["pool"]) for one in weights["engines"]] == [("vllm", "write")]
    assert len(ended.metrics("actor", "sync/difference")) == 10
    # The trainer's log-probs and vLLM's of the same tokens, in float32.
    assert max(ended.metrics("actor", "mismatch/max")) < 1e-4
    assert ended.metrics("digit", "score/mean") == other.metrics("digit", "score/mean")
    mine, theirs = ended.group("actor"), other.group("actor")
    assert max(float((mine[name] - theirs[name]).abs().max()) for name in mine) < 1e-4


BESIDE = {"nodes.actor.rollout.pool": None, "hardware.pools": {"main": {"workers": 2}}}
SPREAD = {
    "nodes.actor.training.backend": "fsdp2",
    "nodes.actor.training.reshard_after_forward": True,
}
ADAPTED = {"nodes.actor.model.lora": {"rank": 2}}
TENSOR = "nodes.actor.rollout.tensor_parallel"
SHARED = {TENSOR: 2, "hardware.pools": {"main": {"workers": 1}, "write": {"workers": 2}}}
TWICE = BESIDE | SPREAD | {TENSOR: 2, "hardware.pools": {"main": {"workers": 4}}}


@pytest.mark.parametrize(
    "changes",
    [BESIDE, BESIDE | SPREAD, ADAPTED, BESIDE | ADAPTED, SHARED, TWICE],
    ids=["whole", "spread", "adapted-apart", "adapted-beside", "shared-apart", "shared-twice"],
)
def test_engines_beside_learners_and_of_adapters_learn_what_torch_engines_would(
    changes: dict[str, Any], runner: Callable[..., Any], tmp_path: Path
) -> None:
    """Each process has an engine of its own beside its weights: vLLM sees nothing of the group in
    which they learn, and they nothing of its. Of an adapter it gets merged weights. Two processes
    may share an engine, and a pool of four have two such engines."""
    section = ScratchModel(type="scratch", architecture="tiny-qwen3-wide")
    start = build_model(section, seed=0, root=tmp_path)
    save_hf(tmp_path / "start", start.model, start.tokenizer)
    model = {"type": "pretrained", "path": str(tmp_path / "start")}
    changes = {"nodes.actor.model": model, "schedule.steps": 3} | changes
    loop = patch(
        LOOP, [Change(op="set", path=path, value=value) for path, value in changes.items()]
    )
    torch_alone = {"nodes.actor.rollout.engine": "torch", TENSOR: None}
    by_torch = patch(
        loop, [Change(op="set", path=path, value=value) for path, value in torch_alone.items()]
    )

    ended, other = runner(loop), runner(by_torch)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("actor", "mismatch/max")) < 1e-4
    assert ended.metrics("digit", "score/mean") == other.metrics("digit", "score/mean")
    mine, theirs = ended.group("actor"), other.group("actor")
    assert max(float((mine[name] - theirs[name]).abs().max()) for name in mine) < 1e-4
