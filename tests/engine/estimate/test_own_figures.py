"""A GPU by its own figures, and what a run costs."""

import pytest

from coloop.errors import PresetNotFound
from coloop.plan.cost import explain
from coloop.plan.cost.solving import fit, solve
from coloop.plan.cost.ways import ways_of
from coloop.spec import presets
from coloop.spec.io import parse
from coloop.spec.placement import GpuFigures, Hardware
from coloop.validate import validate

OWN = {"memory_gib": 94, "bf16_tflops": 800, "bandwidth": 3900, "link": 400}


def test_any_gpu_is_known_by_its_figures():
    section = Hardware(nodes=2, gpus_per_node=4, gpu="H100-NVL", figures=GpuFigures(**OWN))
    found = presets.hardware_of(section)

    assert (found.gpus, found.usable_bytes) == (8, 94 * 2**30)
    assert found.bf16_flops == 800e12
    assert found.bandwidth == 3900e9
    assert found.link_bandwidth == 400e9


def test_figures_replace_those_of_a_known_gpu():
    known = presets.hardware("8xH100")
    found = presets.hardware_of(Hardware(preset="8xH100", figures=GpuFigures(memory_gib=70)))

    assert found.usable_bytes == 70 * 2**30
    assert (found.name, found.bandwidth, found.gpus) == ("8xH100", known.bandwidth, 8)


def test_what_an_unknown_gpu_lacks_is_named(grpo):
    figures = {"memory_gib": 94}
    with pytest.raises(PresetNotFound, match="bf16_tflops and bandwidth"):
        presets.hardware_of(
            Hardware(nodes=1, gpus_per_node=8, gpu="Mine", figures=GpuFigures(**figures))
        )
    hardware = {"preset": None, "nodes": 1, "gpus_per_node": 8, "gpu": "Mine", "figures": figures}
    [found] = validate(grpo(hardware=hardware)).errors
    assert (found.code, found.field) == (
        "placement.unknown_preset",
        "hardware.figures.bf16_tflops",
    )
    assert "bandwidth" in found.message


def test_a_processor_has_no_such_figures():
    text = "coloop: 1\nname: one\nhardware: {preset: cpu, figures: {memory_gib: 3}}\n"
    [found] = [one for one in parse(text).diagnostics if one.field == "hardware.figures"]

    assert "belongs only to hardware with GPUs" in found.message


def test_gpu_hours_and_cost_are_those_of_the_whole_run(grpo):
    priced = explain(grpo(hardware={"preset": "8xH100", "price_per_gpu_hour": 2.5}))
    free = explain(grpo())

    assert priced.total_seconds is not None
    assert priced.gpu_hours == pytest.approx(priced.total_seconds * 8 / 3600)
    assert priced.cost == pytest.approx(priced.gpu_hours * 2.5)
    assert (free.gpu_hours, free.cost) == (priced.gpu_hours, None)


def test_what_does_not_fit_costs_nothing_that_is_known(grpo):
    figures = {
        "preset": None,
        "nodes": 1,
        "gpus_per_node": 8,
        "gpu": "Mine",
        "figures": OWN | {"memory_gib": 12},
    }
    found = explain(grpo(hardware=figures | {"price_per_gpu_hour": 1}))

    assert (found.total_seconds, found.gpu_hours, found.cost) == (None, None, None)


# Ways


def test_more_of_ones_own_gpus_are_a_way(grpo):
    hardware = {"preset": None, "nodes": 1, "gpus_per_node": 1, "gpu": "Mine", "figures": OWN}
    spec = grpo(hardware=hardware, nodes={"actor": {"rollout": {"tensor_parallel": 1}}})
    failed = solve(spec)
    assert not failed.fits

    titles = {way.title: way for way in ways_of(spec, failed, ()) if way.touches == "hardware"}

    [way] = [way for title, way in titles.items() if title.startswith("Run on")]
    assert way.title == "Run on 2xMine"
    assert way.step_seconds is not None


def test_a_failing_fit_changes_nothing_that_it_need_not(grpo):
    model = {"actor": {"model": {"path": "Qwen/Qwen2.5-72B-Instruct"}}}
    found = fit(grpo(nodes=model))

    assert not found.fits
    assert not any("training" in change.path for change in found.changes)
    assert found.over_bytes <= max(
        gpu.peak_bytes - gpu.usable_bytes for gpu in found.before.estimate.gpus
    )


def test_an_adapter_is_not_a_way_for_a_loop_that_has_one(grpo):
    nodes = {"actor": {"model": {"lora": {"rank": 16}}}}
    spec = grpo(nodes=nodes, hardware={"preset": "1x4090"})
    failed = solve(spec)
    assert not failed.fits

    for way in ways_of(spec, failed, ()):
        assert not any(change.path.endswith("model.lora") for change in way.changes)
