"""What the estimate says of whole loops."""

import json
import time
from pathlib import Path

import pytest

from coloop.estimate import estimate, explain
from coloop.plan.unrolled import Unrolled
from coloop.sizing import conditions
from coloop.sizing.processor import Processor
from coloop.spec.io import from_dict, parse, to_dict

GIB = 2**30
EXAMPLES = Path(__file__).resolve().parents[3].parent / "shared/language/examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))


def _parts(gpu, part, node=None):
    return sum(p.bytes for p in gpu.parts if p.part == part and node in (None, p.node))


def _stage(found, name):
    return next(stage for stage in found.stages if stage.stage == name)


def _loop(document):
    parsed = from_dict(document)
    assert parsed.spec is not None, parsed.diagnostics
    return parsed.spec


# Shape


def test_the_json_has_exactly_the_keys_of_the_contract(grpo):
    document = json.loads(estimate(grpo()).model_dump_json())

    assert list(document) == [
        "step_seconds",
        "bottleneck",
        "parameters",
        "gpus",
        "stages",
        "rollout",
    ]
    assert set(document["gpus"][0]) == {
        "pool",
        "index",
        "capacity_bytes",
        "usable_bytes",
        "peak_bytes",
        "peak_stage",
        "fits",
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


# Parameters and states


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

    assert _parts(gpu, "optimizer", "start") == _parts(gpu, "gradients", "start") == 0
    assert _parts(gpu, "weights", "start") == 7_615_616_512 * 2 // 8


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
    assert _parts(both.gpus[0], "weights") == _parts(alone.gpus[0], "weights")
    assert set(both.rollout) == {"actor", "helper"}


def test_an_adapter_trains_a_small_share_on_frozen_weights(grpo):
    full = estimate(grpo())
    small = estimate(grpo(nodes={"actor": {"model": {"lora": {"rank": 16}}}}))

    # rank * layers * (inputs + outputs) of the seven matrices of a layer
    adapter = 16 * 28 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944))
    assert small.parameters["actor"] == 7_615_616_512 + adapter
    assert _parts(small.gpus[0], "optimizer", "actor") < _parts(full.gpus[0], "optimizer") / 50


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


# Settings


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

    assert peak(1) < peak(4) < peak(16)


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

    assert _parts(found.gpus[0], "optimizer") > 0
    assert _parts(found.gpus[1], "optimizer") == 0


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
    assert _stage(shared, "actor.learn").seconds > _stage(alone, "actor.learn").seconds


def test_the_memory_budget_decides_what_is_usable(grpo):
    generous = estimate(grpo(hardware={"memory_budget": 1.0})).gpus[0]
    careful = estimate(grpo(hardware={"memory_budget": 0.5})).gpus[0]

    assert generous.usable_bytes == round(79.18 * GIB)
    assert careful.usable_bytes == int(0.5 * generous.usable_bytes)


