"""Every hardware preset loads, and its numbers are those of the table of GPUs."""

import pytest

from coloop.errors import PresetNotFound
from coloop.spec import presets

GIB = 2**30


@pytest.mark.parametrize("name", presets.list_hardware())
def test_a_hardware_preset_is_complete(name):
    machine = presets.hardware(name)

    assert machine.title
    assert machine.description.endswith(".")
    assert 0 < machine.usable_bytes <= machine.capacity_bytes
    assert machine.bandwidth > 0
    assert machine.bf16_flops > 0
    assert 0 < machine.training_share <= 1


@pytest.mark.parametrize("name", [n for n in presets.list_hardware() if n != "cpu"])
def test_a_preset_is_named_by_its_number_of_gpus(name):
    assert presets.hardware(name).gpus == int(name.partition("x")[0])


@pytest.mark.parametrize("name", presets.list_gpus())
def test_a_gpu_says_which_of_its_facts_are_not_verified(name):
    facts = presets.gpu_facts(name)

    known = {"usable_gib", "bandwidth", "bf16_tflops", "link", "memory_gib"}
    assert set(facts.unverified) <= known


def test_usable_bytes_are_what_processes_see_not_what_is_printed():
    assert presets.hardware("8xH100").usable_bytes == round(79.18 * GIB)
    assert presets.hardware("8xH100").capacity_bytes == 80 * GIB
    assert presets.hardware("1xA100-80").usable_bytes == round(79.15 * GIB)
    assert presets.hardware("8xH200").usable_bytes == round(139.8 * GIB)
    assert presets.hardware("1xL40S").usable_bytes == round(44.42 * GIB)
    assert presets.hardware("1x4090").usable_bytes == round(23.58 * GIB)


def test_presets_say_whether_their_numbers_are_verified():
    assert presets.hardware("8xH100").verified
    assert not presets.hardware("8xH20").verified


def test_the_cpu_preset_has_workers_instead_of_gpus():
    cpu = presets.hardware("cpu")

    assert (cpu.gpus, cpu.gpu) == (0, None)
    assert cpu.workers >= 2


def test_the_table_of_gpus_is_no_preset():
    assert presets.GPU_TABLE not in presets.list_hardware()
    with pytest.raises(PresetNotFound):
        presets.hardware(presets.GPU_TABLE)


def test_hardware_that_a_loop_describes_takes_the_facts_of_its_gpu():
    machine = presets.custom_hardware(nodes=2, gpus_per_node=4, gpu="H100-80GB")

    assert machine.gpus == 8
    assert machine.usable_bytes == presets.hardware("8xH100").usable_bytes


def test_an_unknown_gpu_is_answered_with_the_nearest():
    with pytest.raises(PresetNotFound, match="H100-80GB"):
        presets.custom_hardware(nodes=1, gpus_per_node=1, gpu="H100-80")


def test_two_machines_are_two_nodes():
    assert (presets.hardware("16xH100").nodes, presets.hardware("16xH100").gpus_per_node) == (2, 8)
