"""Seconds of a pass over tokens on a GPU, each number from what it is made of."""

import pytest
from tests.engine.estimate.conftest import stage_of

from coloop.plan.cost import estimate
from coloop.plan.settings.architecture import architecture_from_config, count_parameters
from coloop.plan.settings.passes import (
    Kernels,
    Pass,
    attention_flops,
    attention_speed,
    count_tensors,
    layers_traffic,
    product_flops,
    token_seconds,
)
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets

H100, A100, B200 = map(presets.gpu_facts, ("H100-80GB", "A100-80GB", "B200-180GB"))
DECODED = 8_030_261_248 - 128_256 * 4096
"""Parameters of Llama-3.1-8B in products: all but the input embedding."""
HEAD = 128_256 * 4096
LARGE = 1e9
"""Tokens at once beside which no launch counts."""


def _arch(name):
    return architecture_from_config(presets.architecture(name), name)


def _seconds(name="llama-3.1-8b", gpu=H100, kernels=None, **work):
    arch = _arch(name)
    given = Pass(**{"length": 8192, "micro_batch": LARGE} | work)
    return token_seconds(arch, count_parameters(arch), gpu, kernels or Kernels(), given)


def test_products_reach_a_share_of_the_peak():
    assert product_flops(H100) == pytest.approx(989e12 * 0.40 * 1.35)
    assert product_flops(A100) == pytest.approx(312e12 * 0.50 * 1.35)


@pytest.mark.parametrize(
    ("work", "layers", "head"),
    [
        ({}, 6, 6),
        ({"recomputed": 1.0}, 8, 6),
        ({"recomputed": 0.5}, 7, 6),
        ({"trains_all": False}, 4, 4),
        ({"trains_all": False, "recomputed": 1.0}, 6, 4),
        ({"has_backward": False}, 2, 2),
        ({"has_backward": False, "recomputed": 1.0}, 2, 2),
    ],
)
def test_a_matrix_is_multiplied_forward_again_and_for_two_gradients(work, layers, head):
    """FLOPs a token and parameter: 2 forward, 2 if recomputed, 2 for the inputs, 2 for weights that
    learn. The head is not recomputed."""
    flops = layers * (DECODED - HEAD) + head * HEAD

    assert _seconds(**work).products == pytest.approx(flops / (989e12 * 0.54))


def test_products_in_fp8_are_faster_and_cast_their_inputs():
    plain, narrow = _seconds(), _seconds(is_fp8=True)

    assert narrow.products == pytest.approx(plain.products / 1.8)
    inputs, outputs = 2 * 4096 + 4096 + 14_336, 4096 + 2 * 1024 + 2 * 4096 + 2 * 14_336
    cast = 5 * 32 * (inputs + 2 * outputs)
    assert narrow.traffic - plain.traffic == pytest.approx(cast / (0.85 * 3350e9))


def test_attention_covers_half_of_the_text_and_windows_less():
    assert attention_flops(_arch("llama-3.1-8b"), 8192) == 2 * 4096 * 8192 * 32
    gemma = _arch("gemma-2-2b")  # 26 layers of 8 x 256, 13 of them with a window of 4,096
    assert attention_flops(gemma, 16_384) == pytest.approx(
        4 * 2048 * (13 * 8192 + 13 * 4096 * (1 - 4096 / 32_768))
    )


def test_attention_of_compressed_keys_has_their_widths():
    deepseek = _arch("deepseek-v3")  # 128 heads, keys of 128 + 64 and values of 128

    assert attention_flops(deepseek, 4096) == 4 * 128 * (128 + 64 + 128) / 2 * 61 * 2048


@pytest.mark.parametrize(
    ("gpu", "attention", "flops"),
    [
        (A100, "flash2", 0.62 * 312e12),
        (H100, "flash2", 360e12),
        (H100, "native", 0.52 * 989e12),
        (B200, "native", 0.52 * 2250e12),
        (A100, "native", 0.62 * 312e12),
        (H100, "triton", 0.55 * 360e12),
    ],
)
def test_kernels_of_attention_have_a_speed_on_each_gpu(gpu, attention, flops):
    assert attention_speed(gpu, attention) == pytest.approx(flops)


@pytest.mark.parametrize(
    ("work", "times"),
    [({}, 3.5), ({"recomputed": 1.0}, 4.5), ({"has_backward": False}, 1.0)],
)
def test_attention_backward_is_two_and_a_half_times_forward(work, times):
    forward = 2 * 4096 * 8192 * 32

    assert _seconds(**work).attention == pytest.approx(times * forward / 360e12)


