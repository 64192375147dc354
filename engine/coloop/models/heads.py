"""Heads of a model: the language-model head ("words"), and score heads.

    trunk ─┬─ words   (V)   log-probs and entropies of tokens      ...ForCausalLM
           └─ score   (C)   values of tokens, scores of whole texts  ...ForSequenceClassification

If both are used, the model is a language model with a score head added to it. A score head is one
matrix `score.weight` (C, H) without a bias, as in Hugging Face's sequence classifiers. If several
nodes read scores of one model, each has its own head, `score.NODE_head.weight`, which only coloop
loads. The weights of a new head depend only on a seed and the model's `initializer_range`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from coloop.errors import ModelUnavailable
from coloop.spec.heads import Head

SCORE = "score"  # name of the score head in a model, or of what holds several
OF_NODE = "_head"
"""Suffix of a node's head, so that its name is not an attribute of modules."""
ONLY = ""
"""Key of a head that is the only one, which all nodes read."""
STEADY_RANGE = 0.02  # deviation of a new head's weights where the model names none


class ScoreHeads(nn.Module):
    def __init__(self, heads: Mapping[str, nn.Linear]) -> None:
        super().__init__()
        for node, head in heads.items():
            self.add_module(f"{node}{OF_NODE}", head)

    def by_node(self) -> dict[str, nn.Linear]:
        named: Any = self.named_children()
        return {name.removesuffix(OF_NODE): head for name, head in named}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSpec:
    node: str
    classes: int  # outputs of the head
    seed: int  # of its weights, if it is new


def score_heads(model: nn.Module) -> dict[str, nn.Linear]:
    """The score heads of a model by node; a single one by `ONLY`; empty if there are none."""
    head = getattr(model, SCORE, None)
    if isinstance(head, ScoreHeads):
        return head.by_node()
    return {ONLY: head} if isinstance(head, nn.Linear) else {}


def score_head(model: nn.Module, node: str = ONLY) -> nn.Linear | None:
    """The score head that a node reads; None if there is none."""
    heads = score_heads(model)
    return heads.get(ONLY, heads.get(node))


def score_name(node: str, *, is_alone: bool) -> str:
    return f"{SCORE}.weight" if is_alone else f"{SCORE}.{node}{OF_NODE}.weight"


