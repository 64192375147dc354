"""What a node reads of its model: words, or one number of a position."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from coloop.spec.algorithm import LabelCrossEntropy, node_algorithms
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import Node, VerifierNode
from coloop.spec.reading import Read

Head = Literal["words", "score"]
"""`words`: log-probs of tokens; `score`: values of tokens, scores of whole texts."""

Reading = Literal["log_probs", "values", "scores", "steps", "choices"]
"""What is asked of a model about texts: log-probs of each token, values of the text before each, a
score of each text (of several classes their logits), a score of the text up to each token, or
log-probs of the words that may come next."""

SCORERS = ("critic", "reward")
"""Kinds whose model gives one number a position."""


def head_of(node: Node) -> Head:
    """The head through which a node with a model reads it; a classifier with label words compares
    what its model says of these."""
    if isinstance(node, VerifierNode):
        is_scored = node.method == "discriminative" and node.read.labels is None
        return "score" if is_scored else "words"
    return "score" if node.kind in SCORERS else "words"


def label_words(spec: LoopSpec, node: str) -> tuple[str, ...] | None:
    """The labels between which a node chooses: those that it reads, else those that it learns."""
    read = getattr(spec.nodes[node], "read", None)
    if isinstance(read, Read) and read.labels is not None:
        return read.labels
    learned = (entry for entries in node_algorithms(spec, node).values() for entry in entries)
    named = (one.labels for one in learned if isinstance(one, LabelCrossEntropy))
    return next((labels for labels in named if labels is not None), None)


def classes_of(spec: LoopSpec, members: Iterable[str]) -> int:
    """Numbers that the score head of a model says which these nodes share."""
    heads = [node for node in members if head_of(spec.nodes[node]) == "score"]
    return max((len(label_words(spec, node) or ("",)) for node in heads), default=1)


def scored_at(node: Node) -> Reading:
    """What of a scorer's model is its score, and learns labels."""
    if node.kind == "critic":
        return "values"
    if head_of(node) == "words":
        return "choices"
    is_by_step = isinstance(node, VerifierNode) and node.read.granularity != "sequence"
    return "steps" if is_by_step else "scores"


def learns_steps(node: Node) -> bool:
    """Whether a scorer's labels are of steps, each at the token in which it ends."""
    if not isinstance(node, VerifierNode) or scored_at(node) != "steps":
        return False
    return node.read.granularity == "step"


def heads_of_group(spec: LoopSpec, members: Iterable[str]) -> frozenset[Head]:
    """The heads of a model that all these nodes share."""
    return frozenset(head_of(spec.nodes[node]) for node in members)


def head_of_group(spec: LoopSpec, members: Iterable[str]) -> Head:
    """The head of a model that all these nodes share; a score where none of them reads words."""
    return "words" if "words" in heads_of_group(spec, members) else "score"
