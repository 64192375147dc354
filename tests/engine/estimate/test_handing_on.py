"""What GPUs need beside their parts while a spread model is handed to its engines and saved, by
hand: Qwen2.5-7B over eight of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from coloop.plan.cost import Estimate, estimate
from coloop.plan.settings.architecture import MixtureOfExperts
from coloop.plan.settings.memory import largest_weight
from coloop.plan.settings.survey import Survey
from coloop.plan.weight_buckets import GPU_BYTES, weight_bucket_bytes
from coloop.spec.graph import LoopSpec
from coloop.spec.io import load

PRESET = Path(__file__).parents[3] / "presets" / "loops" / "grpo-qwen2.5-7b-8xH100.yaml"
EMBEDDING = 152_064 * 3_584
"""Numbers of the largest weight; in float32 more than a portion, so it is gathered alone."""


@pytest.fixture(scope="module")
def spec() -> LoopSpec:
    return load(PRESET)


@pytest.fixture(scope="module")
def told(spec: LoopSpec) -> Estimate:
    return estimate(spec)


def bytes_in(told: Estimate, *stages: str) -> int:
    return sum(
        part.bytes
        for part in told.gpus[0].parts
        if part.part == "transfer" and part.stages == stages
    )


def test_a_checkpoint_gathers_one_portion_and_hands_one_weight_on(told: Estimate) -> None:
    whole = 4 * EMBEDDING
    assert whole == 2_179_989_504 > GPU_BYTES == weight_bucket_bytes("cuda")
    assert bytes_in(told, "actor.checkpoint") == whole + whole // 8 + whole


def test_a_sync_casts_a_weight_beside_that(told: Estimate) -> None:
    assert bytes_in(told, "actor.sync") == 4_632_477_696 + 2 * EMBEDDING


def test_frozen_weights_that_are_spread_are_saved_in_the_type_that_they_are_held_in(
    told: Estimate,
) -> None:
    whole = 2 * EMBEDDING  # 1.09e9 in bfloat16
    assert bytes_in(told, "start.checkpoint") == whole + whole // 8 + whole


def test_the_largest_weight_is_the_embedding_or_all_experts_of_a_layer(spec: LoopSpec) -> None:
    arch = Survey(spec).weights["actor"].arch
    experts = MixtureOfExperts(
        experts=128, active_experts=8, shared_experts=0, ffn=768, dense_layers=0
    )

    assert largest_weight(arch) == EMBEDDING
    assert largest_weight(replace(arch, moe=experts)) == 3_584 * 2 * 128 * 768  # gate and up


def test_whole_weights_need_nothing_to_be_saved(spec: LoopSpec) -> None:
    hardware = spec.hardware.model_copy(update={"preset": "1xH100"})  # type: ignore[union-attr]
    alone = estimate(spec.model_copy(update={"hardware": hardware}))

    assert not [
        part for gpu in alone.gpus for part in gpu.parts if "actor.checkpoint" in part.stages
    ]