def test_a_run_that_ran_out_of_memory_is_said_not_to_fit(grpo):
    """Qwen3-0.6B, supervised, 65536 tokens in one row on one H100 with whole logits."""
    spec = _loop(
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


# Engines


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
    assert _parts(found.gpus[0], "optimizer") == 7_615_616_512 * 8 // 4


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

    assert found.rollout["actor"].max_concurrent_sequences == 0
    assert not found.fits


def test_a_remote_engine_holds_nothing_here(grpo):
    rollout = {"engine": "remote", "url": "http://127.0.0.1:1/v1"}
    found = estimate(grpo(nodes={"actor": {"rollout": rollout}}))

    assert found.rollout == {}
    assert _stage(found, "actor.generate").bound == "service"


# Time


def test_rates_and_seconds_belong_together(grpo):
    stage = _stage(estimate(grpo()), "actor.generate")

    assert stage.seconds * stage.samples_per_second == pytest.approx(128 * 8)


def test_the_bottleneck_is_the_longest_stage(grpo):
    found = estimate(grpo())

    longest = max(found.stages, key=lambda stage: stage.seconds)
    assert found.bottleneck == longest.stage


def test_long_answers_make_writing_the_bottleneck(grpo):
    rollout = {"max_new_tokens": 16_384}
    spec = grpo(nodes={"actor": {"rollout": rollout}, "problems": {"rows_per_step": 8}})

    assert estimate(spec).bottleneck == "actor.generate"


def test_a_slow_processor_with_much_memory_is_held_back_by_learning(grpo):
    found = estimate(grpo(hardware={"preset": "8xH20"}))

    assert found.bottleneck == "actor.learn"


def test_pools_side_by_side_overlap_with_staleness(grpo):
    pools = {
        "nodes": {
            "actor": {"pool": "train", "rollout": {"pool": "write"}},
            "start": {"pool": "train"},
        },
        "hardware": {"pools": {"train": {"gpus": 4}, "write": {"gpus": 4}}},
    }
    synchronous = estimate(grpo(**pools))
    stale = estimate(grpo(**pools, schedule={"steps": 100, "max_staleness": 1}))

    assert stale.step_seconds < synchronous.step_seconds
    assert stale.step_seconds >= max(stage.seconds for stage in stale.stages)


def test_twice_the_rows_take_longer(grpo):
    small = estimate(grpo(nodes={"problems": {"rows_per_step": 128}}))
    large = estimate(grpo(nodes={"problems": {"rows_per_step": 512}}))

    assert large.step_seconds > 2 * small.step_seconds


def test_epochs_repeat_the_update(grpo):
    once = _stage(estimate(grpo()), "actor.learn").seconds
    twice = _stage(
        estimate(grpo(nodes={"actor": {"training": {"epochs": 2}}})), "actor.learn"
    ).seconds

    assert twice == pytest.approx(2 * once, rel=0.02)


@pytest.mark.parametrize(
    ("learn", "rows", "passes", "steps"),
    [
        ({}, 2 * 128, 2, 2 * 2 * 128 / 64),
        ({"second": {"updates": 3}}, 2 * 128, 2 * 3, 2 * 3 * 2 * 128 / 64),
        ({"actor": {"updates": 3}}, 2 * 128, 2 * 3, 2 * 3 * 2 * 128 / 64),
        ({"second": {"rows": 512}}, 128 + 512, 2, 2 * 640 / 64),
    ],
)
def test_an_update_of_two_learners_counts_the_rules_of_both(grpo, learn, rows, passes, steps):
    """16 problems x 8 texts of each writer, learned twice in mini-batches of 64."""
    spec = grpo(
        nodes={
            "problems": {"rows_per_step": 16},
            "actor": {
                "training": {"mini_batch": 64, "epochs": 2},
                "algorithm": {"rewards": {"name": "grpo", "kl": None}},
            },
            "start": None,
            "second": {
                "kind": "actor",
                "model": {"type": "shared", "with": "actor"},
                "rollout": {"completions_per_prompt": 8, "max_new_tokens": 64},
                "algorithm": {"rewards": {"name": "grpo"}},
            },
            "also": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        },
        edges=[
            "problems.rows -> actor.prompts",
            "problems.rows -> second.prompts",
            "actor.rollouts -> exact.rollouts",
            "second.rollouts -> also.rollouts",
            "exact.scores -> actor.rewards",
            "also.scores -> second.rewards",
        ],
        schedule={"learn": learn},
    )
    update = Unrolled(spec).settings().memory.updates["actor"]

    assert (update.sequences, update.passes, update.mini_batches) == (rows, passes, steps)


def test_a_large_7b_step_takes_seconds_not_hours(grpo):
    assert 5 < estimate(grpo()).step_seconds < 120


# The processor


def test_the_quick_start_runs_in_a_fraction_of_a_second_a_step(tiny):
    found = estimate(tiny(nodes={"problems": {"rows_per_step": 32}}))

    assert 0.02 < found.step_seconds < 1.0
    assert found.fits


def test_a_processor_has_one_place_for_each_worker(tiny):
    found = estimate(
        tiny(
            nodes={
                "actor": {"pool": "train", "rollout": {"pool": "write"}},
                "start": {"pool": "train"},
            },
            hardware={"pools": {"train": {"workers": 1}, "write": {"workers": 1}}},
        )
    )

    assert [(gpu.pool, gpu.index) for gpu in found.gpus] == [("train", 0), ("write", 0)]
    assert sum(gpu.capacity_bytes for gpu in found.gpus) == 16 * GIB


def test_processes_of_a_pool_share_the_work_as_far_as_there_are_cores(tiny, monkeypatch):
    here = Processor(cores=2, has_bf16=False, reason="plain")
    monkeypatch.setattr(conditions, "processor_here", lambda: here)

    def of(workers):
        pools = {"main": {"workers": workers}, "rest": {"workers": 1}}
        nodes = {"actor": {"rollout": {"pool": "main"}}, "start": {"pool": "rest"}}
        return estimate(tiny(nodes=nodes, hardware={"pools": pools}))

    one, two, four = of(1), of(2), of(4)

    def seconds(found, stage):
        return next(own.seconds for own in found.stages if own.stage == stage)

    for stage in ("actor.generate", "actor.learn"):
        assert seconds(two, stage) < seconds(one, stage)
        assert seconds(four, stage) > 0.9 * seconds(two, stage), "there are two cores"
    assert [(gpu.pool, gpu.index) for gpu in two.gpus] == [("main", 0), ("main", 1), ("rest", 0)]


SPREAD = {"backend": "fsdp2", "reshard_after_forward": True}


@pytest.mark.parametrize(("training", "copies"), [({}, 2), (SPREAD, 1)])
def test_weights_that_learn_are_priced_whole_or_spread_as_they_lie(tiny, training, copies):
    pools = {"main": {"workers": 2}, "rest": {"workers": 1}}
    nodes = {"actor": {"training": training}, "start": {"pool": "rest"}}
    found = estimate(tiny(nodes=nodes, hardware={"pools": pools}))

    parts = [part for gpu in found.gpus for part in gpu.parts]
    held = [part.bytes for part in parts if (part.node, part.part) == ("actor", "optimizer")]
    assert len(held) == 2
    assert sum(held) == copies * 8 * found.parameters["actor"]


def test_frozen_weights_stand_in_each_process_of_their_pool(tiny):
    pools = {"main": {"workers": 1}, "rest": {"workers": 2}}
    found = estimate(tiny(nodes={"start": {"pool": "rest"}}, hardware={"pools": pools}))

    held = {
        gpu.index: [p.bytes for p in gpu.parts if (p.node, p.part) == ("start", "weights")]
        for gpu in found.gpus
        if gpu.pool == "rest"
    }
    assert held[0] == held[1] != []


def test_a_processor_computes_in_full_precision(tiny):
    gpu = estimate(tiny()).gpus[0]

    resting = [p for p in gpu.parts if p.node == "actor" and p.part == "optimizer"]
    assert resting[0].bytes == 8 * estimate(tiny()).parameters["actor"]


# Phases


def test_phases_are_told_apart(tiny):
    found = explain(
        tiny(
            nodes={
                "actor": {
                    "algorithm": {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}}
                }
            },
            edges=[
                "problems.rows -> actor.prompts",
                "problems.rows -> actor.demonstrations",
                "actor.rollouts -> exact.rollouts",
                "exact.scores -> actor.rewards",
            ],
            schedule={
                "steps": None,
                "phases": [
                    {"name": "warm-up", "steps": 10, "learn": ["actor.demonstrations"]},
                    {"repeat": 3, "phases": [{"name": "rl", "steps": 10, "learn": ["actor"]}]},
                ],
            },
        )
    )

    assert [(phase.name, phase.steps) for phase in found.phases] == [("warm-up", 10), ("rl", 30)]
    assert "actor.generate" not in found.phases[0].stages
    assert "actor.generate" in found.phases[1].stages
    assert found.total_seconds == pytest.approx(sum(phase.seconds for phase in found.phases))
    assert found.estimate.step_seconds == found.phases[1].step_seconds


