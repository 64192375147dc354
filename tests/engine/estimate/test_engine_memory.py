"""What engines hold, and when."""

import pytest
from tests.engine.estimate.conftest import loop_of, parts_of, stage_of

from coloop.plan.cost import estimate, explain
from coloop.spec.io import to_dict

GIB = 2**30


def test_vllm_sleeps_while_others_work_on_its_gpus(grpo):
    gpu = estimate(grpo()).gpus[0]

    caches = [p for p in gpu.parts if p.part == "kv_cache"]
    copies = [p for p in gpu.parts if p.part == "weights" and p.bytes == 2 * 7_615_616_512]
    assert {stage for p in caches for stage in p.stages} == {"actor.generate"}
    assert {stage for p in copies for stage in p.stages} == {"actor.generate", "actor.sync"}


def test_vllm_in_a_pool_of_its_own_never_sleeps(grpo):
    found = estimate(
        grpo(
            nodes={
                "actor": {"pool": "train", "rollout": {"pool": "write"}},
                "start": {"pool": "train"},
            },
            hardware={"pools": {"train": {"gpus": 4}, "write": {"gpus": 4}}},
        )
    )

    writers = [gpu for gpu in found.gpus if gpu.pool == "write"]
    assert len(writers) == 4
    assert writers[0].peak_bytes <= writers[0].usable_bytes
    assert writers[0].peak_bytes > 0.9 * writers[0].usable_bytes  # the cache takes what is left
    assert not any(part.part == "optimizer" for part in writers[0].parts)
    assert parts_of(found.gpus[0], "optimizer") == 7_615_616_512 * 8 // 4


def test_the_given_share_of_the_gpu_is_the_engines(grpo):
    rollout = {"gpu_memory_utilization": 0.5, "max_num_seqs": 128}
    gpu = estimate(grpo(nodes={"actor": {"rollout": rollout}})).gpus[0]

    engine = sum(
        p.bytes
        for p in gpu.parts
        if p.stages in (("actor.generate",), ("actor.generate", "actor.sync")) and p.node == "actor"
    )
    assert engine == pytest.approx(0.5 * 79.18 * GIB, rel=0.001)


def test_a_model_too_large_for_one_gpu_is_written_with_by_several(grpo):
    spec = grpo(
        nodes={"actor": {"model": {"path": "Qwen/Qwen2.5-72B-Instruct"}}},
        hardware={"preset": "16xH100"},
    )

    decided = {d.path: d.value for d in explain(spec).decisions}

    assert decided["nodes.actor.rollout.tensor_parallel"] >= 4


def test_an_engine_without_room_for_one_sequence_does_not_fit(grpo):
    rollout = {"gpu_memory_utilization": 0.15, "max_num_seqs": 8}
    found = estimate(grpo(nodes={"actor": {"rollout": rollout}}))

    assert "actor" not in found.rollout
    assert not found.fits


def test_a_remote_engine_holds_nothing_here(grpo):
    rollout = {"engine": "remote", "url": "http://127.0.0.1:1/v1"}
    found = estimate(grpo(nodes={"actor": {"rollout": rollout}}))

    assert found.rollout == {}
    assert stage_of(found, "actor.generate").bound == "service"


@pytest.mark.parametrize("engine", ["torch", "remote"])
def test_weights_of_a_remote_engine_are_not_held_here(grpo, engine):
    rollout = {"engine": engine, "max_new_tokens": 16}
    url = {"url": "http://127.0.0.1:1/v1"} if engine == "remote" else {}
    document = to_dict(grpo())
    document["nodes"]["writer"] = {
        "kind": "actor",
        "model": {"type": "scratch", "architecture": "qwen2.5-7b"},
        "rollout": {**rollout, **url},
    }
    prompts = next(n for n, node in document["nodes"].items() if node["kind"] == "dataset")
    document["edges"].append(f"{prompts}.rows -> writer.prompts")

    found = estimate(loop_of(document))

    held = {part.part for gpu in found.gpus for part in gpu.parts if part.node == "writer"}
    assert ("weights" in held) is (engine == "torch")
    assert bool(held) is (engine == "torch")
