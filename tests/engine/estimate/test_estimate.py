"""The estimate as a whole: its shape, and that of any loop."""

import json
from pathlib import Path

import pytest
from tests.engine.estimate.conftest import loop_of

from coloop.plan.cost import estimate, explain
from coloop.spec.io import parse

EXAMPLES = Path(__file__).resolve().parents[3].parent / "shared/language/examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))


def test_the_json_has_exactly_the_keys_of_the_contract(grpo):
    document = json.loads(estimate(grpo()).model_dump_json())

    assert list(document) == [
        "step_seconds",
        "bottleneck",
        "parameters",
        "gpus",
        "stages",
        "rollout",
        "unknown",
        "guessed",
    ]
    assert set(document["gpus"][0]) == {
        "pool",
        "index",
        "capacity_bytes",
        "usable_bytes",
        "peak_bytes",
        "peak_stage",
        "fits",
        "reason",
        "parts",
    }
    assert set(document["gpus"][0]["parts"][0]) == {"node", "part", "bytes", "stages"}
    assert set(document["stages"][0]) == {
        "stage",
        "node",
        "seconds",
        "samples_per_second",
        "tokens_per_second",
        "bound",
        "reason",
    }
    assert set(document["rollout"]["actor"]) == {
        "kv_cache_bytes",
        "kv_cache_tokens",
        "max_concurrent_sequences",
    }


def test_bytes_and_counts_are_whole_numbers(grpo):
    document = json.loads(estimate(grpo()).model_dump_json())

    gpu = document["gpus"][0]
    assert all(isinstance(gpu[key], int) for key in gpu if key.endswith("_bytes"))
    assert all(isinstance(part["bytes"], int) for part in gpu["parts"])


def test_every_gpu_of_the_hardware_is_listed(grpo):
    found = estimate(grpo(hardware={"preset": "16xH100"}))

    assert [gpu.index for gpu in found.gpus] == list(range(16))
    assert {gpu.pool for gpu in found.gpus} == {"main"}


def test_the_peak_is_the_sum_of_the_parts_of_its_stage(grpo):
    for gpu in estimate(grpo()).gpus:
        there = sum(part.bytes for part in gpu.parts if gpu.peak_stage in part.stages)
        assert gpu.peak_bytes == there


def test_the_peak_is_the_largest_of_all_stages(grpo):
    gpu = estimate(grpo()).gpus[0]
    stages = {stage for part in gpu.parts for stage in part.stages}

    totals = [sum(p.bytes for p in gpu.parts if stage in p.stages) for stage in stages]

    assert gpu.peak_bytes == max(totals)


@pytest.mark.sample(35)
@pytest.mark.skipif(not FILES, reason="the example loops are not here")
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_an_example_loop_is_estimated(file):
    spec = parse(file.read_text(encoding="utf-8")).spec
    assert spec is not None

    found = explain(spec)

    step, stages = found.estimate.step_seconds, found.estimate.stages
    assert step is None or step > 0
    assert all(stage.seconds > 0 for stage in stages if stage.reason is None)
    is_known = all(phase.step_seconds is not None for phase in found.phases)
    assert (step is not None) == is_known
    assert is_known == (not any(stage.reason for stage in stages))


@pytest.mark.skipif(not FILES, reason="the example loops are not here")
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_an_example_with_known_models_on_gpus_is_estimated(file):
    """The same loops with real sizes: every kind of node with weights has memory and time."""
    spec = parse(file.read_text(encoding="utf-8")).spec
    document = parse(file.read_text(encoding="utf-8")).document
    for node in document["nodes"].values():
        if node.get("model", {}).get("type") in ("pretrained", "run", "scratch"):
            node["model"] = {"type": "pretrained", "path": "Qwen/Qwen2.5-1.5B-Instruct"}
    document["hardware"] = {"preset": "8xH100"}
    pools = spec.hardware.pools
    if pools:
        document["hardware"]["pools"] = {name: {"gpus": 4} for name in pools}
    for node in document["nodes"].values():
        node.get("rollout", {}).pop("engine", None)
        node.get("training", {}).pop("backend", None)

    found = estimate(loop_of(document))

    assert found.gpus[0].peak_bytes > 0
    assert all(0 < size < 4e9 for size in found.parameters.values())
    for gpu in found.gpus:
        there = sum(part.bytes for part in gpu.parts if gpu.peak_stage in part.stages)
        assert gpu.peak_bytes == there
