"""What is drawn and checked only: refused by name, each with its place, never by a crash."""

import pytest
from tests.engine.smallest import GRPO

from coloop.plan.compile import compile_plan
from coloop.plan.run_check import check_runs
from coloop.spec.io import parse, patch

REFUSALS = [
    (
        "algorithm: {name: grpo}",
        "algorithm: {rewards: {name: grpo}, pairs: {name: dpo, gamma: 0.5}}",
        "`gamma: 0.5` with the loss `sigmoid`",
        "algorithm.pairs.gamma",
    ),
    ("exact.scores -> actor.rewards", "exact.check -> actor.tools", "handles", "edges.2"),
    (
        "{type: task, task: arithmetic}",
        "{type: task, task: images}, columns: {images: figure}",
        "images",
        "columns.images",
    ),
    (
        "algorithm: {name: grpo}",
        "algorithm: {rewards: {name: grpo}, pairs: {name: kto, label_smoothing: 0.1}}",
        "`label_smoothing: 0.1` with the loss `kto`",
        "algorithm.pairs.label_smoothing",
    ),
    (
        "algorithm: {name: grpo}",
        "algorithm: {name: grpo, gae_lambda: 0.5}",
        "`gae_lambda: 0.5` with the advantage `group_mean_std`, which does not use it",
        "algorithm.gae_lambda",
    ),
    (
        "algorithm: {name: grpo}",
        "algorithm: {rewards: [{name: grpo}, {name: grpo, whiten_deviation: population}]}",
        "`whiten_deviation: population` with `whiten: false`, which does not use it",
        "algorithm.rewards.1.whiten_deviation",
    ),
    (
        "training: {",
        "training: {dtype: float16, ",
        "`training.dtype: float16`",
        "training.dtype",
    ),
]


def test_the_small_loop_runs() -> None:
    spec = parse(GRPO).spec
    assert spec is not None

    assert check_runs(spec) == []


@pytest.mark.parametrize(("old", "new", "what", "field"), REFUSALS)
def test_each_thing_for_later_compiles_and_is_refused_by_name(
    old: str, new: str, what: str, field: str | None
) -> None:
    parsed = parse(GRPO.replace(old, new))
    assert parsed.spec is not None, parsed.diagnostics

    compile_plan(parsed.spec)

    first = check_runs(parsed.spec)[0]
    assert first.code == "run.not_yet_runnable"
    assert what in first.message
    assert field is None or first.field == field


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "max_new_tokens: 4}",
            'max_new_tokens: 4, engine: remote, url: "http://localhost:1/v1"}',
            "`rollout.engine: remote` of `actor`, which learns",
        ),
        ("training: {", "training: {backend: megatron, ", "training backend `megatron`"),
    ],
)
def test_what_plans_but_does_not_run_here_is_refused_by_the_run(
    old: str, new: str, what: str
) -> None:
    spec = parse(GRPO.replace(old, new)).spec
    assert spec is not None

    compile_plan(spec)

    assert what in check_runs(spec)[0].message


PAIR = GRPO.replace("{preset: cpu}", "{preset: cpu, pools: {main: {workers: 2}}}")


def test_a_pool_of_several_processes_trains_with_a_backend_that_spreads() -> None:
    spec = parse(PAIR).spec
    assert spec is not None

    plan = compile_plan(spec)

    assert check_runs(spec, plan) == []
    assert plan.weights[0].backend == "fsdp2"
    [decision] = [one for one in plan.decisions if one.path.endswith("training.backend")]
    assert decision.reason == "the 2 processes of its pool learn together"
    assert any("pool main: 2 processes on the CPU" in line for line in plan.explain)


@pytest.mark.parametrize(
    ("old", "new", "states", "reason"),
    [
        ("", "", "whole", "nothing is gathered, and gradients are all-reduced once a step"),
        (
            "training: {",
            "training: {backend: fsdp2, reshard_after_forward: true, ",
            "spread",
            "`reshard_after_forward` applies to gathered weights",
        ),
        (
            "training: {",
            "training: {tensor_parallel: 2, ",
            "spread",
            "processes that split layers hold a part of each",
        ),
        (
            "architecture: tiny-qwen3",
            "architecture: qwen2.5-7b",
            "spread",
            "unsharded they would take 141.9 GiB in each process",
        ),
        (
            "{preset: cpu, pools: {main: {workers: 2}}}",
            "{preset: 8xH100}",
            "spread",
            "8 GPUs together have enough memory",
        ),
    ],
)
def test_where_model_states_lie_is_decided_with_a_reason(
    old: str, new: str, states: str, reason: str
) -> None:
    spec = parse(PAIR.replace(old, new)).spec
    assert spec is not None

    plan = compile_plan(spec)

    [decision] = [one for one in plan.decisions if one.path == "nodes.actor.states"]
    assert (decision.value, decision.reason) == (states, reason)
    update = plan.weights[0].update
    assert update is not None
    assert update.states == states


def test_a_backend_of_one_process_is_refused_in_a_pool_of_several() -> None:
    text = PAIR.replace("training: {", "training: {backend: single, ")
    spec = parse(text).spec
    assert spec is not None

    [refusal] = check_runs(spec)

    assert (refusal.node, refusal.field) == ("actor", "training.backend")
    assert (
        "in pool `main` with 2 processes; `fsdp2` and `deepspeed` train in all" in refusal.message
    )
    mended = parse(patch(text, refusal.fixes[0].changes)).spec
    assert mended is not None
    assert check_runs(mended) == []


def test_ranks_share_the_layers_of_a_dense_model() -> None:
    spec = parse(PAIR.replace("training: {", "training: {tensor_parallel: 2, ")).spec
    assert spec is not None

    plan = compile_plan(spec)

    assert check_runs(spec, plan) == []
    update = plan.weights[0].update
    assert update is not None
    assert (update.backend, update.tensor_parallel) == ("fsdp2", 2)
    assert any("2 processes split each layer while they learn" in line for line in plan.explain)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "architecture: tiny-qwen3",
            "architecture: gemma-2-2b",
            "type `gemma2`; supported types: `llama`",
        ),
        (
            "{type: scratch, architecture: tiny-qwen3}",
            "{type: pretrained, path: Qwen/Qwen3-0.6B, lora: {rank: 4}}",
            "with an adapter (`model.lora`), whose layers cannot be split",
        ),
        ("training: {", "training: {backend: deepspeed, ", "with `deepspeed`, which does not use"),
    ],
)
def test_layers_that_ranks_cannot_share_are_refused(old: str, new: str, what: str) -> None:
    text = PAIR.replace("training: {", "training: {tensor_parallel: 2, ").replace(old, new)
    spec = parse(text).spec
    assert spec is not None

    [refusal] = check_runs(spec)

    assert (refusal.node, refusal.field) == ("actor", "training.tensor_parallel")
    assert what in refusal.message
    if "deepspeed" not in new:
        assert refusal.hint == "leave it unset: `fsdp2` shards weights without it"
        mended = parse(patch(text, refusal.fixes[0].changes)).spec
        assert mended is not None
        assert check_runs(mended) == []
