"""What a node reads from its model: token log-probs, or one number per position."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from coloop.spec.algorithm import (
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
    node_algorithms,
)
from coloop.spec.base import Section
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import Node, VerifierNode
from coloop.spec.reading import Read

Head = Literal["words", "score"]
"""`words`: log-probs of tokens; `score`: values of tokens, scores of whole texts."""

Reading = Literal["log_probs", "values", "scores", "steps", "choices"]
"""What is asked of a model about texts: log-probs of each token, values of the text before each, a
score of each text (of several classes their logits), a score of the text up to each token, or
log-probs of the words that may come next."""

_NUMBERS: Final = frozenset[Reading]({"scores", "steps", "values"})
LEARNED_FROM: Final[Mapping[type[Section], frozenset[Reading]]] = {
    RewardsAlgorithm: frozenset({"log_probs"}),
    PreferenceAlgorithm: frozenset({"log_probs"}),
    DistillationAlgorithm: frozenset({"log_probs"}),
    Sft: frozenset({"log_probs"}),
    ImplicitPrm: frozenset({"log_probs"}),
    BradleyTerry: frozenset({"scores"}),
    LabelCrossEntropy: frozenset({"scores", "choices"}),
    Regression: _NUMBERS,
    Outcome: _NUMBERS,
    ValueLoss: frozenset({"values"}),
}
"""The readings that each algorithm can train, which are exactly those its recipe requests."""
OF_CLASSES: Final = (LabelCrossEntropy,)
"""Algorithms that train a head of several classes; the others need one score per text."""

SCORERS = ("critic", "reward")


def head_of(node: Node) -> Head:
    """The head that a node reads from its model. A classifier with label words has none of its own:
    it compares the log-probs of these words."""
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
    named = (entry.labels for entry in learned if isinstance(entry, LabelCrossEntropy))
    return next((labels for labels in named if labels is not None), None)


def classes_of(spec: LoopSpec, node: str) -> int:
    """Number of outputs of a node's score head; nodes that share a model have separate outputs."""
    return len(label_words(spec, node) or ("",))


def scorers_of(spec: LoopSpec, members: Iterable[str]) -> list[str]:
    """Members that read a score head."""
    return [node for node in members if head_of(spec.nodes[node]) == "score"]


def scored_at(node: Node) -> Reading:
    """The reading that is a scorer's score and that its labels train."""
    if node.kind == "critic":
        return "values"
    if head_of(node) == "words":
        return "choices"
    is_by_step = isinstance(node, VerifierNode) and node.read.granularity != "sequence"
    return "steps" if is_by_step else "scores"


def taught_at(node: Node, port: str) -> frozenset[Reading]:
    """The readings of a node that a teaching port can train: of a score head its score; of a judge
    in words the choice of a label and, except at `labels`, its tokens; of others their tokens."""
    if head_of(node) == "score":
        return frozenset({scored_at(node)})
    chooses = isinstance(node, VerifierNode) and node.method != "implicit_prm"
    if chooses and port == "labels":
        return frozenset({"choices"})
    return frozenset({"log_probs", "choices"} if chooses else {"log_probs"})


def can_learn(node: Node, port: str, algorithm: type[Section], *, classes: int) -> bool:
    """Whether an algorithm can train a node's model, whose head has `classes` outputs."""
    readings = LEARNED_FROM[algorithm] & taught_at(node, port)
    if readings == {"scores"} and classes > 1:
        return issubclass(algorithm, OF_CLASSES)
    return bool(readings)


def learns_steps(node: Node) -> bool:
    """Whether a scorer's labels are of steps, each at the token in which it ends."""
    if not isinstance(node, VerifierNode) or scored_at(node) != "steps":
        return False
    return node.read.granularity == "step"


def heads_of_group(spec: LoopSpec, members: Iterable[str]) -> frozenset[Head]:
    return frozenset(head_of(spec.nodes[node]) for node in members)


def head_of_group(spec: LoopSpec, members: Iterable[str]) -> Head:
    """The shared head of a group; `score` if no member reads words."""
    return "words" if "words" in heads_of_group(spec, members) else "score"