def test_a_phase_that_a_trigger_ends_does_not_stand_for_the_run(tiny):
    algorithm = {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}}
    probe = {"kind": "evaluate", "every": 20, "metrics": ["score"]}
    trigger = {
        "in": "warm-up",
        "when": {"metric": "probe.score", "above": 0.5},
        "do": {"next_phase": True},
    }
    found = explain(
        tiny(
            nodes={"actor": {"algorithm": algorithm}, "probe": probe},
            edges=[
                "problems.rows -> actor.prompts",
                "problems.rows -> actor.demonstrations",
                "actor.rollouts -> exact.rollouts",
                "exact.scores -> actor.rewards",
                "exact.scores -> probe.scores",
            ],
            schedule={
                "steps": None,
                "phases": [
                    {"name": "warm-up", "steps": 100_000, "learn": ["actor.demonstrations"]},
                    {"name": "rl", "steps": 100, "learn": ["actor.rewards"]},
                ],
                "triggers": [trigger],
            },
        )
    )

    assert found.estimate.step_seconds == found.phases[1].step_seconds


def test_a_reference_that_no_algorithm_reads_does_not_run(tiny):
    found = explain(tiny(nodes={"actor": {"algorithm": {"rewards": {"name": "grpo", "kl": None}}}}))

    assert "start.score" not in found.phases[0].stages


