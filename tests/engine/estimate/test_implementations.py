"""What trainers do with memory: each fact has a source, and each formula a number by hand."""

import dataclasses
from typing import get_args

import pytest
from tests.engine.estimate.conftest import parts_of

from coloop.plan.cost import estimate, explain
from coloop.plan.settings.architecture import architecture_from_config, count_parameters
from coloop.plan.settings.implementations import (
    IMPLEMENTATIONS,
    Implementation,
    implementation_of,
)
from coloop.plan.settings.settings import UpdateSettings
from coloop.plan.settings.training import (
    TrainingStep,
    fragmentation_bytes,
    layer_bytes,
    product_bytes,
    step_instants,
)
from coloop.plan.settings.weights import Precision, compute_states, resting_bytes_per_parameter
from coloop.spec import presets
from coloop.spec.io import from_dict
from coloop.spec.training import Implementation as Name

LLAMA = architecture_from_config(presets.architecture("llama-3.1-8b"))
COUNT = count_parameters(LLAMA)
WORDS = 128_256 * 4096
"""One vocabulary matrix; embedding and head are not tied."""
MIXED = Precision(compute_bytes=2, master_bytes=4, frozen_bytes=2, engine_bytes=2)


def _step(**options):
    states = compute_states(
        total=COUNT.total, trainable=COUNT.total, scheme="fsdp2", shards=8, precision=MIXED
    )
    defaults = {
        "arch": LLAMA,
        "parameters": COUNT,
        "states": states,
        "scheme": "fsdp2",
        "shards": 8,
        "tokens": 4096,
        "settings": UpdateSettings(backend="fsdp2", gradient_checkpointing=True),
    }
    return TrainingStep(**{**defaults, **options})


def _instants(**options):
    return {instant.name: instant for instant in step_instants(_step(**options))}


def _job(**training):
    """Supervised training of Llama-3.1-8B on rows of 4096 tokens."""
    document = {
        "coloop": 1,
        "name": "job",
        "nodes": {
            "texts": {
                "kind": "dataset",
                "source": {"type": "hub", "path": "some/texts"},
                "rows_per_step": 16,
                "tokens": {"mean": 4096, "max": 4096},
            },
            "model": {
                "kind": "actor",
                "model": {"type": "pretrained", "path": "meta-llama/Llama-3.1-8B"},
                "algorithm": {"demonstrations": {"name": "sft"}},
                "training": {"micro_batch": 1, "gradient_checkpointing": True, **training},
            },
        },
        "edges": ["texts.rows -> model.demonstrations"],
        "schedule": {"phases": [{"name": "main", "steps": 9, "learn": ["model.demonstrations"]}]},
        "hardware": {"preset": "8xH100"},
    }
    return from_dict(document).spec


def test_every_implementation_is_in_the_table():
    assert set(IMPLEMENTATIONS) == set(get_args(Name))


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_each_fact_has_a_source(name):
    facts = {field.name for field in dataclasses.fields(Implementation)} - {"sources"}

    assert IMPLEMENTATIONS[name].sources.keys() == facts
    assert all(IMPLEMENTATIONS[name].sources.values())


def test_the_megatron_backend_means_its_own_trainer():
    assert implementation_of("coloop", "megatron") is IMPLEMENTATIONS["megatron"]
    assert implementation_of("verl", "megatron") is IMPLEMENTATIONS["verl"]


def test_selective_checkpointing_keeps_every_second_product():
    # 2 bytes x (2 x 4096 hidden + 2 x 4096 queries + 1024 keys + 14336 gate)
    assert product_bytes(LLAMA, 2) == 63_488

    kept = _instants(
        selective="products",
        settings=UpdateSettings(backend="fsdp2", gradient_checkpointing="selective"),
    )["loss"]
    assert kept.activations == 32 * 63_488 * 4096


def test_ranks_divide_norms_only_with_sequence_parallel():
    whole = 16 * 4096 + 8 * 14_336 + 10 * 4096 + 4 * 32 + 8
    norms = 16 * 4096

    assert layer_bytes(LLAMA, 2, "eager") == whole
    assert layer_bytes(LLAMA, 2, "eager", tensor=8) == norms + (whole - norms) / 8
    sequence = layer_bytes(LLAMA, 2, "eager", tensor=8, has_sequence_parallel=True)
    assert sequence == whole / 8


def test_the_inputs_of_layers_are_divided_with_sequence_parallel():
    def kept(**options):
        settings = UpdateSettings(backend="fsdp2", gradient_checkpointing=True, tensor_parallel=4)
        return _instants(settings=settings, **options)["loss"].activations

    assert kept() == 32 * 2 * 4096 * 4096
    assert kept(has_sequence_parallel=True) == 32 * 2 * 4096 * 4096 / 4


