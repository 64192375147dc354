"""GRPO by TRL; runs in the environment of `make bench-venv`.

Settings are those that are fastest here and change no result: all 128 rows in one pass, autocast to
bfloat16 over float32 weights where that precision is asked for, no gradient checkpointing, no
logging, no saving. `GRPOTrainer` drives itself: a callback waits before each step.
"""

import contextlib
import os
import sys
import tempfile
import time
from typing import Any

import torch
from datasets import Dataset
from tests.bench.grpo.arm import Ended, Meter
from tests.bench.grpo.work import (
    CLIP_NORM,
    EPSILON,
    PROMPTS,
    SAMPLES,
    Work,
    read_rows,
    score,
)
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

BENCH = {"beta": 0.0, "epsilon": EPSILON, "loss_type": "bnpo", "scale_rewards": "group"}
"""The algorithm of the timed workloads."""


class Waits(TrainerCallback):
    """Takes each step only when it is asked for."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._meter.begin_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._meter.end_step()


def build(work: Work, output: str, meter: Meter) -> GRPOTrainer:
    config = GRPOConfig(
        output_dir=output,
        per_device_train_batch_size=PROMPTS * SAMPLES,
        gradient_accumulation_steps=1,
        num_generations=SAMPLES,
        max_completion_length=work.new_tokens,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        learning_rate=work.learning_rate,
        lr_scheduler_type="constant",
        warmup_steps=0,
        weight_decay=0.0,
        max_grad_norm=CLIP_NORM,
        optim="adamw_torch_fused",
        num_iterations=work.iterations,
        **(BENCH if work.theirs is None else work.theirs),
        max_steps=work.steps,
        use_cpu=not torch.cuda.is_available(),
        bf16=work.precision == "bfloat16",
        fp16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=work.seed,
        data_seed=work.seed,
        dataloader_num_workers=0,
    )
    tokenizer = AutoTokenizer.from_pretrained(work.folder)
    model = AutoModelForCausalLM.from_pretrained(work.folder, dtype=torch.float32)

    def reward(completions: list[str], answer: list[str], **columns: Any) -> list[float]:
        pairs = zip(completions, answer, strict=True)
        return [score(work.reward, text, right) for text, right in pairs]

    trainer = GRPOTrainer(
        model=model,
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(read_rows(work.rows)),
        reward_funcs=reward,
        callbacks=[Waits(meter)],
    )
    _time_writing(trainer, meter)
    return trainer


def _time_writing(trainer: GRPOTrainer, meter: Meter) -> None:
    """Note how long each call of `generate` takes and what it wrote."""
    write = trainer._generate_single_turn

    def timed(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        written = write(*given, **named)
        completions = written[0]
        meter.wrote(sum(len(ids) for ids in completions), time.perf_counter() - began)
        return written

    trainer._generate_single_turn = timed


def main() -> None:
    work = Work.from_json(sys.argv[1])
    torch.set_num_threads(work.threads)
    meter = Meter()
    with tempfile.TemporaryDirectory(prefix="bench-trl-") as output:
        trainer = build(work, output, meter)
        meter.ready()
        with contextlib.suppress(Ended):
            trainer.train()
        if work.keep is not None:
            trainer.save_model(work.keep)
    sys.stdout.flush()
    os._exit(0)  # nothing that it still holds is wanted


if __name__ == "__main__":
    main()
