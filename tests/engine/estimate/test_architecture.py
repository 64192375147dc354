"""Parameter counts and cache sizes are exact."""

import pytest

from coloop.plan.settings.architecture import (
    UnknownArchitecture,
    architecture_from_config,
    count_parameters,
    kv_bytes_per_token,
)
from coloop.spec import presets

TOTALS = {
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-3-1b": 999_885_952,
    "deepseek-v3": 671_026_419_200,  # 58 layers carry a bias of 256 that balances the experts
}
ACTIVE = {
    "qwen3-30b-a3b": 3_353_032_704,
    "qwen3-235b-a22b": 22_190_763_520,
    "mixtral-8x7b": 12_879_925_248,
}
CACHE = {
    "llama-3.1-8b": 131_072,
    "llama-3.1-70b": 327_680,
    "qwen2.5-7b": 57_344,
    "qwen2.5-14b": 196_608,
    "qwen2.5-32b": 262_144,
    "qwen3-8b": 147_456,
    "qwen3-30b-a3b": 98_304,
    "deepseek-v3": 70_272,
}


def _architecture(name):
    return architecture_from_config(presets.architecture(name), name)


@pytest.mark.parametrize(("name", "total"), TOTALS.items())
def test_the_count_equals_the_model_that_transformers_builds(name, total):
    assert count_parameters(_architecture(name)).total == total


@pytest.mark.parametrize(("name", "active"), ACTIVE.items())
def test_a_token_passes_through_the_active_experts_only(name, active):
    assert count_parameters(_architecture(name)).active == active


@pytest.mark.parametrize(("name", "size"), CACHE.items())
def test_the_cache_of_one_token_has_its_published_size(name, size):
    assert kv_bytes_per_token(_architecture(name)) == size


def test_a_score_head_replaces_the_output_matrix():
    untied = _architecture("qwen2.5-7b")

    words, score = count_parameters(untied), count_parameters(untied, "score")

    assert words.total - score.total == 152064 * 3584 - 3584


def test_a_score_head_comes_on_top_where_embeddings_are_tied():
    tied = _architecture("qwen2.5-0.5b")

    assert count_parameters(tied, "score").total == count_parameters(tied).total + 896


def test_decoding_reads_everything_but_the_input_embedding():
    untied, tied = _architecture("qwen2.5-7b"), _architecture("qwen2.5-0.5b")

    assert count_parameters(untied).decoded == 7_615_616_512 - 152064 * 3584
    assert count_parameters(tied).decoded == 494_032_768


def test_tensor_parallel_ranks_share_the_cache_until_each_has_one_head():
    qwen = _architecture("qwen2.5-7b")  # 4 key heads

    assert kv_bytes_per_token(qwen, tensor_parallel=2) == 57_344 / 2
    assert kv_bytes_per_token(qwen, tensor_parallel=8) == 57_344 / 4


def test_latent_attention_is_not_shared_by_tensor_parallel_ranks():
    assert kv_bytes_per_token(_architecture("deepseek-v3"), tensor_parallel=8) == 70_272


def test_a_sliding_window_stops_the_cache_of_its_layers():
    gemma = _architecture("gemma-2-2b")  # 13 of 26 layers see 4096 tokens

    assert kv_bytes_per_token(gemma, context=4096) == 106_496
    assert kv_bytes_per_token(gemma, context=8192) == 106_496 * 0.75


def test_a_composite_config_is_read_through_its_text_part():
    inner = presets.architecture("qwen2.5-0.5b")

    assert architecture_from_config({"model_type": "qwen2_vl", "text_config": inner}).layers == 24


def test_a_config_without_the_facts_is_refused_by_name():
    with pytest.raises(UnknownArchitecture, match="cannot be built"):
        architecture_from_config({"model_type": "nobodys", "num_attention_heads": 12}, "mine")


def test_the_tiny_architecture_of_the_quick_start_is_about_a_fifth_of_a_million():
    tiny = _architecture("tiny-qwen3")

    assert 150_000 < count_parameters(tiny).total < 250_000
    assert (tiny.hidden_size, tiny.head_dim) == (64, 32)
