"""What is estimated is what runs: hosts are built with the settings that the estimate priced."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.engine.training.conftest import tiny_model

from coloop.plan.compile import compile_plan
from coloop.plan.cost import explain
from coloop.plan.types import Plan
from coloop.plan.unrolled import Unrolled
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.table_sizes import loss_chunk
from coloop.workers.rollout import ENGINES, TorchEngine
from coloop.workers.training import BACKENDS, SingleBackend
from coloop.workers.training.forward import TokenModel

Run = Callable[..., Any]
Text = Callable[..., str]

ROLLOUT = "nodes.actor.rollout"
TRAINING = "nodes.actor.training"
CASES: dict[str, dict[str, Any]] = {
    "all of it open": {},
    "all of it said": {
        f"{TRAINING}.micro_batch": 2,
        f"{TRAINING}.gradient_checkpointing": True,
        f"{TRAINING}.loss_chunk": 64,
        f"{TRAINING}.dtype": "bfloat16",
        f"{ROLLOUT}.max_num_seqs": 3,
    },
    "little memory": {"hardware.memory_budget": 0.02},
    "rows that are shared": {f"{TRAINING}.packing": True},
}


class Seen:
    """Arguments of a run's backend and engines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.backend: dict[str, Any] = {}
        self.updates: list[Any] = []
        self.engines: list[dict[str, Any]] = []
        self.threads: list[int] = []
        seen = self

        class Backend(SingleBackend):
            def __init__(self, model: Any, training: Any, **more: Any) -> None:
                seen.backend = {"training": training, **more}
                seen.backend["vocabulary"] = model.config.vocab_size
                super().__init__(model, training, **more)

            def update(self, loads: Any, training: Any, **more: Any) -> Any:
                seen.updates.append(training)
                return super().update(loads, training, **more)

        def engine(*arguments: Any, **more: Any) -> TorchEngine:
            seen.engines.append(more)
            return TorchEngine(*arguments, **more)

        monkeypatch.setitem(BACKENDS, "single", Backend)
        monkeypatch.setitem(ENGINES, "torch", engine)
        monkeypatch.setattr(torch, "set_num_threads", self.threads.append)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_hosts_are_built_with_what_the_estimate_priced(
    case: str, runner: Run, tiny: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tiny("grpo-arithmetic", {"schedule.phases.0.steps": 1, **CASES[case]})
    spec = parse(text).spec
    assert spec is not None
    unrolled = Unrolled(spec)
    settings = unrolled.settings()
    told = {one.path: one.value for one in explain(spec, unrolled).decisions}
    planned = {one.path: one.value for one in compile_plan(spec, unrolled).decisions}
    priced = settings.memory.updates["actor"].settings
    machine, [engine] = settings.survey.machine, settings.survey.engines
    seen = Seen(monkeypatch)

    ended = runner(text, threads=None)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert told == planned
    for training in (seen.backend["training"], *seen.updates):
        assert training.gradient_checkpointing == priced.gradient_checkpointing
        assert training.loss_chunk == priced.loss_chunk
        if training.micro_batch is not None:
            assert training.micro_batch == priced.micro_batch
    assert seen.updates
    assert seen.backend["tokens_at_once"] == priced.tokens_at_once
    assert seen.backend["is_packed"] == settings.survey.updates["actor"].packing
    assert seen.backend["is_packed"] is (case == "rows that are shared")
    assert seen.backend["dtypes"] == settings.survey.dtypes["actor"]
    assert {one["max_num_seqs"] for one in seen.engines} == {engine.max_sequences}
    assert set(seen.threads) == {machine.pool("main").threads}
    written = Plan.model_validate_json((ended.folder / "plan.json").read_text(encoding="utf-8"))
    assert [one.threads_per_worker for one in written.pools] == [machine.pool("main").threads]
    if case == "all of it open":
        assert priced.loss_chunk == loss_chunk(seen.backend["vocabulary"], on_cpu=True)
        assert priced.tokens_at_once == 4_096
        assert planned[f"{TRAINING}.micro_batch"] == "4096 tokens"
    if case == "little memory":
        assert priced.tokens_at_once < 4_096
        assert priced.gradient_checkpointing is True


QWEN_WORDS = 151_936
CHUNK_ON_A_GPU = 1_766  # 2**28 logits at once // 151,936 words


def on_one_gpu(text: str) -> LoopSpec:
    """The quick start with a model of 151,936 words on one GPU."""
    for before, after in {
        "{type: scratch, architecture: tiny-qwen3}": "{type: scratch, architecture: qwen2.5-0.5b}",
        "hardware: {preset: cpu}": "hardware: {preset: 1xH100}",
    }.items():
        assert before in text
        text = text.replace(before, after)
    spec = parse(text).spec
    assert spec is not None
    return spec


def test_plan_estimate_and_update_hold_as_many_logits_on_a_gpu(tiny: Text) -> None:
    spec = on_one_gpu(tiny("grpo-arithmetic"))
    unrolled = Unrolled(spec)
    path = f"{TRAINING}.loss_chunk"

    planned = {one.path: one.value for one in compile_plan(spec, unrolled).decisions}
    told = {one.path: one.value for one in explain(spec, unrolled).decisions}
    priced = unrolled.settings().memory.updates["actor"].settings
    model = tiny_model(vocab_size=QWEN_WORDS, hidden_size=8, num_hidden_layers=1)
    learner = TokenModel(model, device=torch.device("cuda"))

    assert planned[path] == CHUNK_ON_A_GPU
    assert told[path] == CHUNK_ON_A_GPU
    assert priced.loss_chunk == CHUNK_ON_A_GPU
    assert learner._chunk_size() == CHUNK_ON_A_GPU
    assert TokenModel(model)._chunk_size() == loss_chunk(QWEN_WORDS, on_cpu=True)
