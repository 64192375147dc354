"""Numbers before launch, each against what it is made of: adapters, degrees of parallelism,
gradients that wait, widths of engines, processors, and loops that do not fit."""

import pytest
from tests.engine.estimate.conftest import parts_of, stage_of

from coloop.plan.cost import estimate, explain
from coloop.plan.cost.solving import fit, solve
from coloop.plan.cost.ways import USUAL, look_for_ways, ways_of
from coloop.plan.run_check import check_run
from coloop.plan.settings.cores import Core, written_seconds
from coloop.plan.settings.facts import architecture_of
from coloop.plan.settings.processor import Processor
from coloop.spec.model import ScratchModel
from coloop.spec.paths import apply_overrides
from coloop.spec.table_sizes import TableSize

GIB = 2**30
LORA = {"model": {"lora": {"rank": 16}}}
TARGETS = 40_370_176
"""Parameters of an adapter of rank 16 on all matrices of Qwen2.5-7B: 28 layers."""
BASE = 7_615_616_512


# 4.1 adapters: who scores


def test_a_reference_on_frozen_weights_shares_the_rows_among_all_gpus(grpo):
    whole, adapted = estimate(grpo()), estimate(grpo(nodes={"actor": LORA}))

    before, after = (stage_of(one, "start.score").seconds for one in (whole, adapted))
    assert after == pytest.approx(before, rel=0.2)
    assert adapted.bottleneck != "start.score"


def test_a_learner_of_one_process_has_one_gpu(grpo):
    alone = {"actor": {"training": {"backend": "single"}}}
    one = stage_of(estimate(grpo(nodes=alone, hardware={"preset": "1xH100"})), "actor.learn")
    eight = stage_of(estimate(grpo(nodes=alone)), "actor.learn")

    assert (eight.seconds or 0) == pytest.approx(one.seconds or 0, rel=0.2) or eight.seconds is None


# 4.2 adapters: nothing is gathered in one process


def test_an_adapter_in_one_process_gathers_nothing(grpo):
    spec = grpo(
        nodes={"actor": LORA | {"training": {"backend": "single"}}, "start": None},
        edges=[
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
        ],
        hardware={"preset": "1xH100"},
    )
    gpu = estimate(spec).gpus[0]
    learning = [p for p in gpu.parts if p.part == "transfer" and "actor.learn" in p.stages]

    assert sum(part.bytes for part in learning) == 0


def test_an_adapter_whose_base_is_spread_over_one_gpu_has_one_copy_of_the_embedding(grpo):
    """torch's `fully_shard` copies what it uses for one rank as for several; embedding and head,
    which are one matrix here, stay until the backward pass
    (`training/test_memory_of_ranks`)."""
    model = {"path": "Qwen/Qwen3-4B", "lora": {"rank": 16}}
    spec = grpo(
        nodes={"actor": {"model": model, "training": {"backend": "fsdp2"}}},
        hardware={"preset": "1xH100"},
    )
    gpu = estimate(spec).gpus[0]
    learning = [p for p in gpu.parts if p.part == "transfer" and "actor.learn" in p.stages]

    assert sum(part.bytes for part in learning) == 151_936 * 2560 * 2  # 741.9 MiB


# 4.3 `model.dtype: float32` under an adapter


def _resting(found):
    return sum(
        part.bytes
        for part in found.gpus[0].parts
        if part.part == "weights" and part.node == "actor" and "actor.learn" in part.stages
    )


def test_frozen_weights_in_float32_take_four_bytes(grpo):
    one = {"preset": "1xH200"}
    half = grpo(nodes={"actor": LORA}, hardware=one)
    full = grpo(
        nodes={"actor": {"model": {"lora": {"rank": 16}, "dtype": "float32"}}}, hardware=one
    )

    more = _resting(estimate(full)) - _resting(estimate(half))
    assert more == pytest.approx(2 * BASE, rel=0.15)  # embeddings are in float32 either way


# 4.4 context and expert parallel