def test_traffic_is_counted_by_layer():
    arch = _arch("llama-3.1-8b")
    fused = 2 * 4 * 4096 + 12 * 4096 + 4 * (4096 + 1024) + 6 * 14_336
    eager = 2 * 36 * 4096 + 12 * 4096 + 20 * (4096 + 1024) + 10 * 14_336

    assert layers_traffic(arch, Kernels(is_fused=True)) == 32 * fused == 32 * 188_416
    assert layers_traffic(arch, Kernels()) == 32 * eager == 32 * 589_824
    moved = 3 * 32 * eager + 40 * 128_256
    assert _seconds().traffic == pytest.approx(moved / (0.85 * 3350e9))


def test_tokens_go_to_their_experts_and_back():
    arch = _arch("qwen3-30b-a3b")
    none, some = (
        layers_traffic(arch, Kernels(is_fused=True, routed_bytes=size)) for size in (0.0, 16.0)
    )

    assert some - none == 48 * 16 * 2048 * 8


def test_a_head_in_float32_is_multiplied_twice_outside_of_tensor_cores():
    plain, wide = _seconds(), _seconds(kernels=Kernels(has_float32_head=True))

    assert wide.products - plain.products == pytest.approx(2 * 2 * HEAD / (989e12 / 16))
    assert B200.fp32_flops == 75e12


def test_quantized_weights_are_unpacked_for_each_pass():
    packed = 4e9
    plain = _seconds(trains_all=False, micro_batch=1024)
    narrow = _seconds(trains_all=False, micro_batch=1024, packed_bytes=packed)

    unpacked = 2 * (packed + 2 * 8_030_261_248) / 1024  # forward and backward
    assert narrow.traffic - plain.traffic == pytest.approx(unpacked / (0.85 * 3350e9))


def test_few_tokens_take_as_long_as_it_takes_to_launch_their_kernels():
    """0.9 ms a layer forward and 1.5 times that backward."""
    assert _seconds(micro_batch=64).total * 64 == pytest.approx(32 * 0.9e-3 * 2.5)
    fused = _seconds(micro_batch=64, kernels=Kernels(is_fused=True))
    assert fused.launches * 64 == pytest.approx(32 * 0.3e-3 * 2.5)
    experts = _seconds("qwen3-30b-a3b", micro_batch=64, kernels=Kernels(is_fused=True))
    assert experts.launches * 64 == pytest.approx(48 * (0.3e-3 + 3.2e-3) * 2.5)


def test_each_expert_has_tensors_of_its_own():
    assert count_tensors(_arch("llama-3.1-8b")) == 32 * (4 + 2 + 3) + 3
    assert count_tensors(_arch("qwen3-30b-a3b")) == 48 * (4 + 2 + 2 + 3 * 128 + 1) + 3


# Communication


def _machine(grpo, **hardware):
    return Unrolled(grpo(hardware={"preset": None, **hardware})).settings().survey.machine


def test_machines_are_connected_by_a_network_card_for_each_gpu(grpo):
    machine = _machine(grpo, nodes=2, gpus_per_node=8, gpu="H100-80GB")

    assert machine.link(8) == 450e9
    assert machine.link(16) == pytest.approx(8 * 0.85 * 50e9)
    assert machine.link(2, beside=8) == pytest.approx(0.85 * 50e9)
    assert machine.link(4, beside=4) == pytest.approx(2 * 0.85 * 50e9)
    assert machine.is_one_machine(8)
    assert not machine.is_one_machine(9)


def _learned(grpo, model="meta-llama/Llama-3.1-8B", hardware=None, rows=64, **training):
    """The stage of an SFT loop over rows of 4,096 tokens."""
    spec = grpo(
        nodes={
            "problems": {
                "source": {"type": "hub", "path": "rows", "task": None},
                "tokens": {"mean": 4096, "max": 4096},
                "rows_per_step": rows,
            },
            "actor": {
                "model": {"path": model},
                "algorithm": {"rewards": None, "demonstrations": {"name": "sft"}},
                "rollout": None,
                "training": {
                    "mini_batch": None,
                    "micro_batch": 1,
                    "gradient_checkpointing": False,
                    "backend": "megatron",
                    **training,
                },
            },
            "start": None,
            "exact": None,
        },
        edges=["problems.rows -> actor.demonstrations"],
        hardware=hardware or {"preset": "8xH200"},
    )
    return Unrolled(spec).settings()