def test_a_dead_edge_costs_nothing(tiny):
    second = {"kind": "reward", "source": {"type": "builtin", "name": "format", "shape": "number"}}
    found = explain(
        tiny(
            nodes={"form": second},
            edges=[
                "problems.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> form.rollouts",
                "exact.scores -> actor.rewards",
                {"from": "form.scores", "to": "actor.rewards", "weight": 0.0},
            ],
        )
    )

    assert "form.score" not in found.phases[0].stages


def test_an_evaluation_is_spread_over_its_steps(tiny):
    held_out = {
        "kind": "dataset",
        "source": {"type": "task", "task": "arithmetic", "split": "test"},
        "rows_per_step": 256,
    }
    probe = {"kind": "evaluate", "instead_of": "problems", "every": 20, "greedy": True}
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]
    without = estimate(tiny(edges=edges))
    spec = tiny(
        nodes={"held_out": held_out, "probe": probe},
        edges=[*edges, "held_out.rows -> probe.rows", "exact.scores -> probe.scores"],
    )
    found = estimate(spec)

    evaluation = _stage(found, "probe.evaluate").seconds
    assert evaluation > 0.01
    assert found.step_seconds == pytest.approx(without.step_seconds + evaluation / 20)


# What is not known


def test_an_unknown_model_is_a_gap_and_no_crash(tiny):
    unknown = {"type": "pretrained", "path": "nobody/nothing", "architecture": None}
    found = explain(tiny(nodes={"actor": {"model": unknown}}))

    gaps = [note for note in found.notes if note.is_gap]
    assert found.estimate.parameters == {}
    assert {note.node for note in gaps} == {"actor", "start"}
    assert "nobody/nothing" in gaps[0].message


