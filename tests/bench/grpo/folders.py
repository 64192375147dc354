"""Model folders and rows of the GRPO bench: built in code, once, under `.coloop/bench/grpo`."""

import json
from pathlib import Path

import torch
from tests.bench.grpo.work import SIZES
from tests.bench.results import STORE

from coloop.models import load_weights
from coloop.models.build import build_config, build_scratch
from coloop.models.folder import save_hf
from coloop.models.tokenizer import character_tokenizer, encode_completion, encode_prompt

PLACE = STORE / "grpo"
HELD_OUT, TRAINED = 2000, 8000
NEVER = "⟨never⟩"
"""An end token outside of the model's vocabulary."""
WARM_UP_STEPS, WARM_UP_ROWS, WARM_UP_RATE = 280, 64, 2e-3


def endless(size: str) -> Path:
    """A random model whose end token is never drawn: the model has no logit for it."""
    folder = PLACE / f"endless-{size}"
    if (folder / "config.json").exists():
        return folder
    tokenizer = character_tokenizer()
    config = build_config(SIZES[size].facts(), tokenizer)
    tokenizer.add_special_tokens({"eos_token": NEVER})
    config.eos_token_id = tokenizer.convert_tokens_to_ids(NEVER)
    if size == "0.5B":  # its vocabulary is larger than the tokenizer's
        config.eos_token_id = config.vocab_size
    model = build_scratch(config, seed=0)
    save_hf(folder, model, tokenizer)
    return folder


def warmed(size: str = "1M") -> Path:
    """A model that learned by imitation to answer some of the sums, for learning by reward."""
    folder = PLACE / f"begun-{size}"
    if (folder / "config.json").exists():
        return folder
    tokenizer = character_tokenizer()
    model = build_scratch(build_config(SIZES[size].facts(), tokenizer), seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=WARM_UP_RATE, weight_decay=0.0)
    generator = torch.Generator().manual_seed(7)
    pairs = [
        (
            encode_prompt(tokenizer, row["prompt"]),
            encode_completion(tokenizer, row["answer"]),
        )
        for row in _sums(TRAINED, 0)
    ]
    model.train()
    for _ in range(WARM_UP_STEPS):
        chosen = torch.randint(len(pairs), (WARM_UP_ROWS,), generator=generator).tolist()
        batch = [pairs[place] for place in chosen]
        longest = max(len(prompt) + len(answer) for prompt, answer in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        for row, (prompt, answer) in enumerate(batch):
            end = len(prompt) + len(answer)
            ids[row, :end] = torch.tensor(prompt + answer)
            labels[row, len(prompt) : end] = torch.tensor(answer)
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    save_hf(folder, model.eval(), tokenizer)
    return folder


def rows_file() -> Path:
    return _written("sums.jsonl", _sums(TRAINED, 0))


def held_out_file() -> Path:
    return _written("held-out-sums.jsonl", _sums(HELD_OUT, 1))


def _written(name: str, rows: list[dict[str, str]]) -> Path:
    path = PLACE / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _sums(count: int, fold: int) -> list[dict[str, str]]:
    """Sums of two numbers below 100, answered last digit first; each is in one fold of five, by
    chance alone: sums of the one tell nothing of what is to be met in the other."""
    generator = torch.Generator().manual_seed(3)
    pairs = torch.randperm(10_000, generator=generator).tolist()
    own = [pair for place, pair in enumerate(pairs) if (place % 5 == 0) == (fold == 1)]
    return [
        {
            "prompt": f"{pair // 100:02d}+{pair % 100:02d}=",
            "answer": str(pair // 100 + pair % 100)[::-1],
        }
        for pair in own[:count]
    ]


def has_changed(before: Path, after: Path) -> bool:
    """Whether two model folders differ in a weight."""
    first, second = load_weights(before), load_weights(after)
    return any(not torch.equal(first[name], second[name].to(first[name].dtype)) for name in first)
