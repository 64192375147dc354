"""The graph as a whole: required inputs, circles, regions of rounds and refills, what nothing
uses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from coloop.spec.base import as_tuple
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.diagnostics import Diagnostic, Fix, error, warning
from coloop.spec.graph import reach
from coloop.spec.nodes import (
    EvaluateNode,
    FilterNode,
    PairsNode,
    ReferenceNode,
    RewardNode,
    SearchNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.ports import PORTS, is_of_use
from coloop.spec.shaping import GROUP_RULES
from coloop.validate import next_steps
from coloop.validate.edges import removal
from coloop.validate.facts import Facts, a


def required_inputs_are_there(facts: Facts) -> Iterator[Diagnostic]:
    for name in facts.nodes:
        if facts.has_broken_input(name):
            continue
        missing = {
            wanted.port: wanted.reason
            for wanted in required_inputs(facts, name)
            if not facts.is_connected(name, wanted.port)
        }
        for port, reason in missing.items():
            yield error(
                "structure.missing_edge",
                f"nodes.{name}.{port}",
                f"`{name}.{port}` has no edge, and {reason}",
                _source_hint(facts, name, port),
                *next_steps.to_input(facts, name, port),
            )


def outputs_have_their_inputs(facts: Facts) -> Iterator[Diagnostic]:
    """A filter or buffer gives at a port what it takes at the port of that name."""
    for edge in facts.walk.edges:
        name, port = edge.source.node, edge.source.port
        kind = facts.walk.kinds[name]
        if kind not in next_steps.HANDS_ON or facts.is_connected(name, port):
            continue
        if kind == "buffer" and port == "rows" and facts.is_connected(name, "seed"):
            continue
        taken = [p for p in PORTS[kind].outputs if facts.is_connected(name, p)]
        has = "it takes " + ", ".join(f"`{p}`" for p in taken) if taken else "it has no inputs"
        yield error(
            "structure.output_without_input",
            facts.place(edge),
            f"`{edge.label}`: `{name}` has no `{port}`, because nothing is connected at "
            f"`{name}.{port}` ({has})",
            f"connect `{name}.{port}`, or use another output",
            removal(facts, edge),
        )


def silent_outputs_are_not_read(facts: Facts) -> Iterator[Diagnostic]:
    """Rollouts come from verifiers that write, step scores from those that read steps, returns from
    actors that read values."""
    for edge in facts.walk.edges:
        name, port = edge.source.node, edge.source.port
        node = facts.nodes[name]
        reason, hint = None, None
        if isinstance(node, VerifierNode):
            reason, hint = _silent_verifier(facts, name, node, port)
        elif isinstance(node, ToolNode) and port == "rollouts" and node.type != "model":
            reason = f"a {node.type} tool generates no rollouts"
            hint = "only `type: model` generates rollouts"
        elif port == "returns" and not (
            "values" in facts.read_by(name, "rewards") or not facts.algorithms(name, "rewards")
        ):
            reason = f"returns need values, but no algorithm at `{name}.rewards` uses them"
            hint = "use an algorithm with `advantage: gae` (ppo, vapo), or remove the critic"
        if reason is not None:
            yield error(
                "structure.silent_output",
                facts.place(edge),
                f"`{edge.label}` carries no data: {reason}",
                hint,
                removal(facts, edge),
            )


def inputs_are_read(facts: Facts) -> Iterator[Diagnostic]:
    """What is connected is also looked at: the inputs of a pairs node fit its method."""
    for edge in facts.walk.edges:
        node = facts.nodes[edge.target.node]
        if not isinstance(node, PairsNode):
            continue
        if not is_of_use(PORTS[node.kind].inputs[edge.target.port], node):
            yield warning(
                "structure.unread_input",
                facts.place(edge),
                f"`{edge.label}` is not used: `method: {node.method}` works on "
                + ", ".join(f"`{port}`" for port in PAIRS_NEED[node.method]),
                "change the method or remove the edge",
                removal(facts, edge),
            )


def nodes_are_used(facts: Facts) -> Iterator[Diagnostic]:
    """Every node has a part in what is learned, kept or measured."""
    if facts.has_broken_edges:
        return
    used = used_nodes(facts)
    for name in facts.nodes:
        if name not in used:
            yield _unused(facts, name, used)


def _unused(facts: Facts, name: str, used: set[str]) -> Diagnostic:
    """What was drawn up to here, and how to go on; a loop that does without it may lose it."""
    message, fixes = f"nothing uses `{name}` yet", next_steps.onward(facts, name)
    hint = "connect it to a node that learns, stores or measures"
    targets = [edge.target.node for edge in facts.walk.edges if edge.source.node == name]
    reached = [other for other in targets if other not in used]
    if facts.is_alone(name):
        message = f"`{name}` is not connected yet"
    elif reached:
        message, fixes = f"`{name}` leads to `{reached[0]}`, which nothing uses yet", ()
        hint = f"continue at `{reached[0]}`: connect it to a node that learns, stores or measures"
    if used:
        hint += ", or remove it"
        fixes = (*fixes, Fix.remove(f"Remove {name}", f"nodes.{name}"))
    return warning("structure.unused_node", f"nodes.{name}", message, hint, *fixes)


def _source_hint(facts: Facts, name: str, port: str) -> str:
    wanted = PORTS[facts.nodes[name].kind].inputs[port].type
    names = next_steps.sources(facts, name, port)[:3]
    if not names:
        return f"add a node that provides {wanted}"
    return "connect " + " or ".join(f"`{source}`" for source in names)


def _silent_verifier(
    facts: Facts, name: str, node: VerifierNode, port: str
) -> tuple[str | None, str | None]:
    if port in ("rollouts", "policy") and not facts.lineage.writes(name):
        how = "without `rollout` it" if node.method == "generative" else f"`{node.method}`"
        hint = "only `method: generative` with a `rollout` generates texts"
        return f"{how} generates nothing", hint
    if port != "step_scores" or node.method in ("rule", "implicit_prm", "formal"):
        return None, None
    if node.method == "vote":
        return "a vote has no steps", "use `scores`"
    if node.method == "generative" and node.rollout is None:
        return "without `rollout` it reads one label and has no steps", "set `rollout`"
    if node.read.step_verdicts is None and node.read.granularity == "sequence":
        return "`read` does not define steps", "set `read.step_verdicts` or `read.granularity`"
    return None, None


# Which nodes have a part in what a loop is for: learning, keeping rows, measuring.


def used_nodes(facts: Facts) -> set[str]:
    """Nodes from which a goal can be reached, and nodes that others name.

    Goals are learners, evaluations, and buffers that a phase fills or that somebody reads.
    """
    filled = {name for phase in facts.phases for name in phase.fills}
    probes = [name for name, _ in facts.of(EvaluateNode)]
    goals = [*probes, *facts.learners, *(name for name in facts.nodes if name in filled)]

    def needed(name: str) -> set[str]:
        return {*(edge.source.node for edge in facts.walk.into(name)), *_named_by(facts, name)}

    return set(reach(goals, needed))


def _named_by(facts: Facts, name: str) -> set[str]:
    """Nodes whose weights, rows or scores a node names in its fields."""
    node, model = facts.nodes[name], facts.model(name)
    names: set[Any] = {getattr(model, "of", None), getattr(model, "with_", None)}
    if isinstance(node, EvaluateNode):
        names.add(node.instead_of)
        names.update(port.partition(".")[0] for port in as_tuple(node.of))
    return {other for other in names if other in facts.nodes}


# Inputs that a node cannot do without, and why: its kind, its method, what is read of it.

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
