"""What a model says of its states: words, by the head of a language model, or a score, one number
of a state (or one for each class).

    trunk ─┬─ words   (V)   log-probs and entropies of tokens      ...ForCausalLM
           └─ score   (C)   values of tokens, scores of whole texts  ...ForSequenceClassification

A score head is one matrix `score.weight` (C, H) without a bias, as Hugging Face's sequence
classifiers have it, so a critic or a reward model is a folder that others load, and a critic that
starts from a reward model starts with its head. Invariant: a new head is a function of the model's
own range and a seed; the process's random state is neither read nor changed.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from coloop.errors import ModelUnavailable
from coloop.spec.heads import Head

SCORE = "score"
"""Name of the score head in a model."""
STEADY_RANGE = 0.02
"""Deviation of a new head's weights where the model names none."""


def score_head(model: nn.Module) -> nn.Linear | None:
    """The head that says one number, or one for each class, of a state."""
    head = getattr(model, SCORE, None)
    return head if isinstance(head, nn.Linear) else None


def has_words(model: nn.Module) -> bool:
    """Whether it says log-probs of tokens."""
    if score_head(model) is None:
        return True
    find: Any = getattr(model, "get_output_embeddings", None)
    return find is not None and find() is not None


def with_head(
    model: PreTrainedModel, head: Head, *, seed: int, classes: int = 1
) -> PreTrainedModel:
    """The model with this head: its own where it has it, else a new one on the same trunk, which
    leaves the model that it was given in.

    Args:
        seed: decides the weights of a new head.
        classes: numbers that a score head says of a state.

    Raises `ModelUnavailable` where words are asked of a scorer.
    """
    has_it = has_words(model) if head == "words" else score_head(model) is not None
    if has_it:
        return model
    if head == "words":
        raise ModelUnavailable(
            f"{type(model).__name__} has a score head and no head of words: it can neither write "
            "nor say log-probs; take the model that it was made from"
        )
    config = copy.deepcopy(model.config)
    config.num_labels = classes
    try:
        with torch.device("meta"):
            scorer: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise ModelUnavailable(
            f"transformers knows no model with a score head for {type(model).__name__}: {error}"
        ) from error
    found = score_head(scorer)
    if found is None:
        raise ModelUnavailable(f"{type(scorer).__name__} has no matrix `{SCORE}` to score with")
    trunk: Any = model.base_model
    for part in trunk.modules():
        if getattr(part, "config", None) is model.config:
            part.config = config  # one for all of a model, as its settings change with it
    setattr(scorer, scorer.base_model_prefix, trunk)
    scorer.score = _new_head(found, model, seed)
    built: PreTrainedModel = scorer.train(model.training)
    return built


def _new_head(shape: nn.Linear, model: PreTrainedModel, seed: int) -> nn.Linear:
    """A head of this shape beside the model; drawn in float32, so that every dtype starts from the
    same."""
    beside = next(model.parameters())
    deviation = getattr(model.config.get_text_config(), "initializer_range", STEADY_RANGE)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.empty(shape.weight.shape).normal_(0.0, deviation, generator=generator)
    shape.weight = nn.Parameter(weight.to(beside.device, beside.dtype))
    return shape
