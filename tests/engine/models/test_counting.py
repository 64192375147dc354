"""Parameters of every kind of architecture, counted on the model that transformers builds: the
numbers are those of its own defaults."""

import pytest

from coloop.models.counting import count

COUNTS = {
    "gpt2": 124_439_808,
    "falcon": 6_921_720_704,
    "gpt_oss": 116_829_156_672,
    "mixtral": 46_702_792_704,
    "ernie4_5_moe": 21_825_437_888,
    "qwen3_5_moe": 34_660_610_688,
    "qwen3_5": 8_953_803_264,
    "gemma3n": 6_835_235_568,
    "nemotron_h": 1_968_355_712,
    "deepseek_v3": 671_026_404_352,
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("kind", COUNTS)
def test_the_count_is_exact(kind):
    assert count({"model_type": kind})["total"] == COUNTS[kind]


def test_a_mixture_tells_what_one_token_meets():
    found = count({"model_type": "mixtral"})

    assert found["active"] == 12_879_925_248
    assert found["experts"]["experts"] == 8
    assert found["experts"]["active"] == 2
    assert found["experts"]["ffn"] == 14_336


def test_one_key_head_of_many_queries_is_seen_in_the_matrices():
    found = count({"model_type": "falcon"})

    assert (found["heads"], found["kv_heads"], found["head_dim"]) == (71, 1, 64)


def test_layers_that_keep_a_state_keep_no_keys():
    found = count({"model_type": "qwen3_5"})

    assert sum(cache["layers"] for cache in found["caches"]) == found["layers"] // 4


def test_a_composite_is_counted_by_its_text_model():
    text = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "vocab_size": 500,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
    }

    found = count({"model_type": "gemma3", "text_config": text})

    assert found["hidden_size"] == 64
    assert found["layers"] == 2
    assert found["vocab_size"] == 500
