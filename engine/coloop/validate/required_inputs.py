"""Inputs that a node cannot do without, and why: its kind, its method, what is read of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.nodes import (
    FilterNode,
    PairsNode,
    ReferenceNode,
    RewardNode,
    SearchNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.ports import PORTS
from coloop.spec.shaping import GROUP_RULES
from coloop.validate.facts import Facts, a

PAIRS_NEED: Final[Mapping[str, tuple[str, ...]]] = {
    "best_worst": ("rollouts", "scores"),
    "margin": ("rollouts", "scores"),
    "all": ("rollouts",),
    "direct": ("chosen", "rejected"),
    "relabel": ("pairs", "preference"),
}
"""Inputs that the methods of a pairs node work on."""


@dataclass(frozen=True, slots=True)
class RequiredInput:
    """An input that should have an edge."""

    port: str
    reason: str


def required_inputs(facts: Facts, name: str) -> Iterator[RequiredInput]:
    """Inputs that must have an edge, whether they have one or not."""
    node = facts.nodes[name]
    for port, section in PORTS[node.kind].inputs.items():
        used = [out for out in section.required_where_used if facts.is_used(name, out)]
        if section.required is True:
            yield RequiredInput(port, f"{a(node.kind)} needs it")
        elif used and not (node.kind == "actor" and facts.walk.callers.get(name)):
            yield RequiredInput(port, f"`{name}.{used[0]}` is used")
    match node:
        case PairsNode():
            for port in PAIRS_NEED[node.method]:
                yield RequiredInput(port, f"`method: {node.method}` needs it")
        case RewardNode() | VerifierNode():
            yield from _of_scorer(facts, name, node)
        case ReferenceNode() if facts.is_used(name, "log_probs"):
            if not facts.is_connected(name, "pairs"):
                yield RequiredInput("rollouts", f"`{name}.log_probs` is used")
        case FilterNode():
            yield from _of_filter(facts, name, node)
        case ToolNode(type="search"):
            yield RequiredInput("documents", "a search tool needs it")
        case ToolNode(type="model"):
            yield RequiredInput("policy", "a model tool needs it")
        case SearchNode():
            port = "tools" if node.method == "and_or" else "outcome"
            yield RequiredInput(port, f"`method: {node.method}` needs it")


def _of_scorer(facts: Facts, name: str, node: RewardNode | VerifierNode) -> Iterator[RequiredInput]:
    outputs = [out for out in PORTS[node.kind].outputs if out not in ("check", "policy")]
    used = [out for out in outputs if facts.is_used(name, out)]
    if not used:
        return
    source = node.source if isinstance(node, RewardNode) else None
    if source is not None and source.type == "builtin" and source.name in SCORE_TO_SCORE:
        yield RequiredInput("scores", f"`{source.name}` combines scores")
        return
    inputs = ("rollouts", "rows", "comparisons", "scores")
    if not any(facts.is_connected(name, port) for port in inputs):
        yield RequiredInput("rollouts", f"`{name}.{used[0]}` is used")
    is_implicit = isinstance(node, VerifierNode) and node.method == "implicit_prm"
    if is_implicit and not facts.is_connected(name, "labels"):
        yield RequiredInput("prior", "`method: implicit_prm` needs it")


def _of_filter(facts: Facts, name: str, node: FilterNode) -> Iterator[RequiredInput]:
    for rule in node.keep:
        if rule.rule not in (*GROUP_RULES, "score"):
            continue
        of = getattr(rule, "of", None)
        if of is None:
            yield RequiredInput("scores", f"the rule `{rule.rule}` needs scores")
        elif not facts.is_connected(name, "by") and not facts.is_connected(name, "scores"):
            yield RequiredInput("by", f"the rule `{rule.rule}` needs scores of `{of}`")
    if node.per_group is not None and node.per_group.pick in ("best", "worst"):
        yield RequiredInput("scores", f"`per_group.pick: {node.per_group.pick}` needs scores")
    if node.resample is not None:
        yield RequiredInput("scores", "`resample` needs scores")
