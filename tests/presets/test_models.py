"""Every architecture preset is complete, counts, and is found by its names."""

import pytest

from coloop.errors import PresetNotFound
from coloop.plan.settings.architecture import architecture_from_config, count_parameters
from coloop.spec import presets

FACTS = {
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "tie_word_embeddings",
    "max_position_embeddings",
    "rope_theta",
    "rms_norm_eps",
    "hidden_act",
    "initializer_range",
}


@pytest.mark.parametrize("name", presets.list_models())
def test_an_architecture_has_every_fact_a_config_needs(name):
    preset = presets.model(name)

    assert preset.architecture.keys() >= FACTS
    assert preset.title
    assert preset.description.endswith(".")


@pytest.mark.parametrize("name", presets.list_models())
def test_an_architecture_can_be_counted_exactly(name):
    arch = architecture_from_config(presets.architecture(name), name)

    assert arch.is_exact
    assert 0 < count_parameters(arch).active <= count_parameters(arch).total


@pytest.mark.parametrize("name", [n for n in presets.list_models() if n.startswith("tiny-")])
def test_tiny_architectures_use_a_head_size_that_cpu_kernels_accept(name):
    assert presets.architecture(name)["head_dim"] == 32


def test_no_two_presets_claim_one_hub_id():
    claimed = [alias.lower() for n in presets.list_models() for alias in presets.model(n).aliases]

    assert len(claimed) == len(set(claimed))


def test_every_hub_id_leads_to_its_preset():
    for name in presets.list_models():
        for alias in presets.model(name).aliases:
            assert presets.model(alias).name == name


def test_a_hub_id_can_differ_in_single_facts():
    instruct = presets.architecture("Qwen/Qwen2.5-7B-Instruct")
    base = presets.architecture("Qwen/Qwen2.5-7B")

    assert instruct["max_position_embeddings"] == 32768
    assert base["max_position_embeddings"] == 131072


def test_letter_case_does_not_matter():
    assert presets.model("QWEN2.5-7b").name == "qwen2.5-7b"
    assert presets.model("qwen/qwen2.5-7b-instruct").name == "qwen2.5-7b"


def test_an_unknown_architecture_is_answered_with_the_nearest():
    with pytest.raises(PresetNotFound, match=r"'tiny-qwen'.*tiny-qwen3"):
        presets.model("tiny-qwen")


def test_an_architecture_is_a_copy_that_callers_may_change():
    presets.architecture("tiny-qwen3")["vocab_size"] = 1

    assert presets.architecture("tiny-qwen3")["vocab_size"] != 1
