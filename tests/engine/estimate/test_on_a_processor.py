"""Loops on a CPU: places, processes and types."""

import pytest
from tests.engine.estimate.conftest import parts_of

from coloop.plan.cost import estimate
from coloop.plan.settings import processor
from coloop.plan.settings.processor import Processor

GIB = 2**30
SPREAD = {"backend": "fsdp2", "reshard_after_forward": True}


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
    monkeypatch.setattr(processor, "processor_here", lambda: here)

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


def test_matrices_that_are_laid_out_for_long_texts_are_held_twice(tiny):
    def weights(tokens, **model):
        actor = {"rollout": {"max_new_tokens": tokens}, "model": model}
        found = estimate(tiny(nodes={"actor": actor}))
        return parts_of(found.gpus[0], "weights", "actor"), found.parameters["actor"]

    (short, parameters), (long, _) = weights(31), weights(32)

    assert long - short == 4 * parameters
    assert weights(31, architecture="qwen3-0.6b") == weights(32, architecture="qwen3-0.6b")


def test_a_processor_computes_in_full_precision(tiny):
    gpu = estimate(tiny()).gpus[0]

    resting = [p for p in gpu.parts if p.node == "actor" and p.part == "optimizer"]
    assert resting[0].bytes == 8 * estimate(tiny()).parameters["actor"]
