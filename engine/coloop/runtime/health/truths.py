"""Which reading says how right a learner is, where something else than that is what it learns from:
a reward can rise while the truth falls, and then it is gamed.

The truth is what a checker without weights says of the learner's texts: the accuracy or score of an
evaluation on other rows, else the checker's own mean score of the step.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import EvaluateNode, RewardNode, VerifierNode

TRUTH: Final = "truth"
"""The name under which a learner's symptoms find the reading."""
CHECKERS: Final = frozenset({"task", "exact_match", "math_equal", "choice", "code_tests"})
"""Built-in rewards that compare with an answer."""
TURNING: Final = frozenset({"one_minus", "band", "margin"})
"""Built-ins whose score falls where the truth rises: who learns from them may want it to fall."""
WHOLE: Final = ("accuracy", "score", "pass@1")
"""Metrics of an evaluation that say how right texts are, the first that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A reading."""

    node: str
    metric: str


def truths_of(spec: LoopSpec) -> Mapping[str, Truth]:
    """By learner of rewards that are not a checker's alone."""
    found = {}
    for learner in spec.nodes:
        edges = spec.graph.edges_into(learner, "rewards")
        names = _scorers_between(spec, learner, {edge.source.node for edge in edges})
        if any(_builtin(spec, name) in TURNING for name in names):
            continue
        if any(not _passes_on(spec, name) and not is_checker(spec, name) for name in names):
            truth = next(_truths(spec, learner), None)
            if truth is not None:
                found[learner] = truth
    return found


def is_checker(spec: LoopSpec, node: str) -> bool:
    """Whether a node compares texts with what is right, without weights."""
    section = spec.nodes[node]
    if isinstance(section, VerifierNode):
        return section.method in ("rule", "formal")
    return _builtin(spec, node) in CHECKERS


def _truths(spec: LoopSpec, learner: str) -> Iterator[Truth]:
    below = spec.graph.downstream([learner])
    for name, node in spec.nodes.items():
        metric = next((one for one in WHOLE if one in getattr(node, "metrics", ())), None)
        if not isinstance(node, EvaluateNode) or node.instead_of is None or metric is None:
            continue
        scorers = [edge.source.node for edge in spec.graph.edges_into(name, "scores")]
        for scorer in scorers:
            if is_checker(spec, scorer) and scorer in below:
                prefix = f"{scorer}." if len(scorers) > 1 else ""
                yield Truth(node=name, metric=f"{prefix}{metric}")
    for name in spec.nodes:
        if is_checker(spec, name) and any(
            edge.source.node == learner for edge in spec.graph.edges_into(name)
        ):
            yield Truth(node=name, metric="score/mean")


def _scorers_between(spec: LoopSpec, learner: str, sources: set[str]) -> set[str]:
    """Scorers of what the learner writes, on the way to its rewards."""
    between = spec.graph.upstream(sources) & spec.graph.downstream([learner])
    return {name for name in between if isinstance(spec.nodes[name], RewardNode | VerifierNode)}


def _passes_on(spec: LoopSpec, node: str) -> bool:
    """Whether a node makes scores of scores."""
    return _builtin(spec, node) in SCORE_TO_SCORE


def _builtin(spec: LoopSpec, node: str) -> str | None:
    source = getattr(spec.nodes[node], "source", None)
    return getattr(source, "name", None) if getattr(source, "type", "") == "builtin" else None
