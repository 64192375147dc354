"""How long an update takes: `python tests/bench/bench_training.py`.

A tiny Qwen3 (2 layers, width 64, character vocabulary), 256 rows of about 12 tokens, one thread,
four mini-batches of 64. Goal: an update under 0.15 s.
"""

import random
import statistics
import time
from collections.abc import Callable

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen3Config

from coloop.algorithms.batch import Sequence, completion_sequence
from coloop.algorithms.recipes import recipe_of
from coloop.spec.algorithm import RewardsAlgorithm, Sft, resolve_rewards_algorithm
from coloop.spec.training import Training
from coloop.workers.training import SingleBackend, TrainBatch

VOCABULARY = 51
GOAL_SECONDS = 0.15


def tiny_model() -> PreTrainedModel:
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=128,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    return model


def rollouts(size: int) -> list[Sequence]:
    draw = random.Random(0)
    rows = []
    for row in range(size):
        length = draw.randint(4, 8)
        rows.append(
            completion_sequence(
                id=str(row),
                prompt_ids=[draw.randrange(VOCABULARY) for _ in range(6)],
                completion_ids=[draw.randrange(VOCABULARY) for _ in range(length)],
                loss_mask=[True] * length,
                log_probs_rollout=[-3.9] * length,
                advantages=draw.gauss(0, 1),
            )
        )
    return rows


def timed(work: Callable[[], object], repeats: int = 20) -> list[float]:
    for _ in range(3):
        work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def report(name: str, seconds: list[float]) -> float:
    best, middle = min(seconds), statistics.median(seconds)
    print(f"{name:<46}{1000 * best:8.1f} ms best{1000 * middle:8.1f} ms median")
    return middle


def main() -> None:
    torch.set_num_threads(1)
    rows = rollouts(256)
    tokens = sum(len(row.token_ids) for row in rows)
    print(f"256 rows, {tokens} tokens, one thread, torch {torch.__version__}")
    grpo = resolve_rewards_algorithm(RewardsAlgorithm(name="grpo"), max_new_tokens=16)
    sft = Sft(name="sft")
    reached = 0.0
    for name, settings, fields in (
        ("grpo, 4 mini-batches of 64", grpo, {"mini_batch": 64}),
        ("grpo, 1 mini-batch", grpo, {}),
        ("sft, 4 mini-batches of 64", sft, {"mini_batch": 64}),
    ):
        section = {"optimizer": {"name": "adamw", "lr": 3e-4}, **fields}
        training = Training.model_validate(section)
        backend = SingleBackend(tiny_model(), training)
        recipe = recipe_of(settings)
        load = TrainBatch(
            role="actor", port=recipe.port, recipe=recipe, settings=settings, rows=rows
        )
        middle = report(name, timed(lambda: backend.update([load], training, seed=0)))  # noqa: B023
        reached = reached or middle
    report("score 256 rows", timed(lambda: backend.score(rows)))
    verdict = "reached" if reached <= GOAL_SECONDS else "missed"
    print(f"goal: an update in 4 mini-batches under {GOAL_SECONDS} s: {verdict}")


if __name__ == "__main__":
    main()
