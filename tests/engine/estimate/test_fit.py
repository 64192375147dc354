"""Settings that make a loop fit, in the order of what they cost."""

import pytest

from coloop.plan.cost import estimate
from coloop.plan.cost.solving import fit
from coloop.plan.run_check import check_run
from coloop.spec.paths import get_value

GIB = 2**30


def _changed(found):
    return {change.path: change.new for change in found.changes}


def test_a_loop_that_fits_keeps_what_it_says(grpo):
    found = fit(grpo())

    assert found.fits
    assert all(change.old is None for change in found.changes)


def test_open_settings_are_written_down_once_the_loop_fits(grpo):
    found = fit(grpo())

    assert get_value(found.spec, "nodes.actor.training.gradient_checkpointing") is not None
    assert get_value(found.spec, "nodes.actor.rollout.max_num_seqs") is not None
    assert check_run(found.spec).refusals == ()
    assert estimate(found.spec).fits


def test_rows_at_once_are_the_first_to_go(grpo):
    training = {"micro_batch": 64, "gradient_checkpointing": True, "loss_chunk": 1024}

    found = fit(grpo(nodes={"actor": {"training": training}}), budget_gib=40)

    assert found.fits
    assert _changed(found)["nodes.actor.training.micro_batch"] < 64
    assert "nodes.actor.training.offload" not in _changed(found)


def test_checkpointing_comes_before_offload(grpo):
    training = {"micro_batch": 1, "gradient_checkpointing": False, "loss_chunk": 1024}
    rollout = {"max_new_tokens": 8192}

    found = fit(grpo(nodes={"actor": {"training": training, "rollout": rollout}}))

    assert found.fits
    assert _changed(found)["nodes.actor.training.gradient_checkpointing"] is True
    assert "nodes.actor.training.offload" not in _changed(found)


def test_what_a_run_would_refuse_is_not_offered(grpo):
    """Nothing reads `offload` on a machine, and each process writes with an engine on one GPU."""
    found = fit(grpo(hardware={"preset": "8x4090"}))

    assert not found.fits
    assert not [path for path in _changed(found) if path.endswith("offload")]
    assert all(
        new == 1
        for path, new in _changed(found).items()
        if path.endswith("rollout.tensor_parallel")
    )


def test_a_single_backend_is_sharded_where_there_are_gpus(grpo):
    found = fit(grpo(nodes={"actor": {"training": {"backend": "single"}}}))

    assert found.fits
    assert _changed(found)["nodes.actor.training.backend"] == "fsdp2"


def test_an_engine_that_takes_too_much_gives_some_back(grpo):
    found = fit(grpo(nodes={"actor": {"rollout": {"gpu_memory_utilization": 0.9}}}))

    assert found.fits
    assert _changed(found)["nodes.actor.rollout.gpu_memory_utilization"] < 0.9
    assert found.after.estimate.rollout["actor"].max_concurrent_sequences > 0


@pytest.mark.parametrize("gib", [60, 50, 40])
def test_the_result_stays_within_a_budget_in_gib(grpo, gib):
    found = fit(grpo(), budget_gib=gib)

    assert found.fits
    assert all(gpu.peak_bytes <= gib * GIB for gpu in found.after.estimate.gpus)
    assert found.spec.hardware.memory_budget == pytest.approx(gib / 79.18, rel=0.001)


def test_a_budget_may_be_a_share(grpo):
    found = fit(grpo(), budget_fraction=0.6)

    assert found.fits
    assert _changed(found)["hardware.memory_budget"] == 0.6


def test_what_cannot_fit_says_by_how_much(grpo):
    found = fit(grpo(nodes={"actor": {"model": {"path": "Qwen/Qwen2.5-72B"}}}), budget_gib=4)

    assert not found.fits
    assert found.over_bytes > GIB
    assert found.binding.peak_bytes - found.binding.usable_bytes == found.over_bytes


def test_less_memory_never_makes_a_step_faster(grpo):
    much, little = fit(grpo(), budget_gib=70), fit(grpo(), budget_gib=40)

    assert little.after.estimate.step_seconds >= much.after.estimate.step_seconds


def test_every_change_has_a_reason(grpo):
    found = fit(grpo(hardware={"preset": "8x4090"}))

    assert all(change.reason for change in found.changes)
    assert len({change.path for change in found.changes}) == len(found.changes)


def test_what_a_loop_learns_is_never_changed(grpo):
    found = fit(grpo(hardware={"preset": "8x4090"}))

    kept = ("lora", "mini_batch", "epochs", "max_new_tokens", "completions_per_prompt")
    assert not any(change.path.endswith(kept) for change in found.changes)


def test_a_cpu_loop_fits_as_it_is(tiny):
    found = fit(tiny())

    assert found.fits
    assert estimate(found.spec).parameters == estimate(tiny()).parameters


def test_a_learner_on_one_gpu_of_several_uses_all_where_that_is_faster(grpo):
    """A run refuses it as it is written; only a tight budget would shard it otherwise."""
    spec = grpo(
        nodes={
            "actor": {
                "model": {"path": "Qwen/Qwen2.5-1.5B"},
                "training": {"backend": "single", "mini_batch": 256},
            }
        }
    )
    much, little = fit(spec, budget_fraction=1.0), fit(spec, budget_fraction=0.4)

    assert _changed(much)["nodes.actor.training.backend"] == "fsdp2"
    assert much.refusals == ()
    assert much.after.estimate.step_seconds <= little.after.estimate.step_seconds
    kept = fit(spec, budget_fraction=1.0, locks=["nodes.actor.training.backend"])
    assert "nodes.actor.training.backend" not in _changed(kept)