def test_a_local_folder_is_read_under_the_root_only(tiny, tmp_path):
    from coloop import presets

    (tmp_path / "mine").mkdir()
    config = presets.architecture("tiny-qwen3-wide")
    (tmp_path / "mine" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    spec = tiny(
        nodes={"actor": {"model": {"type": "pretrained", "path": "mine", "architecture": None}}}
    )

    assert estimate(spec).parameters == {}
    assert estimate(spec, root=tmp_path).parameters["actor"] == 681_024


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hidden_size": "x"}', "\0"])
def test_a_broken_config_is_a_gap(tiny, tmp_path, text):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(text, encoding="utf-8")
    spec = tiny(
        nodes={"actor": {"model": {"type": "pretrained", "path": "mine", "architecture": None}}}
    )

    found = explain(spec, root=tmp_path)

    assert any(note.is_gap for note in found.notes)


def test_unknown_hardware_is_a_gap_and_counted_as_a_processor(grpo):
    found = explain(grpo(hardware={"preset": "3xH900"}))

    assert any("3xH900" in note.message and note.is_gap for note in found.notes)
    assert len(found.estimate.gpus) == 1


def test_an_assumed_length_is_noted(grpo):
    source = {"type": "file", "path": "rows.jsonl", "task": None}
    found = explain(grpo(nodes={"problems": {"source": source}}))

    assert any(note.node == "problems" and "assumed" in note.message for note in found.notes)


def test_unverified_hardware_is_noted(grpo):
    notes = explain(grpo(hardware={"preset": "8xH20"})).notes

    assert any("not verified" in note.message for note in notes)


def test_a_huge_cluster_is_answered_quickly(grpo):
    hardware = {"preset": None, "nodes": 4096, "gpus_per_node": 64, "gpu": "H100-80GB"}

    started = time.thread_time()
    found = estimate(grpo(hardware=hardware))

    assert time.thread_time() - started < 1.0
    assert len(found.gpus) <= 1024


# Any loop


@pytest.mark.skipif(not FILES, reason="the example loops are not here")
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_an_example_loop_is_estimated(file):
    spec = parse(file.read_text(encoding="utf-8")).spec
    assert spec is not None

    found = explain(spec)

    assert found.estimate.step_seconds > 0
    assert all(stage.seconds > 0 for stage in found.estimate.stages)


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

    found = estimate(_loop(document))

    assert found.gpus[0].peak_bytes > 0
    assert all(0 < size < 4e9 for size in found.parameters.values())
    for gpu in found.gpus:
        there = sum(part.bytes for part in gpu.parts if gpu.peak_stage in part.stages)
        assert gpu.peak_bytes == there


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

    found = estimate(_loop(document))

    held = {part.part for gpu in found.gpus for part in gpu.parts if part.node == "writer"}
    assert ("weights" in held) is (engine == "torch")
    assert bool(held) is (engine == "torch")


@pytest.mark.parametrize("flag", ["selective", "offload"])
def test_half_and_offloaded_checkpointing_lie_where_they_should(flag, grpo):
    def learned(value):
        training = {"micro_batch": 4, "gradient_checkpointing": value}
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


# Lengths that the loop says


def _hub(tokens=None):
    source = {"type": "hub", "path": "openai/gsm8k", "task": None}
    return {"source": source, **({"tokens": tokens} if tokens else {})}


def test_lengths_of_unread_rows_are_those_that_the_loop_says(grpo):
    assumed = explain(grpo(nodes={"problems": _hub()}))
    said = explain(grpo(nodes={"problems": _hub({"mean": 2000, "max": 4000})}))

    def learned(found):
        stage = _stage(found.estimate, "actor.learn")
        return stage.tokens_per_second * stage.seconds

    assert learned(said) == pytest.approx(128 * 8 * (2000 + 512))
    assert any("tokens assumed" in note.message for note in assumed.notes)
    assert not any("tokens assumed" in note.message for note in said.notes)


def test_the_mean_length_of_completions_is_what_the_loop_expects(grpo):
    def generated(rollout):
        stage = _stage(estimate(grpo(nodes={"actor": {"rollout": rollout}})), "actor.generate")
        return stage.tokens_per_second * stage.seconds

    assert generated({"expected_tokens": 100}) == pytest.approx(128 * 8 * 100)
    assert generated({}) == pytest.approx(128 * 8 * 512)
    assert generated({"expected_tokens": 9000}) == pytest.approx(128 * 8 * 1024)
