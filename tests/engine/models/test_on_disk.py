"""Models whose weights lie on disk otherwise than in memory: what is written is what everybody
reads, and what is read has the model's own names."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.engine.models.architectures import make_model
from transformers import AutoModelForCausalLM, PreTrainedModel

from coloop.models import load_weights, save_hf
from coloop.models.folder import read_weights
from coloop.models.on_disk import to_disk
from coloop.models.tokenizer import byte_tokenizer

FUSED = ("mixtral", "qwen3_moe", "glm4_moe", "deepseek_v3", "ernie4_5_moe", "gpt_oss")


def same_weights(found: dict[str, torch.Tensor], model: PreTrainedModel) -> bool:
    return all(torch.equal(found[name], one) for name, one in model.named_parameters())


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", FUSED)
def test_a_mixture_of_experts_is_saved_as_everybody_reads_it(kind: str, tmp_path: Path) -> None:
    model = make_model(kind)

    save_hf(tmp_path / "model", model, byte_tokenizer())

    again = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    ids = torch.arange(12)[None, :]
    with torch.inference_mode():
        assert torch.equal(again(ids).logits, model(ids).logits)
    assert same_weights(load_weights(tmp_path / "model"), model)
    assert same_weights(load_weights(tmp_path / "model", model), model)


def test_experts_lie_apart_on_disk(tmp_path: Path) -> None:
    model = make_model("qwen3_moe")
    fused = dict(model.named_parameters())["model.layers.0.mlp.experts.gate_up_proj"]

    save_hf(tmp_path / "model", model, byte_tokenizer())

    saved = load_file(tmp_path / "model" / "model.safetensors")
    gate, up = fused[1].chunk(2)
    assert torch.equal(saved["model.layers.0.mlp.experts.1.gate_proj.weight"], gate)
    assert torch.equal(saved["model.layers.0.mlp.experts.1.up_proj.weight"], up)


@pytest.mark.parametrize("kind", FUSED)
def test_a_part_at_a_time_is_what_transformers_writes_at_once(kind: str, tmp_path: Path) -> None:
    model = make_model(kind)
    model.save_pretrained(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    weights = model.state_dict()

    made = dict(to_disk(model).streamed(weights, weights.items()))

    tied = set(weights) - dict(model.named_parameters()).keys() - dict(model.named_buffers()).keys()
    assert set(made) - set(saved) <= tied
    assert all(torch.equal(made[name], one) for name, one in saved.items())


def test_experts_of_one_layer_in_several_files_are_read_together(tmp_path: Path) -> None:
    model = make_model("mixtral")
    model.save_pretrained(tmp_path, max_shard_size="20KB")

    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    assert same_weights(dict(read_weights(tmp_path)), model)