def test_a_root_group_stays_gathered_with_its_gradient():
    parts, whole = _instants(root="parts"), _instants(root="whole")

    # the loss: embedding and head in 16 bits, in place of the head alone
    assert whole["loss"].transfer - parts["loss"].transfer == 2 * WORDS
    # a layer: both, and the 16-bit gradient of the head
    assert whole["first layer"].transfer - parts["first layer"].transfer == (4 + 2) * WORDS
    # the end: gradients in 16 bits and their float32 copies for the reduction
    assert whole["embedding"].transfer == (2 + 4) * 2 * WORDS
    assert parts["embedding"].transfer == (2 + 4) * WORDS


def test_gradients_of_earlier_micro_batches_are_there_at_every_instant():
    shard = 4 * COUNT.total / 8

    assert _instants()["loss"].gradients == 0
    assert {one.gradients for one in _instants(accumulates=True).values()} == {shard}
    whole = _instants(accumulates=True, sums_whole=True)
    assert whole["loss"].gradients == 2 * COUNT.total


def test_a_loss_in_chunks_may_make_the_gradient_of_a_frozen_head():
    chunked = UpdateSettings(backend="fsdp2", gradient_checkpointing=True, loss_chunk=512)
    usual = _instants(settings=chunked, trains_all=False)["loss"]
    made = _instants(settings=chunked, trains_all=False, has_frozen_head_gradient=True)["loss"]

    assert made.transfer - usual.transfer == 2 * WORDS


def test_quantized_layers_are_gathered_as_they_lie():
    wide = _instants(trains_all=False)["first layer"].transfer
    narrow = _instants(trains_all=False, gathered_bytes=0.5625)["first layer"].transfer

    assert wide == 2 * 2 * COUNT.layer
    assert narrow == 2 * 0.5625 * COUNT.layer


def test_bytes_of_nf4_with_a_float32_scale_for_each_64_weights():
    blocks = COUNT.total - 2 * WORDS

    each = resting_bytes_per_parameter(COUNT, 2, "nf4")

    assert each * COUNT.total == pytest.approx((0.5 + 4 / 64) * blocks + 2 * 2 * WORDS)


@pytest.mark.parametrize(("is_fused", "copies"), [(True, 0), (False, 4)])
def test_a_fused_step_makes_no_copies(is_fused, copies):
    states = compute_states(
        total=COUNT.total,
        trainable=COUNT.total,
        scheme="fsdp2",
        shards=8,
        precision=MIXED,
        has_fused_step=is_fused,
    )

    assert states.step_temporary == copies * COUNT.total / 8
    assert states.total == (16 + copies) * COUNT.total / 8


def test_expandable_segments_leave_less_unused():
    assert fragmentation_bytes(100.0) == 10.0
    assert fragmentation_bytes(100.0, "segments") == 3.0


def test_an_estimate_describes_the_trainer_that_the_loop_names():
    def gradients(name):
        return parts_of(estimate(_job(implementation=name)).gpus[0], "gradients")

    # two micro-batches a GPU: float32 shards of an eighth here, 16-bit whole ones with `no_sync`
    assert gradients("coloop") == 4 * COUNT.total / 8
    assert gradients("trl") == 2 * COUNT.total


def test_context_parallel_ranks_share_the_states():
    def peak(degree):
        training = {"backend": "fsdp2", "context_parallel": degree}
        return estimate(_job(implementation="torchtitan", **training)).gpus[0].peak_bytes

    assert peak(8) < peak(1)


def test_expert_parallel_ranks_hold_their_own_experts():
    spec = _job(implementation="torchtitan", backend="fsdp2", expert_parallel=8)
    model = {"type": "pretrained", "path": "Qwen/Qwen3-30B-A3B"}
    document = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document["nodes"]["model"]["model"] = model
    held = estimate(from_dict(document).spec).gpus[0]

    # 16 bytes a parameter over 8 GPUs, whether dense or of an expert
    states = [p for p in held.parts if p.part in ("weights", "optimizer")]
    assert sum(p.bytes for p in states) == pytest.approx(12 * 30_532_122_624 / 8, rel=0.01)


def test_the_last_pipeline_stage_has_the_loss_and_the_first_all_micro_batches():
    settings = UpdateSettings(backend="megatron", gradient_checkpointing=True, pipeline_parallel=4)
    inputs = 8 * 2 * 4096 * 4096  # of the 8 layers of a stage, for one micro-batch
    usual = _instants(scheme="megatron", settings=settings)
    few = _instants(scheme="megatron", settings=settings, micro_batches=2)

    assert usual["loss"].activations == inputs
    assert usual["first layer"].activations - few["first layer"].activations == 2 * inputs


def test_gradients_of_megatron_lie_in_buffers_that_are_always_there():
    assert _instants(scheme="megatron")["loss"].gradients == 4 * COUNT.total / 8


def test_sharded_gradients_are_summed_in_the_type_of_the_weights_or_in_float32():
    wide, narrow = _instants(), _instants(reduce_bytes=2)

    assert wide["embedding"].transfer - narrow["embedding"].transfer == 2 * WORDS


