"""`coloop estimate MODEL`: of public models a right number or a plain refusal."""

import json

import pytest

IDS = {
    "Qwen/Qwen2.5-7B-Instruct": (7_615_616_512, 57_344),
    "Qwen/Qwen2.5-32B-Instruct": (32_763_876_352, 262_144),
    "Qwen/Qwen3-0.6B": (596_049_920, 2 * 28 * 8 * 128 * 2),
    "Qwen/Qwen3-8B": (8_190_735_360, 147_456),
    "Qwen/Qwen3-30B-A3B": (30_532_122_624, 98_304),
    "meta-llama/Llama-3.1-8B-Instruct": (8_030_261_248, 131_072),
    "meta-llama/Llama-3.1-70B-Instruct": (70_553_706_496, 327_680),
    "mistralai/Mistral-7B-v0.1": (7_241_732_096, 2 * 32 * 8 * 128 * 2),
    "google/gemma-2-9b-it": (9_241_705_984, 2 * 42 * 8 * 256 * 2),
    "deepseek-ai/DeepSeek-V3": (671_026_419_200, 70_272),
}
"""Parameters, and bytes of a token in a bfloat16 cache: 2 x layers x heads x width x 2."""

LLAMA = {"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32}
FOLDERS = {
    "microsoft/phi-4": (
        14_659_507_200,
        2 * 40 * 10 * 128 * 2,
        {
            "model_type": "phi3",
            "vocab_size": 100352,
            "hidden_size": 5120,
            "intermediate_size": 17920,
            "num_hidden_layers": 40,
            "num_attention_heads": 40,
            "num_key_value_heads": 10,
            "tie_word_embeddings": False,
        },
    ),
    "HuggingFaceTB/SmolLM2-1.7B": (
        1_711_376_384,
        2 * 24 * 32 * 64 * 2,
        {
            **LLAMA,
            "vocab_size": 49152,
            "intermediate_size": 8192,
            "num_hidden_layers": 24,
            "num_key_value_heads": 32,
            "tie_word_embeddings": True,
        },
    ),
    "openai/gpt-oss-20b": (
        20_914_757_184,
        2 * 24 * 8 * 64 * 2,
        {
            "model_type": "gpt_oss",
            "vocab_size": 201088,
            "hidden_size": 2880,
            "intermediate_size": 2880,
            "num_hidden_layers": 24,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "num_local_experts": 32,
            "num_experts_per_tok": 4,
            "attention_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    "EleutherAI/pythia-6.9b": (
        6_857_302_016,
        2 * 32 * 32 * 128 * 2,
        {
            "model_type": "gpt_neox",
            "vocab_size": 50432,
            "hidden_size": 4096,
            "intermediate_size": 16384,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "attention_bias": True,
        },
    ),
    "bigscience/bloom-560m": (
        559_214_592,
        2 * 24 * 16 * 64 * 2,
        {
            "model_type": "bloom",
            "vocab_size": 250880,
            "hidden_size": 1024,
            "n_layer": 24,
            "n_head": 16,
        },
    ),
    "facebook/opt-1.3b": (
        1_315_758_080,
        2 * 24 * 32 * 64 * 2,
        {
            "model_type": "opt",
            "vocab_size": 50272,
            "hidden_size": 2048,
            "ffn_dim": 8192,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 2048,
            "do_layer_norm_before": True,
            "enable_bias": True,
        },
    ),
    "openai-community/gpt2-xl": (
        1_557_611_200,
        2 * 48 * 25 * 64 * 2,
        {
            "model_type": "gpt2",
            "vocab_size": 50257,
            "n_embd": 1600,
            "n_layer": 48,
            "n_head": 25,
            "n_positions": 1024,
        },
    ),
    "microsoft/phi-2": (
        2_779_683_840,
        2 * 32 * 32 * 80 * 2,
        {
            "model_type": "phi",
            "vocab_size": 51200,
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "tie_word_embeddings": False,
        },
    ),
    "allenai/OLMoE-1B-7B-0924": (
        6_919_161_856,
        2 * 16 * 16 * 128 * 2,
        {
            "model_type": "olmoe",
            "vocab_size": 50304,
            "hidden_size": 2048,
            "intermediate_size": 1024,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "tie_word_embeddings": False,
        },
    ),
    "deepseek-ai/DeepSeek-V2-Lite": (
        15_706_484_224,
        27 * (512 + 64) * 2,
        {
            "model_type": "deepseek_v2",
            "vocab_size": 102400,
            "hidden_size": 2048,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "num_hidden_layers": 27,
            "num_attention_heads": 16,
            "kv_lora_rank": 512,
            "q_lora_rank": None,
            "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128,
            "v_head_dim": 128,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "tie_word_embeddings": False,
        },
    ),
}
"""Published parameters of the checkpoints, bytes of a token, and fields of their config.json."""


@pytest.mark.parametrize("model", IDS)
def test_a_known_id_has_its_published_size(coloop, model):
    found = coloop("estimate", model, "--json").json
    total, token = IDS[model]

    assert found["parameters"]["total"] == total
    assert found["kv_cache"]["bytes_per_token"] == token
    assert found["weights_bytes"]["bfloat16"] == 2 * total


@pytest.mark.parametrize("model", FOLDERS)
def test_a_folder_has_the_size_of_its_config(coloop, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coloop.plan.settings.counted._built", lambda config: pytest.fail(config))
    total, token, config = FOLDERS[model]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")

    found = coloop("estimate", "model", "--json").json

    assert found["parameters"]["total"] == total
    assert found["kv_cache"]["bytes_per_token"] == token


@pytest.mark.parametrize(
    "model", ["nobody/nothing-7b", "openai/gpt-oss-20b", "Qwen/Qwen2.5-7B-Instuct"]
)
def test_an_unknown_id_is_refused_in_words(coloop, model):
    found = coloop("estimate", model)

    assert found.code == 1
    assert "is not known" in found.err
    assert "config.json" in found.err
    assert "GiB" not in found.out


def test_sizes_are_printed_for_people(coloop):
    found = coloop("estimate", "Qwen/Qwen3-30B-A3B")

    assert found.code == 0
    assert "30,532,122,624" in found.out
    assert "active for a token" in found.out
    assert "56.9 GiB" in found.out  # 2 x 30,532,122,624 / 2^30


def test_a_mistyped_file_is_still_a_file(coloop):
    assert "not found" in coloop("estimate", "folder/loop.yaml").err


# What cannot run has no numbers


def test_an_engine_that_cannot_start_has_no_cache(coloop):
    model = "nodes.actor.model.path=Qwen/Qwen2.5-72B-Instruct"
    found = coloop("estimate", "grpo-qwen2.5-7b-8xH100", "--set", model, "--json").json

    assert found["rollout"] == {}
    assert found["step_seconds"] is None
    assert all(s["seconds"] is None for s in found["stages"] if s["stage"].startswith("actor.g"))


# `coloop place` and `coloop fit --json`


def test_a_placement_is_suggested_and_written(coloop, tmp_path):
    out = tmp_path / "placed.yaml"
    found = coloop("place", "cooper-qwen2.5-1.5b-8xH100", "--json", "--out", str(out)).json

    assert found["suggested"]["step_seconds"] < found["yours"]["step_seconds"]
    assert {change["path"] for change in found["changes"]} >= {"hardware.pools"}
    placed = coloop("estimate", str(out), "--json").json
    assert placed["step_seconds"] == pytest.approx(found["suggested"]["step_seconds"])


def test_no_suggestion_has_a_reason(coloop):
    found = coloop("place", "grpo-qwen2.5-7b-8xH100")

    assert found.code == 0
    assert "no other is suggested" in found.out


def test_fitting_in_json_has_ways_if_nothing_fits(coloop):
    model = "nodes.actor.model.path=Qwen/Qwen2.5-32B-Instruct"
    found = coloop("fit", "grpo-qwen2.5-7b-8xH100", "--set", model, "--json")
    told = found.json

    assert found.code == 1
    assert told["fits"] is False
    assert told["over_bytes"] > 0
    titles = [way["title"] for way in told["ways"]]
    assert titles[0] == "Allow 97% of the memory"
    [other] = [way for way in told["ways"] if way["title"].startswith("Run on 8x")]
    assert other["changes"][0]["path"] == "hardware.preset"
    assert not any("tensor_parallel" in change["path"] for change in told["changes"])


def test_a_loop_with_an_adapter_is_not_told_to_use_one(coloop):
    lora = "nodes.actor.model.lora={rank: 32}"
    found = coloop(
        "fit", "grpo-qwen2.5-7b-8xH100", "--set", lora, "--set", "hardware={preset: 1x4090}"
    )

    assert found.code == 1
    assert "adapter" not in found.out
