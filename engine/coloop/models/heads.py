"""What a model says of its states: words, by the head of a language model, or a score, one number
of a state (or one for each class).

    trunk ─┬─ words   (V)   log-probs and entropies of tokens      ...ForCausalLM
           └─ score   (C)   values of tokens, scores of whole texts  ...ForSequenceClassification

A model whose roles read both is a language model with the score head beside its words.
A score head is one matrix `score.weight` (C, H) without a bias, as Hugging Face's sequence
classifiers have it, so a critic or a reward model is a folder that others load, and a critic that
starts from a reward model starts with its head. Invariant: a new head is a function of the model's
own range and a seed; the process's random state is neither read nor changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
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
    if head == "words":
        _check_words(model)
        return model
    known = _known_head(model, classes)
    if known is not None and not has_words(model):
        return model
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
    weight = _new_weight(found.weight.shape, model, seed) if known is None else known.weight
    found.weight = nn.Parameter(weight)
    built: PreTrainedModel = scorer.train(model.training)
    return built


def with_both_heads(model: PreTrainedModel, *, seed: int, classes: int = 1) -> PreTrainedModel:
    """The language model with a score head beside its words: its own where it has it, else a new
    one.

    Args:
        seed: decides the weights of a new head.
        classes: numbers that the score head says of a state.
    """
    _check_words(model)
    if _known_head(model, classes) is None:
        shape = classes, model.config.get_text_config().hidden_size
        add_score(model, _new_weight(shape, model, seed))
    return model


def add_score(model: PreTrainedModel, weight: Tensor) -> None:
    """Put a score head with this weight (C, H) beside a model's words."""
    with torch.device("meta"):
        head = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    head.weight = nn.Parameter(weight)
    model.config.num_labels = weight.shape[0]
    setattr(model, SCORE, head)


def that_write(weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Weights by name, without those of a score head: what a text is written by."""
    return ((name, weight) for name, weight in weights if not name.startswith(f"{SCORE}."))


def writing_part(model: PreTrainedModel) -> PreTrainedModel:
    """The same language model without a score head that stands beside its words."""
    if score_head(model) is None or not has_words(model):
        return model
    part = copy.copy(model)
    part._modules = {name: one for name, one in model._modules.items() if name != SCORE}
    return part


def _check_words(model: PreTrainedModel) -> None:
    if not has_words(model):
        raise ModelUnavailable(
            f"{type(model).__name__} has a score head and no head of words: it can neither write "
            "nor say log-probs; take the model that it was made from"
        )


def _known_head(model: PreTrainedModel, classes: int) -> nn.Linear | None:
    """The model's score head; raises `ModelUnavailable` where it says other numbers than are
    wanted."""
    head = score_head(model)
    if head is not None and head.out_features != classes:
        wanted = "one number" if classes == 1 else f"{classes} classes, as its labels say,"
        raise ModelUnavailable(
            f"{type(model).__name__} has a head of {head.out_features} classes, and {wanted} "
            "is read of it; name its classes in `read.labels`, or take the model that it was made "
            "from"
        )
    return head


def _new_weight(shape: Sequence[int], model: PreTrainedModel, seed: int) -> Tensor:
    """Of a new head beside the model; drawn in float32, so that every dtype starts from the
    same."""
    beside = next(model.parameters())
    deviation = getattr(model.config.get_text_config(), "initializer_range", STEADY_RANGE)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.empty(*shape).normal_(0.0, deviation, generator=generator)
    return weight.to(beside.device, beside.dtype)
