"""The graph as a whole: required inputs, circles, regions of rounds and refills, what nothing
uses."""

from collections.abc import Iterator

from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.spec.nodes import (
    PairsNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.ports import PORTS, is_of_use
from coloop.validate import next_steps
from coloop.validate.edges import removal
from coloop.validate.facts import Facts, found
from coloop.validate.required_inputs import PAIRS_NEED, required_inputs
from coloop.validate.usage import used_nodes


def required_inputs_are_there(facts: Facts) -> Iterator[Diagnostic]:
    """Inputs that a node cannot do without have an edge."""
    for name in facts.nodes:
        if facts.has_broken_input(name):
            continue
        missing = {
            wanted.port: wanted.reason
            for wanted in required_inputs(facts, name)
            if not facts.is_connected(name, wanted.port)
        }
        for port, reason in missing.items():
            yield found(
                "structure.missing_edge",
                f"`{name}.{port}` has no edge, and {reason}",
                hint=_source_hint(facts, name, port),
                node=name,
                field=port,
                fixes=next_steps.to_input(facts, name, port),
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
        yield found(
            "structure.output_without_input",
            f"`{edge.label}`: `{name}` has no `{port}`, because nothing is connected at "
            f"`{name}.{port}` ({has})",
            hint=f"connect `{name}.{port}`, or use another output",
            field=facts.place(edge),
            fixes=(removal(facts, edge),),
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
            reason, hint = (
                f"a {node.type} tool generates no rollouts",
                ("only `type: model` generates rollouts"),
            )
        elif port == "returns" and not _reads_values(facts, name):
            reason = f"returns need values, but no algorithm at `{name}.rewards` uses them"
            hint = "use an algorithm with `advantage: gae` (ppo, vapo), or remove the critic"
        if reason is not None:
            yield found(
                "structure.silent_output",
                f"`{edge.label}` carries no data: {reason}",
                hint=hint,
                field=facts.place(edge),
                fixes=(removal(facts, edge),),
            )


def inputs_are_read(facts: Facts) -> Iterator[Diagnostic]:
    """What is connected is also looked at: the inputs of a pairs node fit its method."""
    for edge in facts.walk.edges:
        node = facts.nodes[edge.target.node]
        if not isinstance(node, PairsNode):
            continue
        if not is_of_use(PORTS[node.kind].inputs[edge.target.port], node):
            yield found(
                "structure.unread_input",
                f"`{edge.label}` is not used: `method: {node.method}` works on "
                + ", ".join(f"`{port}`" for port in PAIRS_NEED[node.method]),
                severity=Severity.WARNING,
                hint="change the method or remove the edge",
                field=facts.place(edge),
                fixes=(removal(facts, edge),),
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
        change = Change(op="remove", path=f"nodes.{name}")
        hint += ", or remove it"
        fixes = (*fixes, Fix(title=f"Remove {name}", changes=(change,)))
    return found(
        "structure.unused_node",
        message,
        severity=Severity.WARNING,
        hint=hint,
        node=name,
        fixes=fixes,
    )


def _source_hint(facts: Facts, name: str, port: str) -> str:
    wanted = PORTS[facts.nodes[name].kind].inputs[port].type
    names = next_steps.sources(facts, name, port)[:3]
    if not names:
        return f"add a node that provides {wanted}"
    return "connect " + " or ".join(f"`{source}`" for source in names)


def _reads_values(facts: Facts, name: str) -> bool:
    """Whether an actor has returns to give; so it has where nothing is said of its rewards yet."""
    return "values" in facts.read_by(name, "rewards") or not facts.algorithms(name, "rewards")


def _silent_verifier(
    facts: Facts, name: str, node: VerifierNode, port: str
) -> tuple[str | None, str | None]:
    if port in ("rollouts", "policy") and not facts.lineage.writes(name):
        how = "without `rollout` it" if node.method == "generative" else f"`{node.method}`"
        return (
            f"{how} generates nothing"
        ), "only `method: generative` with a `rollout` generates texts"
    if port != "step_scores" or node.method in ("rule", "implicit_prm", "formal"):
        return None, None
    if node.method == "vote":
        return "a vote has no steps", "use `scores`"
    if node.method == "generative" and node.rollout is None:
        return "without `rollout` it reads one label and has no steps", "set `rollout`"
    if node.read.step_verdicts is None and node.read.granularity == "sequence":
        return "`read` does not define steps", "set `read.step_verdicts` or `read.granularity`"
    return None, None


RULES = (
    required_inputs_are_there,
    outputs_have_their_inputs,
    silent_outputs_are_not_read,
    inputs_are_read,
    nodes_are_used,
)