def _clock(settings):
    from coloop.plan.settings.throughput import Clock

    return Clock(settings.survey, settings.memory)


def test_a_pipeline_waits_for_its_first_and_last_stage(grpo):
    """32 rows for each of two ranks in four stages: (32 + 3) / 32."""
    settings = _learned(grpo, pipeline_parallel=4)
    update = settings.memory.updates["actor"]

    assert _clock(settings)._bubble(update) == pytest.approx(1 + 3 / 32)


def test_megatron_reduces_its_gradients_once_a_step(grpo):
    """Four bytes of gradient and two of weights for 7 / 8 of the parameters, for any number of
    micro-batches."""
    once, often = (_learned(grpo, rows=rows) for rows in (8, 64))
    moved = (4 + 2) * 8_030_261_248 * 7 / 8 / 450e9

    for settings in (once, often):
        update = settings.memory.updates["actor"]
        assert _clock(settings)._moved_seconds(update) == pytest.approx(moved)


def test_fsdp_gathers_twice_and_reduces_for_each_micro_batch(grpo):
    settings = _learned(grpo, rows=64, backend="fsdp2")
    update = settings.memory.updates["actor"]

    moved = 8 * (2 * 2 + 4) * 8_030_261_248 * 7 / 8 / 450e9
    assert _clock(settings)._moved_seconds(update) == pytest.approx(moved)


def test_tokens_cross_machines_to_the_experts_there(grpo):
    """Sixteen ranks share the experts: 7 of 16 rows go to others of the machine, 8 to the other
    machine. Forward and backward, there and back, 8 experts of 2,048 values in 48 layers."""
    hardware = {"preset": None, "nodes": 2, "gpus_per_node": 8, "gpu": "H200-141GB"}
    settings = _learned(grpo, "Qwen/Qwen3-30B-A3B", hardware=hardware, rows=16, expert_parallel=16)
    clock, update = _clock(settings), settings.memory.updates["actor"]
    sent = 2 * 2 * 48 * 8 * 2048 * 2 * 4096

    work = clock._work(update.weights, 4096, 4096)
    assert clock._exchanged_seconds(update, work) == pytest.approx(
        sent * 7 / 16 / 450e9 + sent * 8 / 16 / 42.5e9
    )


def _handed_on(grpo, pools=None, **hardware):
    nodes = {"actor": {"model": {"path": "Qwen/Qwen3-30B-A3B"}}}
    if pools:
        nodes["actor"] |= {"pool": "train", "rollout": {"pool": "write"}}
        nodes["start"] = {"pool": "train"}
        hardware["pools"] = {name: {"gpus": gpus} for name, gpus in pools.items()}
    spec = grpo(nodes=nodes, hardware={"preset": None, "gpu": "H200-141GB", **hardware})
    return stage_of_parts(spec, "actor.sync")


def stage_of_parts(spec, name):
    from coloop.plan.cost import explain

    return explain(spec).stage_of_parts[name]


SIZE = 2 * 30_532_122_624
FIXED = 0.05 + 8e-5 * (48 * (8 + 3 * 128 + 1) + 3) + 1e-3
"""Latency, the tensors one by one, and the least time of a stage."""


def test_engines_in_the_pool_get_weights_over_the_links_of_their_machine(grpo):
    assert _handed_on(grpo, nodes=1, gpus_per_node=8) == pytest.approx(FIXED + SIZE / 450e9)


def test_engines_of_several_machines_get_them_over_all_network_cards(grpo):
    assert _handed_on(grpo, nodes=2, gpus_per_node=8) == pytest.approx(FIXED + SIZE / 340e9)


def test_weights_leave_for_another_pool_over_one_network_card(grpo):
    """Half of the weights come from the other machine of the trainer first."""
    pools = {"train": 16, "write": 16}
    found = _handed_on(grpo, pools, nodes=4, gpus_per_node=8)

    assert found == pytest.approx(FIXED + SIZE / 450e9 + 1.5 * SIZE / 42.5e9)


def test_old_log_probs_are_measured_where_there_are_several_optimizer_steps(grpo):
    def seconds(mini_batch):
        found = estimate(grpo(nodes={"actor": {"training": {"mini_batch": mini_batch}}}))
        return [stage_of(found, name).seconds for name in ("actor.learn", "start.score")]

    (one, _), (four, measured) = seconds(None), seconds(256)
    assert four - one == pytest.approx(measured, rel=0.1)
