"""The heads of a group's model: words where a node of it reads words, and a score head for each
node that reads a score. A group with one such node has the one `score.weight` of Hugging Face's
classifiers; of several nodes each has its own, with a seed from its name.

    begins as   that of the node in `of`, else of its own name, else the only one of those weights,
                where that says as many numbers; else it is new
    follows     in the same way, whatever the source calls its head
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from torch import Tensor
from transformers import PreTrainedModel

from coloop.data.seeds import derive_seed
from coloop.errors import ModelUnavailable
from coloop.models import (
    ONLY,
    SCORE,
    HeadSpec,
    head_for,
    score_heads,
    score_name,
    with_both_heads,
    with_each_head,
    with_head,
    with_one_of,
)
from coloop.spec.adapters import source_of
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import classes_of, heads_of_group, scorers_of
from coloop.spec.nodes import model_of

Names = Mapping[str, tuple[str, ...]]
"""By the name of a source's score head, those that take it."""


def with_heads(
    model: PreTrainedModel, spec: LoopSpec, group: str, members: Sequence[str], *, seed: int
) -> PreTrainedModel:
    """The model with the heads that the nodes of a group read; one that it lacks is new.

    Args:
        seed: of the run.
    """
    heads, scorers = heads_of_group(spec, members), scorers_of(spec, members)
    own = derive_seed(seed, group, "head")
    if not scorers:
        return with_head(model, "words", seed=own)
    of = source_of(model_of(spec.nodes[group]))
    if of is None:
        _check_names(model, scorers)
    if len(scorers) > 1:
        wanted = [
            HeadSpec(
                node=node, classes=classes_of(spec, node), seed=derive_seed(seed, node, "head")
            )
            for node in scorers
        ]
        return with_each_head(model, wanted, of=of, beside_words="words" in heads)
    (node,) = scorers
    model, classes = with_one_of(model, node, of), classes_of(spec, node)
    if len(heads) > 1:
        return with_both_heads(model, seed=own, classes=classes)
    return with_head(model, "score", seed=own, classes=classes)


def without_head(model: PreTrainedModel, spec: LoopSpec, group: str, members: Sequence[str]) -> str:
    """The first node of a group that reads a score head which the model has not for it; "" where
    there is none."""
    of = source_of(model_of(spec.nodes[group]))
    lacking = (one for one in scorers_of(spec, members) if head_for(model, one, of) is None)
    return next(lacking, "")


def taken_heads(
    spec: LoopSpec, group: str, members: Sequence[str], of_source: Sequence[str]
) -> Names | None:
    """Which score heads of a group follow which of another's; None where both have one at most,
    under the same name.

    Args:
        of_source: nodes of the source's group.
    """
    own, theirs = scorers_of(spec, members), scorers_of(spec, of_source)
    if len(own) < 2 and len(theirs) < 2:
        return None
    of = source_of(model_of(spec.nodes[group]))
    only = theirs[0] if len(theirs) == 1 else None
    names: dict[str, tuple[str, ...]] = {}
    for node in own:
        there = next((one for one in (of, node, only) if one in theirs), None)
        if there is None or classes_of(spec, there) != classes_of(spec, node):
            continue
        name = score_name(there, is_alone=len(theirs) == 1)
        names[name] = (*names.get(name, ()), score_name(node, is_alone=len(own) == 1))
    return names


def renamed(
    given: Iterable[tuple[str, Tensor]], names: Names | None
) -> Iterator[tuple[str, Tensor]]:
    """Weights by the names that who takes them has for score heads; heads that nobody takes are
    left out."""
    for name, weight in given:
        if names is None or not name.startswith(f"{SCORE}."):
            yield name, weight
        else:
            yield from ((own, weight) for own in names.get(name, ()))


def _check_names(model: PreTrainedModel, scorers: Sequence[str]) -> None:
    """Raises `ModelUnavailable` where a folder has heads of several nodes, none of a node's name,
    and one that no node takes: whether that is meant nobody can tell. Where all are taken by name,
    those of further nodes are new."""
    heads = score_heads(model)
    left = [name for name in heads if name != ONLY and name not in scorers]
    for node in scorers:
        if left and node not in heads:
            raise ModelUnavailable(
                f"{node}: its weights have the score heads of {', '.join(heads)}, but none named "
                f"{node!r}; give the node the name of the head that it should start with"
            )
