"""Bytes of weights, gradients and optimizers of whole loops."""

import pytest
from tests.engine.estimate.conftest import parts_of

from coloop.plan.cost import estimate

GIB = 2**30


def test_parameters_are_exact(grpo):
    assert estimate(grpo()).parameters == {"actor": 7_615_616_512, "start": 7_615_616_512}


def test_sharded_states_of_a_trained_model_are_in_the_gpu(grpo):
    gpu = estimate(grpo()).gpus[3]

    resting = [p for p in gpu.parts if p.node == "actor" and "start.score" in p.stages]
    sizes = {p.part: p.bytes for p in resting}
    assert sizes["weights"] == 7_615_616_512 * 4 // 8
    assert sizes["optimizer"] == 7_615_616_512 * 8 // 8


def test_a_frozen_model_costs_its_weights_only(grpo):
    gpu = estimate(grpo()).gpus[0]

    assert parts_of(gpu, "optimizer", "start") == parts_of(gpu, "gradients", "start") == 0
    assert parts_of(gpu, "weights", "start") == 7_615_616_512 * 2 // 8


def test_gradients_are_there_while_the_group_learns_only(grpo):
    gradients = [p for p in estimate(grpo()).gpus[0].parts if p.part == "gradients"]

    assert {stage for part in gradients for stage in part.stages} <= {"actor.learn"}


def test_shared_weights_are_counted_once(grpo):
    alone = estimate(grpo())
    second = {
        "kind": "actor",
        "model": {"type": "shared", "with": "actor"},
        "rollout": {"max_new_tokens": 64},
    }
    both = estimate(
        grpo(
            nodes={"helper": second},
            edges=[
                "problems.rows -> helper.prompts",
                "helper.rollouts -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> start.rollouts",
                "exact.scores -> actor.rewards",
                "start.log_probs -> actor.reference",
            ],
        )
    )

    assert both.parameters == alone.parameters
    assert parts_of(both.gpus[0], "weights") == parts_of(alone.gpus[0], "weights")
    assert set(both.rollout) == {"actor", "helper"}


def test_an_adapter_trains_a_small_share_on_frozen_weights(grpo):
    full = estimate(grpo())
    small = estimate(grpo(nodes={"actor": {"model": {"lora": {"rank": 16}}}}))

    # rank * layers * (inputs + outputs) of the seven matrices of a layer
    adapter = 16 * 28 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944))
    assert small.parameters["actor"] == 7_615_616_512 + adapter
    assert parts_of(small.gpus[0], "optimizer", "actor") < parts_of(full.gpus[0], "optimizer") / 50


def test_quantized_weights_take_fewer_bytes(grpo):
    model = {"lora": {"rank": 16}}
    whole = estimate(grpo(nodes={"actor": {"model": model}}))
    packed = estimate(grpo(nodes={"actor": {"model": model | {"quantization": "nf4"}}}))

    def resting(found):
        return sum(
            p.bytes
            for p in found.gpus[0].parts
            if p.part == "weights" and p.node == "actor" and "actor.learn" in p.stages
        )

    assert resting(packed) < 0.5 * resting(whole)


def test_a_critic_has_a_number_as_head_and_no_logits(grpo):
    found = estimate(
        grpo(
            nodes={
                "critic": {
                    "kind": "critic",
                    "model": {"type": "copy", "of": "actor"},
                    "algorithm": {"name": "value"},
                    "training": {"backend": "fsdp2"},
                },
                "actor": {"algorithm": {"rewards": {"name": "ppo"}}},
            },
            edges=[
                "problems.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> critic.rollouts",
                "actor.rollouts -> start.rollouts",
                "exact.scores -> actor.rewards",
                "start.log_probs -> actor.reference",
                "critic.values -> actor.values",
                "actor.returns -> critic.returns",
            ],
        )
    )

    assert found.parameters["critic"] == 7_615_616_512 - 152_064 * 3584 + 3584
    logits = [p for p in found.gpus[0].parts if p.part == "logits" and p.node == "critic"]
    assert sum(part.bytes for part in logits) < GIB
    assert {"critic.score", "critic.learn", "actor.credit"} <= {s.stage for s in found.stages}


def test_a_critic_on_shared_weights_adds_a_head_to_the_group(tiny):
    found = estimate(
        tiny(
            nodes={
                "critic": {
                    "kind": "critic",
                    "model": {"type": "shared", "with": "actor"},
                    "algorithm": {"name": "value"},
                },
                "actor": {"algorithm": {"rewards": {"name": "ppo"}}},
            },
            edges=[
                "problems.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> critic.rollouts",
                "exact.scores -> actor.rewards",
                "critic.values -> actor.values",
                "actor.returns -> critic.returns",
            ],
        )
    )

    plain = estimate(tiny()).parameters["actor"]
    assert found.parameters["actor"] == plain + 64


@pytest.mark.parametrize(
    ("quantization", "most"), [("nf4", 0.55), ("mxfp4", 0.55), ("int8", 1.01), ("fp8", 1.01)]
)
def test_bytes_of_quantized_matrices(quantization, most, grpo):
    model = {"lora": {"rank": 16}, "quantization": quantization}
    found = estimate(grpo(nodes={"actor": {"model": model}}))

    resting = sum(
        p.bytes
        for p in found.gpus[0].parts
        if p.part == "weights"
        and p.node == "actor"
        and p.stages == ("actor.generate", "actor.sync")
    )
    wide = 2 * 152_064 * 3584
    matrices = found.parameters["actor"] - wide
    assert resting == pytest.approx(2 * wide + most * matrices, rel=0.05)


def test_products_in_fp8_keep_wide_activations_and_masters(grpo):
    def parts(dtype):
        training = {"dtype": dtype, "micro_batch": 4, "gradient_checkpointing": True}
        gpu = estimate(grpo(nodes={"actor": {"training": training}})).gpus[0]
        return {(p.part, p.stages): p.bytes for p in gpu.parts if p.node == "actor"}

    wide, narrow = parts("bfloat16"), parts("fp8")

    def learn(found, part):
        return sum(b for (name, at), b in found.items() if name == part and "actor.learn" in at)

    def engine(found):
        return sum(
            b for (name, at), b in found.items() if name == "weights" and "actor.learn" not in at
        )

    for part in ("activations", "optimizer", "logits"):
        assert learn(narrow, part) == learn(wide, part)
    assert engine(narrow) < 0.7 * engine(wide)