def scores_among(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Of the weights of a model, those of score heads, by node."""
    scores: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if name == score_name(ONLY, is_alone=True):
            scores[ONLY] = weight
        elif name.startswith(f"{SCORE}.") and name.endswith(f"{OF_NODE}.weight"):
            scores[name.removeprefix(f"{SCORE}.").removesuffix(f"{OF_NODE}.weight")] = weight
    return scores


def head_for(model: nn.Module, node: str, of: str | None) -> nn.Linear | None:
    """The head from which a node's is initialized: that of `of`, its own, or the only one; None
    without any."""
    heads = score_heads(model)
    return next((heads[name] for name in (of, node, ONLY) if name in heads), None)


def has_words(model: nn.Module) -> bool:
    if not score_heads(model):
        return True
    find: Any = getattr(model, "get_output_embeddings", None)
    return find is not None and find() is not None


def with_head(
    model: PreTrainedModel, head: Head, *, seed: int, classes: int = 1
) -> PreTrainedModel:
    """The model with this head only: its own one, or a new score head on the same trunk.

    `seed`: of a new head's weights. `classes`: outputs of a score head.

    Raises `ModelUnavailable` if a model without a language-model head should have one.
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
            scorer: Any = AutoModelForSequenceClassification.from_config(config)
    except ValueError as error:
        raise ModelUnavailable(
            f"transformers has no model with a score head for {type(model).__name__}: {error}"
        ) from error
    new_head = score_head(scorer)
    if new_head is None:
        raise ModelUnavailable(f"{type(scorer).__name__} has no matrix `{SCORE}` to score with")
    trunk: Any = model.base_model
    for part in trunk.modules():
        if getattr(part, "config", None) is model.config:
            part.config = config  # one for all of a model, as its settings change with it
    setattr(scorer, scorer.base_model_prefix, trunk)
    weight = _new_weight(new_head.weight.shape, model, seed) if known is None else known.weight
    new_head.weight = nn.Parameter(weight)
    built: PreTrainedModel = scorer.train(model.training)
    return built


def with_both_heads(model: PreTrainedModel, *, seed: int, classes: int = 1) -> PreTrainedModel:
    """The language model with a score head in addition, its own one if it has it. `seed`: of a new
    head's weights. `classes`: outputs of the score head."""
    _check_words(model)
    if _known_head(model, classes) is None:
        shape = classes, model.config.get_text_config().hidden_size
        add_score(model, _new_weight(shape, model, seed))
    return model


def with_one_of(model: PreTrainedModel, node: str, of: str | None) -> PreTrainedModel:
    """Reduce heads of several nodes to that of `head_for`, in place; without one, a language model
    loses them all. Other models are unchanged."""
    if not isinstance(getattr(model, SCORE, None), ScoreHeads):
        return model
    head = head_for(model, node, of)
    if head is not None:
        setattr(model, SCORE, head)
        model.config.num_labels = head.out_features
    elif has_words(model):
        delattr(model, SCORE)
    return model


def with_each_head(
    model: PreTrainedModel, wanted: Sequence[HeadSpec], *, of: str | None, beside_words: bool
) -> PreTrainedModel:
    """The model with a score head for each node: a copy of `head_for` if it has as many outputs,
    else a new one.

    `of`: the node that the weights come from, if any. `beside_words`: keep the language-model head.
    """
    fitting = {}
    for spec in wanted:
        head = head_for(model, spec.node, of)
        if head is not None and head.out_features == spec.classes:
            fitting[spec.node] = head
    if ONLY in score_heads(model) and not fitting:
        _known_head(model, wanted[0].classes)
    heads = {}
    for spec in wanted:
        if spec.node in fitting:
            weight = fitting[spec.node].weight.detach().clone()
        else:
            shape = spec.classes, model.config.get_text_config().hidden_size
            weight = _new_weight(shape, model, spec.seed)
        heads[spec.node] = _linear(weight)
    if beside_words:
        _check_words(model)
    elif has_words(model):
        if score_heads(model):
            delattr(model, SCORE)
        model = with_head(model, "score", seed=wanted[0].seed)
    setattr(model, SCORE, ScoreHeads(heads))
    return model


def add_scores(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> None:
    """Add score heads with these weights (C, H), by node, to a model."""
    if set(weights) == {ONLY}:
        add_score(model, weights[ONLY])
    elif weights:
        heads = {node: _linear(one) for node, one in weights.items() if node != ONLY}
        setattr(model, SCORE, ScoreHeads(heads))


def add_score(model: PreTrainedModel, weight: Tensor) -> None:
    """Add a score head with this weight (C, H) to a model."""
    model.config.num_labels = weight.shape[0]
    setattr(model, SCORE, _linear(weight))


def that_write(weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """The weights that generate text: all but those of score heads."""
    return ((name, weight) for name, weight in weights if not name.startswith(f"{SCORE}."))


def writing_part(model: PreTrainedModel) -> PreTrainedModel:
    """A language model without its score heads, sharing all other modules; others unchanged."""
    if not score_heads(model) or not has_words(model):
        return model
    part = copy.copy(model)
    part._modules = {name: module for name, module in model._modules.items() if name != SCORE}
    return part


def _check_words(model: PreTrainedModel) -> None:
    if not has_words(model):
        raise ModelUnavailable(
            f"{type(model).__name__} has a score head but no language-model head: it can neither "
            "generate nor give log-probs; use the model that it was made from"
        )


def _linear(weight: Tensor) -> nn.Linear:
    with torch.device("meta"):
        head = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    head.weight = nn.Parameter(weight)
    return head


def _known_head(model: PreTrainedModel, classes: int) -> nn.Linear | None:
    head = score_head(model)
    if head is not None and head.out_features != classes:
        wanted = "one number" if classes == 1 else f"{classes} classes, as its labels say,"
        raise ModelUnavailable(
            f"{type(model).__name__} has a head of {head.out_features} classes, but {wanted} is "
            "read from it; name its classes in `read.labels`, or use the model that it was made "
            "from"
        )
    return head


def _new_weight(shape: Sequence[int], model: PreTrainedModel, seed: int) -> Tensor:
    """Random weights; drawn in float32, so that every dtype starts from equal values."""
    beside = next(model.parameters())
    deviation = getattr(model.config.get_text_config(), "initializer_range", STEADY_RANGE)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.empty(*shape).normal_(0.0, deviation, generator=generator)
    device = torch.device("cpu") if beside.is_meta else beside.device  # others are still to come
    return weight.to(device, beside.dtype)
