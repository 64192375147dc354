"""How fast texts are written: `python tests/bench/bench_rollout.py`.

The preset tiny-qwen3 (2 layers, width 64), 256 rows (32 prompts of 6 to 8 tokens, 8 samples each),
up to 16 new tokens, against `generate()` of transformers in the same process, turn by turn, with
one thread and with two. The engine also gives log-probs, which `generate()` is not asked for.

Two workloads: rows that end at different places, as answers do (each token ends its row once in
six, so 6 tokens on average), and rows that all run to 16 tokens. Goal: 3 times `generate()` on the
first.
"""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import torch
from tests.engine.generating import generate
from transformers import GenerationConfig

from coloop.models import LoadedModel, build_model
from coloop.spec.model import ScratchModel
from coloop.workers.rollout import Generation, TorchEngine
from coloop.workers.sync import (
    ChecksumVerifier,
    FilesChannel,
    WeightChannel,
    checksum_of_engine,
    checksum_of_model,
)
from coloop.workers.sync.folders import SHARED_MEMORY, TransferFolders

PROMPTS, SAMPLES, NEW_TOKENS = 32, 8, 16
GOAL_RATIO = 3.0
ROUNDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One workload."""

    name: str
    ends: tuple[int, ...]
    """Tokens that end a row."""


WORKLOADS = (
    Work(name="rows of different lengths", ends=tuple(range(4, 25))),
    Work(name="all rows have 16 tokens", ends=()),
)


def tiny_model() -> LoadedModel:
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    loaded = build_model(section, seed=0, root=Path())
    loaded.model.eval()
    loaded.tokenizer.eos_token = None  # the workload says what ends a row
    return loaded


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(6, 9, (PROMPTS,), generator=generator).tolist()
    return [torch.randint(4, 128, (n,), generator=generator).tolist() for n in lengths]


def by_generate(loaded: LoadedModel, work: Work) -> Callable[[], int]:
    """Writes all rows by `generate()`; gives the tokens up to each row's end."""
    rows = [prompt for prompt in prompts() for _ in range(SAMPLES)]
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    real = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    config = GenerationConfig(
        max_new_tokens=NEW_TOKENS,
        do_sample=True,
        top_k=0,
        pad_token_id=0,
        eos_token_id=list(work.ends) or None,
    )

    def write() -> int:
        with torch.inference_mode():
            written = loaded.model.generate(ids, attention_mask=real, generation_config=config)
        return int((written[:, longest:] != 0).sum())

    return write


def by_engine(loaded: LoadedModel, work: Work) -> Callable[[], int]:
    loaded.model.generation_config.eos_token_id = list(work.ends)
    engine = TorchEngine(loaded.model, loaded.tokenizer)
    requests = [
        Generation(
            id=f"{number}/{sample}",
            prompt_ids=prompt,
            seed=number * SAMPLES + sample,
            max_new_tokens=NEW_TOKENS,
        )
        for number, prompt in enumerate(prompts())
        for sample in range(SAMPLES)
    ]
    return lambda: sum(len(row.token_ids) for row in generate(engine, requests))


@dataclass(slots=True)
class Timing:
    """What the rounds of one work took."""

    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    """Of all threads; what other processes take does not count."""
    tokens: int = 0

    @property
    def middle(self) -> float:
        return statistics.median(self.seconds)


def turn_by_turn(*works: Callable[[], int]) -> list[Timing]:
    """The timing of works that take turns."""
    timings = [Timing() for _ in works]
    for number in range(ROUNDS + 2):
        for timing, work in zip(timings, works, strict=True):
            start, processor_start = time.perf_counter(), time.process_time()
            timing.tokens = work()
            if number >= 2:  # the first rounds warm up
                timing.seconds.append(time.perf_counter() - start)
                timing.processor_seconds.append(time.process_time() - processor_start)
    return timings


def report(name: str, timing: Timing) -> None:
    best, middle = 1000 * min(timing.seconds), 1000 * timing.middle
    processor = 1000 * statistics.median(timing.processor_seconds)
    print(
        f"  {name:<24}{best:8.1f} ms best{middle:8.1f} ms median{processor:8.1f} ms CPU time"
        f"{timing.tokens / timing.middle:10,.0f} tokens/s"
    )


def ratios(slow: Timing, fast: Timing) -> str:
    middle = slow.middle / fast.middle
    best = min(slow.seconds) / min(fast.seconds)
    processor = min(slow.processor_seconds) / min(fast.processor_seconds)
    return f"{middle:.2f} of medians, {best:.2f} of best, {processor:.2f} of CPU time"


def bench_sync(loaded: LoadedModel) -> None:
    engine = TorchEngine(loaded.model, loaded.tokenizer)
    with closing(TransferFolders([SHARED_MEMORY])) as folders:
        ways = {"within a process": None, "between two": FilesChannel(folders.paths)}
        for way, channel in ways.items():
            median = statistics.median(synced(loaded, engine, channel, n) for n in range(1, 31))
            print(f"weight sync {way}, with verification: {1000 * median:.1f} ms median")


def synced(
    loaded: LoadedModel, engine: TorchEngine, channel: WeightChannel | None, version: int
) -> float:
    """Seconds that both ends take."""
    began = time.perf_counter()
    weights = loaded.model.named_parameters()
    transfer = channel and channel.send(weights, version=version, dtype=engine.dtype)
    sent = checksum_of_model(loaded.model, version, dtype=engine.dtype)
    engine.load_weights(channel.receive(transfer) if channel else weights, version)
    ChecksumVerifier().check(sent, checksum_of_engine(engine, sent.probe))
    if channel:
        channel.forget(transfer)
    return time.perf_counter() - began


def main() -> None:
    for threads in (1, 2):
        if threads > (os.cpu_count() or 1):
            continue
        torch.set_num_threads(threads)
        for work in WORKLOADS:
            loaded = tiny_model()
            print(f"{work.name}, {threads} thread{'s' if threads > 1 else ''}")
            slow, fast = turn_by_turn(by_generate(loaded, work), by_engine(loaded, work))
            report("transformers generate()", slow)
            report("engine torch", fast)
            goal = f" (goal {GOAL_RATIO:.0f})" if work.ends else ""
            print(f"  ratio {ratios(slow, fast)}{goal}")
    torch.set_num_threads(1)
    bench_sync(tiny_model())


if __name__ == "__main__":
    main()
