"""Updates by TRL on rows that somebody else wrote; runs in the environment of `make bench-venv`.

`GRPOTrainer` is that of the bench's arm, with two things taken from it: the order of the prompts,
which is that of the file, and the writing, which gives what the file has. Rewards, advantages,
loss, clipping and the optimizer are its own.

    python -m tests.bench.grpo.trl_updates WORK TEXTS FOUND
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tests.bench.grpo.arm import Meter
from tests.bench.grpo.trl_arm import build
from tests.bench.grpo.work import Work
from transformers import TrainerCallback


class Free(Meter):
    """Waits for nobody."""

    def begin_step(self) -> None: ...

    def end_step(self) -> None: ...


class Saves(TrainerCallback):
    """Writes the weights after each update."""

    def __init__(self, found: Path) -> None:
        self._found = found

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        weights = {
            name: weight.detach().clone() for name, weight in more["model"].named_parameters()
        }
        save_file(weights, self._found / f"{state.global_step}.safetensors")


def main() -> None:
    work, texts, found = Work.from_json(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(work.threads)
    steps = json.loads(texts.read_text(encoding="utf-8"))
    written = {tuple(row["prompt_ids"]): row["completions"] for step in steps for row in step}
    trainer = build(work, str(found / "output"), Free())
    trainer.shuffle_dataset = False
    trainer.add_callback(Saves(found))

    def given(prompt_ids: list[list[int]], *others: Any) -> tuple[list[list[int]], None]:
        number_of: dict[tuple[int, ...], int] = {}
        answer = []
        for prompt in map(tuple, prompt_ids):
            number = number_of.get(prompt, 0)
            number_of[prompt] = number + 1
            answer.append(written[prompt][number])
        return answer, None

    trainer._generate_single_turn = given
    credited: list[list[float]] = []
    score_rows = trainer._generate_and_score_completions

    def noted(inputs: Any) -> Any:
        scored = score_rows(inputs)
        credited.append(scored["advantages"].tolist())
        return scored

    trainer._generate_and_score_completions = noted
    trainer.train()
    (found / "advantages.json").write_text(json.dumps(credited), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # nothing that it still holds is wanted


if __name__ == "__main__":
    main()
