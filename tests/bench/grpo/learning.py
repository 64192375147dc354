"""How well arms learn: greedy accuracy on held-out sums after the same number of steps, by seed.

All begin at one model, which answers about a quarter of the sums, and draw the same number of rows
of the sums that are not held out. A seed decides which rows come when and what is drawn; no two
arms draw alike.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import torch
from tests.bench.grpo.folders import held_out_file, rows_file, warmed
from tests.bench.grpo.turns import Arm, train
from tests.bench.grpo.work import Work, read_rows, score
from tests.engine.generating import generate
from transformers import AutoModelForCausalLM, AutoTokenizer

from coloop.models.tokenizer import decode, encode_prompt
from coloop.workers.rollout import Generation, TorchEngine

NEW_TOKENS = 4
LEARNING_RATE = 2e-4
STEPS = 300
SEEDS = (1, 2, 3, 4, 5, 6, 7, 8)
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "TRL": ("trl_arm", {"precision": "float32"}),
    "float32": ("own_arm", {"precision": "float32"}),
    "bfloat16": ("own_arm", {"precision": "bfloat16"}),
}
"""Module and settings of each: TRL in float32, and ours in either precision."""


def accuracy(folder: Path) -> float:
    """Share of the held-out sums that the model answers, greedy and in float32."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    engine = TorchEngine(model.eval(), tokenizer)
    rows = read_rows(str(held_out_file()))
    requests = [
        Generation(
            id=str(number),
            prompt_ids=encode_prompt(tokenizer, row["prompt"]),
            seed=0,
            max_new_tokens=NEW_TOKENS,
            greedy=True,
        )
        for number, row in enumerate(rows)
    ]
    texts = [decode(tokenizer, one.token_ids) for one in generate(engine, requests)]
    right = [score("answer", text, row["answer"]) for text, row in zip(texts, rows, strict=True)]
    return sum(right) / len(right)


def learned(arm: str, seed: int) -> float:
    """Held-out accuracy of an arm after its steps."""
    module, settings = LEARNERS[arm]
    with tempfile.TemporaryDirectory(prefix="bench-learned-") as place:
        kept = Path(place) / "model"
        work = Work(
            size="1M",
            folder=str(warmed()),
            rows=str(rows_file()),
            new_tokens=NEW_TOKENS,
            reward="answer",
            seed=seed,
            steps=STEPS,
            learning_rate=LEARNING_RATE,
            keep=str(kept),
            threads=1,
        ).with_(**settings)
        train(Arm(name=arm, module=module, work=work), STEPS)
        return accuracy(kept)


def differences(found: Mapping[str, Mapping[str, float]], over: str, under: str) -> list[float]:
    """Of two arms' accuracies, for the seeds that both have."""
    own, other = found.get(over, {}), found.get(under, {})
    return [own[seed] - other[seed] for seed in own if seed in other]


def noise_of(values: Sequence[float]) -> float:
    """Two standard errors of the mean."""
    return 2 * stdev(values) / len(values) ** 0.5