def test_mxfp4_is_of_experts_only():
    experts = architecture_from_config(presets.architecture("qwen3-30b-a3b"))
    count = count_parameters(experts)

    each = resting_bytes_per_parameter(count, 2, "mxfp4")

    held = (0.5 + 1 / 32) * count.routed + 2 * (count.total - count.routed)
    assert each * count.total == pytest.approx(held)


@pytest.mark.parametrize(
    ("name", "bytes_each"), [("trl", 0.5 + 4 / 64), ("torchtune", 0.5 + 1 / 64 + 4 / 16_384)]
)
def test_scales_of_nf4_may_be_quantized_too(name, bytes_each):
    blocks = COUNT.total - 2 * WORDS
    spec = _job(implementation=name, backend="single")
    document = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document["nodes"]["model"]["model"] |= {"quantization": "nf4", "lora": {"rank": 1}}
    held = estimate(from_dict(document).spec).gpus[0]

    adapter = 4 * 32 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14_336))
    assert parts_of(held, "weights") == pytest.approx(
        bytes_each * blocks + 2 * 2 * WORDS + adapter, rel=1e-3
    )


def _group(name):
    """GRPO of Llama-3.1-8B with an adapter, compared with its start, on 8 GPUs."""
    document = {
        "coloop": 1,
        "name": "group",
        "nodes": {
            "prompts": {
                "kind": "dataset",
                "source": {"type": "hub", "path": "some/prompts"},
                "rows_per_step": 64,
                "tokens": {"mean": 512, "max": 512},
            },
            "actor": {
                "kind": "actor",
                "model": {
                    "type": "pretrained",
                    "path": "meta-llama/Llama-3.1-8B",
                    "lora": {"rank": 16},
                },
                "rollout": {"engine": "vllm", "completions_per_prompt": 8, "max_new_tokens": 512},
                "algorithm": {"rewards": {"name": "grpo", "kl": {"coefficient": 0.001}}},
                "training": {"implementation": name, "backend": "fsdp2"},
            },
            "right": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
            "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        },
        "edges": [
            "prompts.rows -> actor.prompts",
            "actor.rollouts -> right.rollouts",
            "right.scores -> actor.rewards",
            "actor.rollouts -> start.rollouts",
            "start.log_probs -> actor.reference",
        ],
        "schedule": {"phases": [{"name": "main", "steps": 9, "learn": ["actor.rewards"]}]},
        "hardware": {"preset": "8xH100"},
    }
    return from_dict(document).spec


@pytest.mark.parametrize("name", ["coloop", "verl"])
def test_the_reference_of_an_adapter_is_the_learner_with_its_adapter_off(name):
    held = estimate(_group(name)).gpus[0]

    assert parts_of(held, "weights", "start") < 0.01 * 2 * COUNT.total


def test_states_of_a_token_are_copied_for_each_of_its_experts():
    experts = architecture_from_config(presets.architecture("qwen3-30b-a3b"))

    usual = layer_bytes(experts, 2, "eager")
    wide = layer_bytes(experts, 2, "eager", routed_bytes=8.0)

    assert wide - usual == 4 * 2048 * 8  # one float32 copy for 8 experts


@pytest.mark.parametrize(("scheme", "more"), [("zero2", 0.0), ("zero3", 1.0)])
def test_deepspeed_holds_a_bucket_of_gradients_and_gathered_parameters(scheme, more):
    loss = _instants(scheme=scheme)["loss"].transfer

    # half a billion 16-bit gradients; with stage 3 a billion parameters, and the head
    live = 2 * (1e9 - 2 * COUNT.layer) + 2 * WORDS
    assert loss == 2 * 5e8 + more * live


@pytest.mark.parametrize(("name", "tokens"), [("trl", 4096), ("torchtune", 4096 / 8)])
def test_the_loss_is_taken_in_as_many_parts_as_the_trainer_does(name, tokens):
    decided = explain(_job(implementation=name, backend="fsdp2")).decided

    assert decided["nodes.model.training.loss_chunk"] == tokens


def test_autocast_holds_casts_of_all_weights_and_a_float32_residual_stream():
    found = _instants(has_casts=True, residual_bytes=4)

    # 16-bit casts of all but the embedding; 32 inputs of layers in float32
    assert found["forward"].transfer == 2 * (COUNT.total - WORDS)
    assert found["forward"].activations == 32 * 4 * 4096 * 4096
    assert "forward" not in _instants()


def test_without_checkpointing_the_casts_stay_for_the_backward_pass():
    settings = UpdateSettings(backend="single")
    casts = 2 * (COUNT.total - WORDS)

    usual = _instants(settings=settings)["loss"].transfer
    assert _instants(settings=settings, has_casts=True)["loss"].transfer == usual + casts


def test_one_gpu_computes_under_autocast():
    spec = _job(backend="single", master_weights=True)
    document = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document["nodes"]["model"]["model"]["path"] = "Qwen/Qwen2.5-0.5B"
    document["hardware"] = {"preset": "1xH100"}
    held = estimate(from_dict(document).spec).gpus[0]

    inputs = 24 * 4096 * 4 * 896
    assert parts_of(held, "activations") >= inputs
