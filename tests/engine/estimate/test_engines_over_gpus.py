"""Engines over several GPUs: which numbers of GPUs, and large models that are planned with them."""

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.cost.solving import solve
from coloop.plan.cost.ways import ways_of
from coloop.plan.run_check import check_run
from coloop.plan.settings.architecture import shares_heads
from coloop.plan.settings.engines import engine_degrees
from coloop.plan.settings.facts import architecture_of
from coloop.spec.model import PretrainedModel

GIB = 2**30


def arch_of(path):
    return architecture_of(PretrainedModel(type="pretrained", path=path), None)


def large(build, path, hardware, **changes):
    return build(
        nodes={
            "actor": {"model": {"path": path}, "training": {"backend": None}, **changes},
            "start": None,
        },
        edges=[
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
        ],
        hardware={"preset": hardware},
    )


@pytest.mark.parametrize(
    ("path", "gpus", "each", "degrees"),
    [
        ("Qwen/Qwen2.5-32B-Instruct", 8, 8, [1, 2, 4, 8]),  # 40 heads, 8 of keys and values
        ("Qwen/Qwen2.5-7B-Instruct", 8, 8, [1, 2, 4]),  # 28 heads are not divided by 8
        ("meta-llama/Llama-3.1-70B-Instruct", 16, 8, [1, 2, 4, 8]),  # in one machine
        ("meta-llama/Llama-3.1-70B-Instruct", 6, 8, [1, 2]),  # 6 GPUs are not divided by 4
    ],
)
def test_an_engine_takes_gpus_that_divide_its_heads_and_its_pool(path, gpus, each, degrees):
    assert engine_degrees(arch_of(path), gpus, each) == degrees


def test_heads_of_keys_are_copied_where_there_are_fewer_than_gpus():
    seven = arch_of("Qwen/Qwen2.5-7B-Instruct")  # 28 heads, 4 of keys and values

    assert [shares_heads(seven, degree) for degree in (2, 4, 7, 8, 28)] == [
        True,
        True,
        False,  # 4 heads of keys for 7 GPUs
        False,
        True,  # each of the 4 on 7 GPUs
    ]


def test_32b_on_8_gpus_of_80_gb_is_planned_with_engines_over_several_of_them(grpo):
    solution = solve(large(grpo, "Qwen/Qwen2.5-32B-Instruct", "8xH100"))

    assert solution.fits
    assert solution.refusals == ()
    [weights] = compile_plan(solution.spec).weights
    [engine] = weights.engines
    assert engine.tensor_parallel in (2, 4, 8)
    found = solution.after.estimate
    # 32.76e9 parameters in bfloat16 over the GPUs of an engine
    held = 2 * 32.76e9 / engine.tensor_parallel / GIB
    assert all(held < gpu.peak_bytes / GIB < 0.9 * 80 for gpu in found.gpus)
    assert 20 < found.step_seconds < 300


def test_70b_on_16_gpus_of_80_gb_is_planned_as_an_adapter(grpo):
    """With AdamW in float32 its 70.55e9 parameters alone are 16 x 70.55e9 / 16 B = 65.7 GiB a
    GPU."""
    model = {"path": "meta-llama/Llama-3.1-70B-Instruct", "lora": {"rank": 32, "alpha": 64}}
    solution = solve(large(grpo, model["path"], "16xH100", model=model))

    assert solution.fits
    assert solution.refusals == ()
    [weights] = compile_plan(solution.spec).weights
    [engine] = weights.engines
    assert engine.tensor_parallel in (4, 8)
    assert 20 < solution.after.estimate.step_seconds < 300


@pytest.mark.slow
def test_ways_to_train_70b_on_16_gpus_have_times_and_run(grpo):
    spec = large(grpo, "meta-llama/Llama-3.1-70B-Instruct", "16xH100")

    def refusal(other):
        refusals = check_run(other).refusals
        return refusals[0].message if refusals else None

    ways = {way.title: way for way in ways_of(spec, solve(spec), (), refusal=refusal)}

    assert "Train an adapter of actor" in ways
    assert all(way.refusal is None and way.step_seconds is not None for way in ways.values())


def test_engines_have_the_same_gpus_under_any_budget(grpo):
    degrees = set()
    for budget in (0.3, 0.6, 0.9, 1.0):
        spec = large(grpo, "Qwen/Qwen2.5-32B-Instruct", "8xH100")
        spec = spec.model_copy(
            update={"hardware": spec.hardware.model_copy(update={"memory_budget": budget})}
        )
        degrees |= {one.tensor_parallel for one in compile_plan(spec).weights[0].engines}

    assert degrees == {2}  # 65.5 GB of weights in 0.4 x 79 GiB = 33.9 GB a GPU


def test_an_engine_over_two_machines_is_refused(grpo):
    rollout = {"completions_per_prompt": 8, "max_new_tokens": 1024, "tensor_parallel": 16}
    spec = large(grpo, "meta-llama/Llama-3.1-70B-Instruct", "16xH100", rollout=rollout)

    [refused] = [one for one in check_run(spec).refusals if one.field == "rollout.tensor_parallel"]

    assert "`rollout.tensor_parallel: 16` with machines of 8 GPUs" in refused.message
    assert refused.fixes[0].changes[0].value == 8
