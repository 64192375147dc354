"""What the settings of an update cost in memory."""

import pytest
from tests.engine.estimate.conftest import loop_of, parts_of, stage_of

from coloop.plan.cost import estimate, explain

GIB = 2**30


def test_checkpointing_trades_activations(grpo):
    def activations(flag):
        training = {"micro_batch": 2, "gradient_checkpointing": flag}
        gpu = estimate(grpo(nodes={"actor": {"training": training}})).gpus[0]
        return sum(
            p.bytes for p in gpu.parts if p.part == "activations" and "actor.learn" in p.stages
        )

    assert activations(True) < 0.3 * activations(False)


def test_more_rows_at_once_take_more_memory(grpo):
    def peak(rows):
        training = {"micro_batch": rows, "gradient_checkpointing": True, "loss_chunk": None}
        gpu = estimate(grpo(nodes={"actor": {"training": training}})).gpus[0]
        return sum(part.bytes for part in gpu.parts if "actor.learn" in part.stages)

    assert peak(1) <= peak(4) < peak(16) < peak(64)


def test_nothing_is_offloaded_unless_the_loop_says_so(grpo):
    def resting(offload):
        training = {"offload": offload} if offload else {}
        gpu = estimate(grpo(nodes={"actor": {"training": training}})).gpus[0]
        return {
            p.part: p.bytes for p in gpu.parts if p.node == "actor" and "start.score" in p.stages
        }

    assert "optimizer" in resting(None)
    assert "optimizer" not in resting("optimizer")
    assert resting("all").get("weights", 0) == 0


def test_what_is_offloaded_rests_on_the_host(grpo):
    spec = grpo(nodes={"actor": {"training": {"offload": "optimizer"}}})

    asleep = 8 * 2 * 7_615_616_512  # the weights of eight engines while others work
    assert explain(spec).host_bytes == pytest.approx(asleep + 12 * 7_615_616_512, rel=0.01)


def test_a_single_backend_stays_on_the_first_gpu(grpo):
    found = estimate(
        grpo(
            nodes={
                "actor": {
                    "model": {"path": "Qwen/Qwen2.5-0.5B-Instruct"},
                    "training": {"backend": "single"},
                }
            },
            hardware={"preset": "2xH100"},
        )
    )

    assert parts_of(found.gpus[0], "optimizer") > 0
    assert parts_of(found.gpus[1], "optimizer") == 0


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_deepspeed_shards_as_its_stage_says(grpo, stage):
    training = {"backend": "deepspeed", "zero_stage": stage}
    gpu = estimate(grpo(nodes={"actor": {"training": training}})).gpus[0]

    resting = {
        p.part: p.bytes for p in gpu.parts if p.node == "actor" and "start.score" in p.stages
    }
    total = 7_615_616_512
    assert resting["weights"] == total * 2 // (8 if stage == 3 else 1)
    assert resting["optimizer"] == total * 12 // (8 if stage else 1)


def test_gpus_that_share_layers_hold_fewer_logits_and_talk_more(grpo):
    def found(degree):
        training = {"tensor_parallel": degree, "micro_batch": 16, "gradient_checkpointing": True}
        training["loss_chunk"] = 1 << 20  # whole logits: the peak is at the loss
        return estimate(grpo(nodes={"actor": {"training": training}}))

    alone, shared = found(1), found(4)

    resting = [
        {p.part: p.bytes for p in one.gpus[0].parts if "start.score" in p.stages}
        for one in (alone, shared)
    ]
    assert resting[0]["optimizer"] == resting[1]["optimizer"]
    logits = [
        sum(p.bytes for p in one.gpus[0].parts if p.part == "logits" and "actor.learn" in p.stages)
        for one in (shared, alone)
    ]
    assert 0 < logits[0] < 0.3 * logits[1]
    assert stage_of(shared, "actor.learn").seconds > stage_of(alone, "actor.learn").seconds


def test_the_memory_budget_decides_what_is_usable(grpo):
    generous = estimate(grpo(hardware={"memory_budget": 1.0})).gpus[0]
    careful = estimate(grpo(hardware={"memory_budget": 0.5})).gpus[0]

    assert generous.usable_bytes == round(79.18 * GIB)
    assert careful.usable_bytes == int(0.5 * generous.usable_bytes)


def test_a_run_that_ran_out_of_memory_is_said_not_to_fit(grpo):
    """Qwen3-0.6B, supervised, 65536 tokens in one row on one H100 with whole logits."""
    spec = loop_of(
        {
            "coloop": 1,
            "name": "sft",
            "nodes": {
                "texts": {
                    "kind": "dataset",
                    "source": {
                        "type": "inline",
                        "rows": [{"prompt": "x" * 100_000, "target": "y" * 109_715}],
                    },
                },
                "actor": {
                    "kind": "actor",
                    "model": {"type": "pretrained", "path": "Qwen/Qwen3-0.6B"},
                    "algorithm": {"demonstrations": {"name": "sft"}},
                    "training": {
                        "backend": "fsdp2",
                        "micro_batch": 1,
                        "gradient_checkpointing": True,
                        "loss_chunk": 65_536,
                    },
                },
            },
            "edges": ["texts.rows -> actor.demonstrations"],
            "schedule": {"steps": 1},
            "hardware": {"preset": "1xH100", "memory_budget": 1.0},
        }
    )

    assert not estimate(spec).fits


@pytest.mark.parametrize("flag", ["selective", "offload"])
def test_half_and_offloaded_checkpointing_lie_where_they_should(flag, grpo):
    def learned(value):
        training = {"micro_batch": 4, "gradient_checkpointing": value}
        training["loss_chunk"] = 1 << 20  # whole logits: the peak is at the loss
        told = explain(grpo(nodes={"actor": {"training": training}}))
        found = told.estimate
        kept = sum(
            part.bytes
            for part in found.gpus[0].parts
            if part.part == "activations" and "actor.learn" in part.stages
        )
        seconds = next(s.seconds for s in found.stages if s.stage == "actor.learn")
        return kept, seconds, told.host_bytes

    none, full, asked = learned(False), learned(True), learned(flag)

    if flag == "selective":
        assert full[0] < asked[0] < none[0]
        assert none[1] < asked[1] < full[1]
        assert asked[2] == none[2]
    else:
        # one input of 2 bytes for each number of a layer, token and row, on each of 8 GPUs
        assert asked[0] < full[0]
        assert asked[2] - full[2] == pytest.approx(2 * 3584 * 28 * 4 * 8 * 1024, rel=0.1)
