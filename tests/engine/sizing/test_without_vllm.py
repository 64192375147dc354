"""vLLM is the engine of open loops on GPUs, unless the machine that has them has no vLLM."""

from pathlib import Path

import pytest

from coloop.errors import BackendMissing
from coloop.plan.compile import compile_plan
from coloop.plan.settings import processor
from coloop.plan.settings.processor import Conditions, Processor, conditions_here
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.workers.rollout import check_engine, vllm_engine

LOOP = """
coloop: 1
name: one-gpu
hardware: {preset: 1xH100}
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 8}
    algorithm: {rewards: {name: dr_grpo}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 1}
"""
PROCESSOR = Processor(cores=2, has_bf16=False, reason="plain")


def engine_of(spec: LoopSpec, *, lacks_vllm: bool) -> tuple[str, str]:
    """The engine of the actor, and why."""
    plan = compile_plan(spec, conditions=Conditions(processor=PROCESSOR, lacks_vllm=lacks_vllm))
    [engine] = plan.weights[0].engines
    reasons = {one.path: one.reason for one in plan.decisions}
    return engine.engine, reasons.get("nodes.actor.rollout.engine", "")


def loop(text: str = LOOP) -> LoopSpec:
    spec = parse(text).spec
    assert spec is not None
    return spec


def test_a_loop_for_gpus_writes_with_torch_where_they_are_and_vllm_is_not() -> None:
    assert engine_of(loop(), lacks_vllm=False)[0] == "vllm"
    engine, reason = engine_of(loop(), lacks_vllm=True)
    assert engine == "torch"
    assert "pip install 'coloop[vllm]'" in reason


def test_an_engine_that_the_loop_names_stays() -> None:
    named = LOOP.replace("{completions", "{engine: vllm, completions")
    assert engine_of(loop(named), lacks_vllm=True) == ("vllm", "")


@pytest.mark.parametrize(
    ("has_gpu", "has_vllm", "lacks"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_a_machine_without_gpus_says_nothing_of_the_one_that_runs_it(
    has_gpu: bool, has_vllm: bool, lacks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "nvidiactl"
    if has_gpu:
        driver.touch()
    monkeypatch.setattr(processor, "GPU_DRIVER", driver)
    monkeypatch.setattr(processor, "find_spec", lambda _: object() if has_vllm else None)

    assert conditions_here().lacks_vllm is lacks


def test_an_engine_that_is_missing_is_told_before_weights_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vllm_engine, "find_spec", lambda _: None)

    check_engine("torch")
    with pytest.raises(BackendMissing, match=r"pip install 'coloop.*rollout.engine: torch"):
        check_engine("vllm")
