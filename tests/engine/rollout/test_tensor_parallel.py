"""vLLM engines that several processes share, each with a part of every layer."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from tests.engine.rollout.conftest import build
from tests.engine.training.processes import on_ranks

from coloop.models import character_tokenizer
from coloop.workers.rollout import Generation, TorchEngine
from coloop.workers.rollout.isolated_groups import EngineRank
from coloop.workers.rollout.vllm_engine import VllmEngine
from coloop.workers.training import Ranks

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]

LOGITS = 10.0
PROMPTS = [[5, 6, 7], [5, 6, 7, 8, 9, 10], [20, 21]]


def model_of(family: str, shift: float = 1.0) -> Any:
    model = build(family, num_attention_heads=4, num_key_value_heads=2, head_dim=32)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(shift)
    return model


def requests() -> list[Generation]:
    settings: list[dict[str, Any]] = [
        {},
        {"temperature": 0.7, "top_p": 0.8},
        {"temperature": 1.3, "top_k": 9},
        {"temperature": 0.0},
    ]
    return [
        Generation(
            id=str(i),
            prompt_ids=PROMPTS[i % 3],
            seed=50 + i,
            max_new_tokens=12,
            **({"temperature": 1.0, "top_p": 1.0, "top_k": None} | settings[i % 4]),
        )
        for i in range(8)
    ]


def use(ranks: Ranks, family: str) -> dict[str, Any]:
    """What one rank's engine writes and scores, before and after new weights."""
    rank = EngineRank(rank=ranks.rank, size=ranks.size)
    engine = VllmEngine(model_of(family), character_tokenizer(), max_num_seqs=8, rank=rank)
    before = generate(engine, requests())
    held = sum(
        weight.numel()
        for weight in engine._vllm.model_executor.driver_worker.get_model().parameters()
    )
    engine.load_weights(model_of(family, 1.05).named_parameters(), 1)
    found = {
        "before": [text.token_ids for text in before],
        "log_probs": [text.log_probs for text in before],
        "after": [text.token_ids for text in generate(engine, requests())],
        "scores": engine.score(PROMPTS),
        "held": held,
        "agreed": [engine.agreed(ranks.is_first), engine.agreed(False)],
    }
    engine.close()
    found["summed"] = ranks.summed(torch.ones(1)).item()  # the pool's own group still works
    return found


@pytest.mark.parametrize("family", ["qwen3", "llama-bias"])
def test_two_ranks_write_and_score_as_one_process(family: str, tmp_path: Path) -> None:
    tokenizer = character_tokenizer()
    before = generate(TorchEngine(model_of(family), tokenizer), requests())
    newer = TorchEngine(model_of(family, 1.05), tokenizer)
    after, scores = generate(newer, requests()), newer.score(PROMPTS)
    whole = sum(weight.numel() for weight in model_of(family).parameters())
    terms = forward_terms(model_of(family), 40)

    for found in on_ranks(2, use, tmp_path, family):
        assert found["before"] == [text.token_ids for text in before]
        assert found["after"] == [text.token_ids for text in after]
        for ours, theirs in zip(found["log_probs"], before, strict=True):
            assert ours == near(list(theirs.log_probs), terms=terms, scale=LOGITS)
        for ours, theirs in zip(found["scores"], scores, strict=True):
            assert ours == near(list(theirs), terms=terms, scale=LOGITS)
        assert found["held"] < 0.75 * whole
        assert found["agreed"] == [True, False]
        assert found["summed"] == 2.0
