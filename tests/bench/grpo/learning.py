"""How well arms learn: greedy accuracy on held-out sums after the same number of steps, by seed."""

import tempfile
from pathlib import Path

import torch
from tests.bench.grpo.folders import held_out_file, rows_file, warmed
from tests.bench.grpo.turns import Arm, train
from tests.bench.grpo.work import Work, read_rows, score
from transformers import AutoModelForCausalLM, AutoTokenizer

from coloop.models.tokenizer import decode, encode_prompt
from coloop.rollout import GenerationRequest, TorchEngine, generate

NEW_TOKENS = 4
LEARNING_RATE = 5e-4


def accuracy(folder: Path) -> float:
    """Share of the held-out sums that the model answers, greedy and in float32."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    engine = TorchEngine(model.eval(), tokenizer)
    rows = read_rows(str(held_out_file()))
    requests = [
        GenerationRequest(
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


def learned(arms: dict[str, tuple[str, dict[str, object]]], seeds: tuple[int, ...], steps: int):
    """Accuracy of each arm by seed, and of the start.

    Args:
        arms: module and further settings of each.
    """
    start = warmed()
    found: dict[str, list[float]] = {name: [] for name in arms}
    for seed in seeds:
        for name, (module, settings) in arms.items():
            with tempfile.TemporaryDirectory(prefix="bench-learned-") as place:
                kept = Path(place) / "model"
                work = Work(
                    size="1M",
                    folder=str(start),
                    rows=str(rows_file()),
                    new_tokens=NEW_TOKENS,
                    reward="answer",
                    seed=seed,
                    steps=steps,
                    learning_rate=LEARNING_RATE,
                    keep=str(kept),
                ).with_(**settings)
                train(Arm(name=name, module=module, work=work), steps)
                found[name].append(accuracy(kept))
    return accuracy(start), found
