"""Tiny causal models and rows, built in code."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    Qwen3Config,
)

from coloop.algorithms.batch import Pair, Sequence, completion_sequence
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.rows import OF_OTHERS
from coloop.data.distributions import Distribution, Teacher
from coloop.models.heads import with_head
from coloop.spec.algorithm import (
    DISTILLATION_NAMES,
    PREFERENCE_NAMES,
    BradleyTerry,
    DistillationAlgorithm,
    ImplicitPrm,
    LabelCrossEntropy,
    Outcome,
    PreferenceAlgorithm,
    Regression,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    resolve_distillation,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)
from coloop.spec.heads import Head, Reading
from coloop.spec.training import Training
from coloop.workers.training import TrainBatch

VOCABULARY = 23

CONFIGS: dict[str, tuple[type, dict[str, Any]]] = {
    "qwen3": (Qwen3Config, {"tie_word_embeddings": True}),
    "llama": (LlamaConfig, {}),
    "mistral": (MistralConfig, {"sliding_window": 4}),
    "gemma2": (Gemma2Config, {"sliding_window": 4, "pad_token_id": 0}),
    "gemma3": (
        Gemma3TextConfig,
        {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "gpt2": (GPT2Config, {"n_inner": 32}),
}
"""Families by how their layers see: everything before, a window shorter than the rows of these
tests, both in turn; and positions that are learned."""

Build = Callable[..., PreTrainedModel]
MakeLoad = Callable[..., TrainBatch]
MakeTraining = Callable[..., Training]


def tiny_model(
    kind: str = "qwen3", *, seed: int = 0, head: Head = "words", classes: int = 1, **fields: Any
) -> PreTrainedModel:
    """A tiny model of a family in float32; the seed decides its weights."""
    config_class, own = CONFIGS[kind]
    config = config_class(
        **{
            "vocab_size": VOCABULARY,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 8,
            "max_position_embeddings": 64,
            "tie_word_embeddings": False,
            "initializer_range": 0.3,
            **own,
            **fields,
        }
    )
    torch.manual_seed(seed)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    return with_head(model, head, seed=seed, classes=classes).eval()


@pytest.fixture
def build_model() -> Build:
    return tiny_model


def training_section(
    *, lr: float = 1e-3, optimizer: dict[str, Any] | None = None, **fields: Any
) -> Training:
    """A `training` section."""
    section = {"name": "adamw", "lr": lr, **(optimizer or {})}
    return Training.model_validate({"optimizer": section, **fields})


@pytest.fixture
def make_training() -> MakeTraining:
    return training_section


OTHERS: dict[str, Any] = {
    "sft": Sft,
    "value": ValueLoss,
    "bradley_terry": BradleyTerry,
    "regression": Regression,
    "outcome": Outcome,
    "implicit_prm": ImplicitPrm,
    "label_ce": LabelCrossEntropy,
}
"""Algorithms that are complete as they are written."""


def settings_of(algorithm: str, **fields: Any) -> Any:
    if algorithm in OTHERS:
        return OTHERS[algorithm].model_validate({"name": algorithm, **fields})
    if algorithm in DISTILLATION_NAMES:
        return resolve_distillation(
            DistillationAlgorithm.model_validate({"name": algorithm, **fields})
        )
    if algorithm in PREFERENCE_NAMES:
        return resolve_pairs_algorithm(
            PreferenceAlgorithm.model_validate({"name": algorithm, **fields})
        )
    return resolve_rewards_algorithm(
        RewardsAlgorithm.model_validate({"name": algorithm, **fields}), max_new_tokens=9
    )


def random_rows(size: int, seed: int, *, with_reference: bool = True) -> list[Sequence]:
    """Rollouts with gaps in their loss masks, as tools leave them."""
    draw, scorers = random.Random(seed), random.Random(seed + 1000)
    rows = []
    for row in range(size):
        length = draw.randint(1, 7)
        mask = [draw.random() < 0.8 for _ in range(length)]
        mask[draw.randrange(length)] = True
        rows.append(
            completion_sequence(
                id=f"row{row}",
                prompt_ids=[draw.randrange(VOCABULARY) for _ in range(draw.randint(1, 4))],
                completion_ids=[draw.randrange(VOCABULARY) for _ in range(length)],
                loss_mask=mask,
                log_probs_rollout=[-draw.uniform(1, 4) for _ in range(length)],
                log_probs_reference=(
                    [-draw.uniform(1, 4) for _ in range(length)] if with_reference else None
                ),
                advantages=draw.gauss(0, 1),
                returns=[scorers.gauss(0, 1) for _ in range(length)],
                numbers={"label": scorers.gauss(0, 1), OF_OTHERS: float(row % 3 == 1)},
                weight=draw.choice([1.0, 0.5]),
                count=draw.choice([1.0, 1.0, 2.0]),
                group=f"group{row // 4}",
            )
        )
    return rows


WORDS = 6
"""Most words of which a teacher of `taught_rows` tells."""


def taught_rows(size: int, seed: int, words: int | None) -> list[Sequence]:
    """The same with what two teachers say, the second of every other row. `words`: of which they
    tell at each token; 0: none, None: all."""
    draw = np.random.default_rng(seed)
    rows = []
    for number, row in enumerate(random_rows(size, seed)):
        names = ["first", "second"] if number % 2 else ["first"]
        teachers = []
        for name in names:
            logits = draw.normal(size=(int(row.loss_mask.sum()), VOCABULARY))
            whole = torch.tensor(logits).log_softmax(-1).float().numpy()
            known = row.token_ids[row.loss_mask]
            said = None if words == 0 else Distribution(log_probs=whole)
            teachers.append(
                Teacher(
                    node=name,
                    weight=1.0 if len(names) == 1 else 0.3 if name == "first" else 0.7,
                    log_probs=whole[np.arange(len(known)), known],
                    words=said if said is None or words is None else said.top(words),
                )
            )
        rows.append(replace(row, teachers=tuple(teachers)))
    return rows


def random_pairs(size: int, seed: int) -> list[Pair]:
    draw = random.Random(seed)
    chosen, rejected = random_rows(size, seed + 1), random_rows(size, seed + 2)
    others = random_rows(size, seed + 3)
    return [
        Pair(
            id=f"pair{k}",
            chosen=chosen[k],
            rejected=rejected[k],
            extra=(others[k],) if k % 3 else (),
            margin=0.1 * k,
            weight=draw.choice([1.0, 0.5]),
            count=draw.choice([1.0, 2.0]),
        )
        for k in range(size)
    ]


def random_load(
    algorithm: str = "grpo",
    *,
    size: int = 12,
    seed: int = 0,
    role: str = "actor",
    rows: Any = None,
    weight: float = 1.0,
    temperature: float = 1.0,
    reading: Reading = "scores",
    **fields: Any,
) -> TrainBatch:
    """A load of random rows for an algorithm by name."""
    settings = settings_of(algorithm, **fields)
    recipe = recipe_of(settings, reading)
    if rows is None:
        rows = random_pairs(size, seed) if recipe.port == "pairs" else random_rows(size, seed)
        if recipe.port == "reference":
            rows = taught_rows(size, seed, settings.words and WORDS)
    return TrainBatch(
        role=role,
        port=recipe.port,
        recipe=recipe,
        settings=settings,
        rows=rows,
        weight=weight,
        temperature=temperature,
    )


@pytest.fixture
def make_load() -> MakeLoad:
    return random_load
