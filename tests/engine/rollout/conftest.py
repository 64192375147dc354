"""Tiny models of several families, with weights that are not all alike."""

from collections.abc import Callable

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from coloop.models import character_tokenizer
from coloop.workers.rollout import Generation, TorchEngine

SIZES = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.15,
}
LEAN = {
    "qwen3": {"model_type": "qwen3", "head_dim": 32, "tie_word_embeddings": True},
    "qwen3-wide-heads": {"model_type": "qwen3", "head_dim": 48, "num_key_value_heads": 4},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
    "llama": {"model_type": "llama", "num_key_value_heads": 1},
    "llama-bias": {"model_type": "llama", "attention_bias": True},
    "llama-3-rope": {
        "model_type": "llama",
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
    "qwen2-yarn": {
        "model_type": "qwen2",
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
}
FOREIGN = {
    "mistral-window": {"model_type": "mistral", "sliding_window": 6},
    "gemma2": {"model_type": "gemma2", "head_dim": 16, "sliding_window": 6},
    "gemma3": {
        "model_type": "gemma3_text",
        "head_dim": 16,
        "sliding_window": 6,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "gpt2": {
        "model_type": "gpt2",
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 128,
    },
}
FAMILIES = LEAN | FOREIGN


def build(family: str, **sizes: int) -> PreTrainedModel:
    """A small model of a family; norms and biases are moved from their start values."""
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    facts = {**SIZES, **FAMILIES[family], **ends, **sizes}
    config = AutoConfig.for_model(**facts)
    generator = torch.Generator().manual_seed(3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


@pytest.fixture(scope="session")
def models() -> Callable[[str], PreTrainedModel]:
    """Models by family, built once."""
    built: dict[str, PreTrainedModel] = {}

    def model_of(family: str) -> PreTrainedModel:
        if family not in built:
            built[family] = build(family)
        return built[family]

    return model_of


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return character_tokenizer()


@pytest.fixture(scope="session")
def engine(
    models: Callable[[str], PreTrainedModel], tokenizer: PreTrainedTokenizerFast
) -> TorchEngine:
    return TorchEngine(models("qwen3"), tokenizer)


@pytest.fixture(scope="session")
def prompts() -> list[list[int]]:
    """Ragged prompts, two of them equal."""
    generator = torch.Generator().manual_seed(1)
    ragged = [
        torch.randint(3, 128, (length,), generator=generator).tolist()
        for length in (5, 1, 9, 14, 3, 8)
    ]
    return [*ragged, ragged[2]]


def request(prompt_ids: list[int], **options: object) -> Generation:
    """A request with the settings that a test does not care about."""
    settings = {"id": "row", "seed": 0, "max_new_tokens": 8, **options}
    return Generation(prompt_ids=prompt_ids, **settings)


@pytest.fixture(scope="session")
def ask() -> Callable[..., Generation]:
    return request


@pytest.fixture(scope="session")
def written_by_transformers() -> Callable[..., list[list[int]]]:
    """Greedy completions of `generate()` for a ragged batch; cut at their end of text."""

    def write(
        model: PreTrainedModel, prompts: list[list[int]], count: int, **options: object
    ) -> list[list[int]]:
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
        real = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
        config = GenerationConfig(
            max_new_tokens=count, do_sample=False, eos_token_id=2, pad_token_id=0, **options
        )
        with torch.inference_mode():
            written = model.generate(ids, attention_mask=real, generation_config=config)
        rows = written[:, longest:].tolist()
        return [row[: row.index(2) + 1] if 2 in row else row for row in rows]

    return write


@pytest.fixture(scope="session")
def scored_by_forward() -> Callable[..., list[float]]:
    """Log-probs of a completion by one plain forward of the whole text."""

    def score(
        model: PreTrainedModel, prompt: list[int], completion: list[int], temperature: float = 1.0
    ) -> list[float]:
        ids = torch.tensor([prompt + completion])
        with torch.inference_mode():
            log_p = torch.log_softmax(model(ids).logits[0].double() / temperature, dim=-1)
        places = range(len(prompt) - 1, len(prompt) + len(completion) - 1)
        return [float(log_p[p, token]) for p, token in zip(places, completion, strict=True)]

    return score
