"""The same weights and the same rows, learned from by TRL and by us: do both end at one place?

    one model writes ──► TRL: rewards, advantages, loss, clip, AdamW ──► weights of each update
                     └──► ours: the same by credit and backend of a run ──► compared

Both begin at one folder and compute in float32. An update of AdamW divides a gradient by its own
size, so where a gradient is nothing but rounding the step is, too: what is compared is the way that
all weights together have gone.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tests.bench.grpo.folders import rows_file
from tests.bench.grpo.turns import OTHER_VENV, environment_of
from tests.bench.grpo.work import PROMPTS, SAMPLES, Work, read_rows, score
from tests.bench.machine import ROOT
from tests.engine.generating import generate
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from coloop.algorithms.batch import completion_sequence
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.protocol import EdgeScores
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.models.tokenizer import decode, encode_prompt
from coloop.spec.algorithm import RewardsAlgorithm, resolve_rewards_algorithm
from coloop.spec.training import Credit, Training
from coloop.workers.rollout import Generation, TorchEngine
from coloop.workers.training import TrainBatch
from coloop.workers.training.single import SingleBackend

UPDATES = 3
NEW_TOKENS = 4

THEIRS: dict[str, dict[str, Any]] = {
    "trl-grpo": {},
    "trl-dr_grpo": {"loss_type": "dr_grpo", "scale_rewards": "none"},
    "trl-gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence"},
    "trl-cispo": {"loss_type": "cispo", "epsilon_high": 5.0},
    "trl-sapo": {"loss_type": "sapo"},
    "trl-luspo": {"loss_type": "luspo", "importance_sampling_level": "sequence"},
    "trl-vespo": {"loss_type": "vespo"},
}
"""What each of our presets is in TRL's words; `trl-grpo` is what TRL does where nobody says
anything."""

Step = list[dict[str, Any]]
"""Prompts of an update: `prompt_ids`, `answer`, and `SAMPLES` `completions` with their `scores`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Of the weights after an update."""

    way: float
    """How far all weights together have gone, as TRL has it: the norm of the difference."""
    apart: float
    """How far from it ours are, as a share of the way."""
    furthest: float
    """The weight that is furthest apart, in learning rates."""
    advantage: float
    """The greatest difference of two advantages of this update's rows."""


def compare(
    algorithm: str,
    start: Path,
    place: Path,
    *,
    reward: str = "answer",
    rate: float = 5e-4,
    iterations: int = 1,
) -> list[Compared]:
    """Updates of both, on rows that the start wrote.

    Args:
        algorithm: of ours, as a loop names it.
        start: model folder at which both begin.
        place: empty folder for what TRL finds.
        reward: of the bench's two, by its name.
        rate: learning rate.
        iterations: optimizer steps of an update, on the same rows.
    """
    steps = _written(start, reward)
    rows = place / "rows.jsonl"
    told = [{"prompt": row["prompt"], "answer": row["answer"]} for step in steps for row in step]
    rows.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
    texts = place / "texts.json"
    texts.write_text(json.dumps(steps), encoding="utf-8")
    work = Work(
        size="1M",
        folder=str(start),
        rows=str(rows),
        new_tokens=NEW_TOKENS,
        reward=reward,
        precision="float32",
        learning_rate=rate,
        steps=UPDATES * iterations,
        theirs=THEIRS[algorithm],
        iterations=iterations,
    )
    asked = [str(OTHER_VENV), "-m", "tests.bench.grpo.trl_updates", work.to_json()]
    done = subprocess.run(
        [*asked, str(texts), str(place)],
        cwd=ROOT,
        env=environment_of(work),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"TRL ended:\n{done.stderr[-3000:]}")
    theirs = json.loads((place / "advantages.json").read_text(encoding="utf-8"))
    before = _weights(AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32))
    found = []
    updates = _own_updates(start, steps, algorithm, rate, iterations)
    for number, (own, advantages) in enumerate(updates):
        other = load_file(place / f"{(number + 1) * iterations}.safetensors")
        found.append(_compared(before, own, other, rate, advantages, theirs[number]))
    return found


def _compared(
    before: dict[str, Tensor],
    own: dict[str, Tensor],
    other: dict[str, Tensor],
    rate: float,
    advantages: Sequence[float],
    theirs: Sequence[float],
) -> Compared:
    assert set(own) == set(other)
    apart = torch.cat([(own[name].double() - other[name].double()).flatten() for name in own])
    way = torch.cat([(other[name].double() - before[name].double()).flatten() for name in own])
    return Compared(
        way=float(way.norm()),
        apart=float(apart.norm() / way.norm()),
        furthest=float(apart.abs().max() / rate),
        advantage=max(abs(a - b) for a, b in zip(advantages, theirs, strict=True)),
    )


def _written(folder: Path, reward: str) -> list[Step]:
    """Texts of the model for the first prompts, and what they are worth."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rows = read_rows(str(rows_file()))[: UPDATES * PROMPTS]
    requests = [
        Generation(
            id=f"{number}.{sample}",
            prompt_ids=encode_prompt(tokenizer, row["prompt"]),
            seed=number * SAMPLES + sample,
            max_new_tokens=NEW_TOKENS,
        )
        for number, row in enumerate(rows)
        for sample in range(SAMPLES)
    ]
    texts = [list(one.token_ids) for one in generate(TorchEngine(model, tokenizer), requests)]
    steps: list[Step] = [[] for _ in range(UPDATES)]
    for number, row in enumerate(rows):
        completions = texts[number * SAMPLES : (number + 1) * SAMPLES]
        scores = [score(reward, decode(tokenizer, ids), row["answer"]) for ids in completions]
        steps[number // PROMPTS].append(
            {
                **row,
                "prompt_ids": encode_prompt(tokenizer, row["prompt"]),
                "completions": completions,
                "scores": scores,
            }
        )
    return steps


def _own_updates(
    folder: Path, steps: list[Step], algorithm: str, rate: float, iterations: int
) -> Iterator[tuple[dict[str, Tensor], Sequence[float]]]:
    """Weights and advantages of each update by credit, recipe and backend of a run, which are told
    no more than a loop tells them."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    optimizer = {"name": "adamw", "lr": rate}
    training = Training.model_validate({"optimizer": optimizer, "epochs": iterations})
    section = RewardsAlgorithm.model_validate({"name": algorithm})
    settings = resolve_rewards_algorithm(section, max_new_tokens=NEW_TOKENS)
    recipe: Any = recipe_of(settings)
    backend = SingleBackend(model, training, group="actor")
    backend.begin_phase(len(steps))
    for number, step in enumerate(steps):
        texts = [(row, ids) for row in step for ids in row["completions"]]
        masks = [[True] * len(ids) for _, ids in texts]
        credited = recipe.credit(
            CreditBatch(
                edges=[
                    EdgeScores(
                        name="judge",
                        weight=1.0,
                        scores=[value for row in step for value in row["scores"]],
                    )
                ],
                groups=[row["prompt"] for row, _ in texts],
                loss_masks=masks,
            ),
            settings,
            Credit(),
        )
        items = [
            completion_sequence(
                id=str(place),
                prompt_ids=row["prompt_ids"],
                completion_ids=ids,
                loss_mask=mask,
                advantages=advantage,
            )
            for place, ((row, ids), mask, advantage) in enumerate(
                zip(texts, masks, credited.advantages, strict=True)
            )
        ]
        load = TrainBatch(
            role="actor", port="rewards", recipe=recipe, settings=settings, rows=items
        )
        backend.update([load], training, seed=number)
        yield _weights(model), credited.advantages


def _weights(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}