def _learn_states(grpo, **training):
    nodes = {"actor": {"training": {"backend": "fsdp2", **training}}}
    gpu = estimate(grpo(nodes=nodes)).gpus[0]
    return parts_of(gpu, "weights", "actor"), parts_of(gpu, "optimizer", "actor")


@pytest.mark.parametrize("degree", [2, 4, 8])
def test_states_are_spread_over_those_who_share_a_text_too(grpo, degree):
    one, several = _learn_states(grpo), _learn_states(grpo, context_parallel=degree)

    assert several[0] == pytest.approx(one[0], rel=0.01)


@pytest.mark.parametrize("backend", ["fsdp2", "deepspeed", "megatron"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_peak_does_not_rise_with_the_ranks_that_share_a_text(grpo, backend, checkpointing):
    def peaks(degree):
        training = {
            "backend": backend,
            "context_parallel": degree,
            "micro_batch": 8,
            "gradient_checkpointing": checkpointing,
        }
        gpu = estimate(grpo(nodes={"actor": {"training": training}})).gpus[0]
        learning = sum(part.bytes for part in gpu.parts if "actor.learn" in part.stages)
        return gpu.peak_bytes, learning

    whole, learning = zip(*(peaks(degree) for degree in (1, 2, 4, 8)), strict=True)
    assert list(whole) == sorted(whole, reverse=True)
    assert list(learning) == sorted(learning, reverse=True)
    assert learning[0] > learning[1]


def test_experts_are_spread_over_the_ranks_that_share_them(grpo):
    def weights(degree):
        model = {"path": "Qwen/Qwen3-30B-A3B"}
        training = {"backend": "megatron", "expert_parallel": degree}
        spec = grpo(nodes={"actor": {"model": model, "training": training}})
        return next(
            part.bytes
            for part in estimate(spec).gpus[0].parts
            if (part.node, part.part) == ("actor", "weights")
        )

    routed = 48 * 128 * 3 * 2048 * 768  # of 30,532,122,624 parameters
    rest = 30_532_122_624 - routed
    assert weights(1) == pytest.approx(2 * 30_532_122_624, rel=1e-6)
    assert weights(4) == pytest.approx(2 * (rest + routed / 4), rel=1e-6)
    assert weights(8) == pytest.approx(2 * (rest + routed / 8), rel=1e-6)


# 4.5 gradients of earlier micro-batches


def test_gradients_that_wait_are_there_at_the_loss(grpo):
    def at_loss(mini_batch):
        training = {
            "mini_batch": mini_batch,
            "micro_batch": 1,
            "gradient_checkpointing": True,
            "backend": "fsdp2",
            "loss_chunk": 1 << 20,  # whole logits: the peak is at the loss
        }
        spec = grpo(
            nodes={
                "actor": {
                    "training": training,
                    "rollout": {"max_new_tokens": 8192},
                }
            }
        )
        gpu = estimate(spec).gpus[0]
        stages = {stage for part in gpu.parts for stage in part.stages if stage == "actor.learn"}
        assert stages
        return sum(
            part.bytes
            for part in gpu.parts
            if part.part == "gradients" and part.stages == ("actor.learn",)
        )

    assert at_loss(8) < BASE * 4 / 8 / 2
    assert at_loss(64) == pytest.approx(BASE * 4 / 8, rel=1e-6)


# 4.6 engines read weights at their own width


def test_narrower_weights_are_written_with_faster(grpo):
    def seconds(quantization):
        spec = grpo(
            nodes={
                "actor": {
                    "model": {"quantization": quantization, "lora": {"rank": 16}},
                    "rollout": {"completions_per_prompt": 1, "max_new_tokens": 4096},
                },
                "problems": {"rows_per_step": 8},
            }
        )
        return stage_of(estimate(spec), "actor.generate").seconds

    bf16, fp8, nf4 = seconds(None), seconds("fp8"), seconds("nf4")
    assert nf4 < fp8 < bf16
    assert bf16 / fp8 > 1.2


# 4.7 processors


@pytest.mark.parametrize(
    ("flags", "allowed", "share"),
    [
        ("fma avx avx2 avx512f", "", 1.0),
        ("fma avx avx2 avx512f", "AVX2", 0.3),
        ("fma avx avx2", "", 0.3),
        ("sse4_1", "", 0.08),
        ("", "", 1.0),
    ],
)
def test_products_follow_the_instructions(tmp_path, monkeypatch, flags, allowed, share):
    from coloop.plan.settings import processor

    file = tmp_path / "cpuinfo"
    file.write_text(f"processor : 0\nflags : {flags}\n" if flags else "", encoding="utf-8")
    monkeypatch.setattr(processor, "CPU_INFO", file)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", allowed)

    assert processor.processor_here().product_share == share


def test_weights_that_no_cache_holds_are_read_for_every_token():
    core = Core(flops=30e9, threads=1, is_half=False, crowding=1.0)
    arch = architecture_of(ScratchModel(type="scratch", architecture="tiny-qwen3"))
    rows = TableSize(rows=1, prompt=1, written=101, written_max=101)

    held = written_seconds(core, arch, 1e6, rows, at_once=1, is_packed=False, held=4e6)
    streamed = written_seconds(core, arch, 1e6, rows, at_once=1, is_packed=False, held=840e6)

    assert streamed - held == pytest.approx(100 * 0.1, rel=0.01)


def test_a_processor_without_wide_instructions_is_slower():
    plain = Processor(cores=1, has_bf16=False, reason="plain")

    assert plain.product_share == 1.0


def test_a_run_and_its_prediction_count_the_same_tokens(grpo):
    learn = stage_of(estimate(grpo()), "actor.learn")

    completions = 128 * 8 * 2 * 1024**0.68
    assert learn.tokens_per_second * learn.seconds == pytest.approx(completions)


def test_a_short_phase_before_a_long_one_has_a_time_of_its_own():
    from coloop.spec import presets
    from coloop.spec.io import parse

    found = explain(parse(presets.load_loop_text("grpo-arithmetic")).spec)
    warm_up, rl = found.phases

    assert warm_up.step_seconds < 0.6 * rl.step_seconds


# 4.8 what does not fit


def _large(grpo, preset="8xH100", **model):
    path = {"path": "Qwen/Qwen2.5-32B-Instruct", **model}
    return grpo(
        nodes={"actor": {"model": path, "training": {"backend": None}}},
        hardware={"preset": preset},
    )


def test_what_does_not_fit_has_no_time(grpo):
    found = estimate(_large(grpo))
    learn = stage_of(found, "actor.learn")

    assert found.gpus[0].fits is False
    assert found.step_seconds is None
    assert found.bottleneck == ""
    assert learn.seconds is None
    assert learn.tokens_per_second is None
    assert "does not fit" in learn.reason


def test_an_engine_without_a_cache_has_no_time(grpo):
    nodes = {"actor": {"rollout": {"gpu_memory_utilization": 0.1}}}
    found = estimate(grpo(nodes=nodes))
    writing = stage_of(found, "actor.generate")

    assert found.rollout == {}
    assert writing.seconds is None
    assert "cache of 0 tokens" in writing.reason
    assert found.gpus[0].fits is False
    assert "cache of 0 tokens" in found.gpus[0].reason


@pytest.mark.parametrize("solver", [fit, solve])
def test_an_answer_that_fails_leaves_the_loop_as_it_is(grpo, solver):
    spec = _large(grpo)
    found = solver(spec)

    assert not found.fits
    assert found.changes == ()
    assert found.spec == spec
    assert found.over_bytes == max(gpu.peak_bytes - gpu.usable_bytes for gpu in estimate(spec).gpus)
    assert found.least_over_bytes <= found.over_bytes


@pytest.mark.sample(6)
@pytest.mark.parametrize("preset", ["8xH100", "16xH100", "32xH100"])
@pytest.mark.parametrize("budget", [1.0, 0.8, 0.5])
@pytest.mark.parametrize("solver", [fit, solve])
def test_what_a_solver_says_is_what_the_loop_then_costs(grpo, solver, budget, preset):
    spec = _large(grpo, preset)
    found = solver(spec, budget_fraction=budget)

    written = [one for one in found.changes if getattr(one, "is_written", True)]
    again = estimate(apply_overrides(spec, {one.path: one.new for one in written}))
    assert again.fits == found.fits
    assert [gpu.peak_bytes for gpu in again.gpus] == [
        gpu.peak_bytes for gpu in found.after.estimate.gpus
    ]


def test_seventy_billion_on_sixteen_gpus_have_a_way(grpo):
    path = {"path": "meta-llama/Llama-3.1-70B-Instruct"}
    spec = grpo(
        nodes={"actor": {"model": path, "training": {"backend": None}}},
        hardware={"preset": "16xH100"},
    )
    failed = solve(spec)
    ways = ways_of(spec, failed, ())

    assert not failed.fits
    assert ways
    for way in ways:
        changed = {one.path: one.new for one in way.changes if one.is_written}
        again = estimate(apply_overrides(spec, changed))
        assert again.fits == (way.over_bytes == 0)
        assert (way.step_seconds is None) == (way.over_bytes > 0)


@pytest.mark.slow
def test_ways_that_a_run_refuses_all_say_so(grpo):
    path = {"path": "meta-llama/Llama-3.1-70B-Instruct"}
    rollout = {"tensor_parallel": 16}
    spec = grpo(
        nodes={"actor": {"model": path, "rollout": rollout, "training": {"backend": None}}},
        hardware={"preset": "16xH100"},
    )

    def refusal(other):
        refusals = check_run(other).refusals
        return refusals[0].message if refusals else None

    ways = ways_of(spec, solve(spec), (), refusal=refusal)

    assert "Run on 16xH200" in {one.title for one in ways}
    for way in ways:
        changed = {one.path: one.new for one in way.changes if one.is_written}
        assert way.refusal == refusal(apply_overrides(spec, changed))
        assert "with machines of 8 GPUs" in way.refusal


def test_a_way_that_a_run_refuses_is_none(grpo):
    spec = _large(grpo)
    failed = solve(spec)
    names = {one.title for one in ways_of(spec, failed, ())}

    def refusal(other):
        return "no" if other.hardware.preset != "8xH100" else None

    assert names
    taken = ways_of(spec, failed, (), refusal=refusal)
    assert all("Run on" not in one.title for one in taken)
    assert all(one.refusal is None for one in taken)


def test_who_has_an_adapter_is_not_offered_one(grpo):
    spec = _large(grpo, "1xH100", lora={"rank": 16})
    failed = solve(spec)

    assert not failed.fits
    assert not any("adapter" in one.title for one in ways_of(spec, failed, ()))


def test_every_usual_way_is_listed_or_has_a_reason(grpo):
    many, one = _large(grpo), _large(grpo, "1xH100", lora={"rank": 16})
    for spec, usual in ((many, set(USUAL)), (one, set(USUAL) - {"adapter"})):
        found = look_for_ways(spec, solve(spec), ())
        listed = {way.usual for way in found.ways} - {None}
        ruled_out = {other.usual: other.reason for other in found.ruled_out}
        assert listed | set(ruled_out) == usual
        assert not listed & set(ruled_out)
        assert all(ruled_out.values())
        for way in found.ways:
            assert way.peak_bytes is not None
    assert ruled_out["pools"] == ruled_out["engines"] == "there is one GPU"


def test_a_usual_way_that_a_run_refuses_says_why(grpo):
    spec = _large(grpo)

    def refusal(other):
        return "no such machine here" if other.hardware.preset != "8xH100" else None

    found = look_for_ways(spec, solve(spec), (), refusal=refusal)
    ruled_out = {other.usual: other for other in found.ruled_out}
    assert ruled_out["gpus"].reason == "no such machine here"
    assert ruled_out["gpus"].title.startswith("Run on")


def test_ways_that_only_come_closer_say_how_far(grpo):
    spec = _large(grpo, "1x4090")
    failed = solve(spec)

    for way in ways_of(spec, failed, ()):
        assert way.over_bytes < failed.least_over_bytes
