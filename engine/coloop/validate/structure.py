"""The graph: single edges (ends, types, number, options), rows that arrive twice, required inputs,
and nodes that nothing uses."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from coloop.spec.base import as_tuple
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, did_you_mean, error, warning
from coloop.spec.graph import Edge, PortRef, reach
from coloop.spec.groups import chat_service
from coloop.spec.levels import Level, Relation, ordered, relate
from coloop.spec.lineage.walk import ALWAYS_CONCAT
from coloop.spec.nodes import (
    BufferNode,
    EvaluateNode,
    FilterNode,
    PairsNode,
    ReferenceNode,
    RewardNode,
    SearchNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.ports import HANDLES, PORTS, PortType, accepts, is_of_use
from coloop.spec.shaping import GROUP_RULES
from coloop.validate import next_steps
from coloop.validate.facts import Facts, a


def edges_name_nodes(facts: Facts) -> Iterator[Diagnostic]:
    for edge in facts.spec.edges:
        for side, ref in (("source", edge.source), ("target", edge.target)):
            if ref.node in facts.nodes:
                continue
            fixes = [
                _renamed(facts, edge, side, PortRef(near, ref.port))
                for near in closest(ref.node, facts.nodes, limit=1)
            ]
            yield error(
                "structure.unknown_node",
                facts.place(edge),
                f"`{edge.label}` names the node `{ref.node}`, which does not exist",
                did_you_mean(ref.node, facts.nodes),
                *fixes,
                removal(facts, edge),
            )


def edges_name_ports(facts: Facts) -> Iterator[Diagnostic]:
    for edge in facts.spec.edges:
        for side, ref in (("source", edge.source), ("target", edge.target)):
            kind = facts.walk.kinds.get(ref.node)
            if kind is None:
                continue
            known: Any = PORTS[kind].outputs if side == "source" else PORTS[kind].inputs
            if ref.port in known:
                continue
            what = "output" if side == "source" else "input"
            fixes = [
                _renamed(facts, edge, side, PortRef(ref.node, near))
                for near in closest(ref.port, known, limit=1)
            ]
            yield error(
                "structure.unknown_port",
                facts.place(edge),
                f"`{edge.label}`: {a(kind)} has no {what} `{ref.port}`",
                did_you_mean(ref.port, known) or f"{a(kind)} has no {what}s",
                *fixes,
                removal(facts, edge),
            )


def edges_join_equal_types(facts: Facts) -> Iterator[Diagnostic]:
    """An edge connects equal types; rollouts may also go where rows are expected."""
    for edge in facts.walk.edges:
        given, taken = types_of(facts, edge)
        if accepts(taken, given):
            continue
        ports = PORTS[facts.walk.kinds[edge.target.node]].inputs
        fitting = [name for name, port in ports.items() if accepts(port.type, given)]
        names = ", ".join(f"`{edge.target.node}.{name}`" for name in fitting)
        fixes = [
            _renamed(facts, edge, "target", PortRef(edge.target.node, name)) for name in fitting[:2]
        ]
        yield error(
            "structure.type_mismatch",
            facts.place(edge),
            f"`{edge.label}` connects {given} to a port that takes {taken}",
            f"connect {given} to {names}" if names else f"`{edge.target.node}` takes no {given}",
            *fixes,
            removal(facts, edge),
        )


def ports_have_room(facts: Facts) -> Iterator[Diagnostic]:
    """No port has more edges than it takes, and no edge is there twice."""
    counts: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[PortRef, PortRef]] = set()
    for edge in facts.walk.edges:
        ends = (edge.source, edge.target)
        if ends in seen and edge.rounds is None:
            yield error(
                "structure.duplicate_edge",
                facts.place(edge),
                f"`{edge.label}` exists twice",
                "one edge carries all rows",
                removal(facts, edge),
            )
            continue
        seen.add(ends)
        target = (edge.target.node, edge.target.port)
        counts[target] += 1
        most = PORTS[facts.walk.kinds[edge.target.node]].inputs[edge.target.port].max
        if most is not None and counts[target] > most:
            yield error(
                "structure.too_many_edges",
                facts.place(edge),
                f"`{edge.target}` takes {most} edge, and `{edge.label}` is number {counts[target]}",
                "remove one, or combine the inputs in a node before it",
                removal(facts, edge),
            )


def ids_are_unique(facts: Facts) -> Iterator[Diagnostic]:
    seen: dict[str, Edge] = {}
    for edge in facts.spec.edges:
        if edge.id is None:
            continue
        if edge.id in seen:
            yield error(
                "structure.duplicate_id",
                f"{facts.place(edge)}.id",
                f"the id `{edge.id}` is used for both `{seen[edge.id].label}` and `{edge.label}`",
                "ids must be unique, because paths such as `edges.outcome.weight` use them",
            )
        seen.setdefault(edge.id, edge)


def options_belong_to_their_edges(facts: Facts) -> Iterator[Diagnostic]:
    """`aggregate` is for scores, `weight` for teaching ports, `rounds` for edges that move rows."""
    for edge in facts.walk.edges:
        given, _ = types_of(facts, edge)
        port = PORTS[facts.walk.kinds[edge.target.node]].inputs[edge.target.port]
        if edge.aggregate is not None and given is not PortType.SCORES:
            yield _misplaced(facts, edge, "aggregate", f"{given} are not rewards")
        elif edge.aggregate is not None and facts.walk.kinds[edge.target.node] == "buffer":
            yield _misplaced(facts, edge, "aggregate", "a buffer stores scores with their own rows")
        if edge.weight not in (0.0, 1.0) and not facts.spec.graph.teaches(edge):
            yield _misplaced(facts, edge, "weight", "only edges into teaching ports have a weight")
        if edge.rounds is not None and (given in HANDLES or port.phase == "learn"):
            yield _misplaced(facts, edge, "rounds", "this edge does not close a cycle of rounds")


def types_of(facts: Facts, edge: Edge) -> tuple[PortType, PortType]:
    kinds = facts.walk.kinds
    given = PORTS[kinds[edge.source.node]].outputs[edge.source.port].type
    return given, PORTS[kinds[edge.target.node]].inputs[edge.target.port].type


def removal(facts: Facts, edge: Edge) -> Fix:
    change = Change(op="remove_edge", path=facts.place(edge))
    return Fix(title=f"Remove {edge.label}", changes=(change,))


def edge_value(edge: Edge, **options: Any) -> str | dict[str, Any]:
    """An edge as it is written, with other options; None removes one."""
    written = edge.model_dump(by_alias=True, exclude_unset=True) | options
    value = {"from": str(edge.source), "to": str(edge.target)}
    value |= {k: v for k, v in written.items() if v is not None and k not in ("from", "to")}
    return value if len(value) > 2 else f"{value['from']} -> {value['to']}"


def _renamed(facts: Facts, edge: Edge, side: str, ref: PortRef) -> Fix:
    value = edge_value(edge.model_copy(update={side: ref}))
    return Fix.set(f"Change to {ref}", facts.place(edge), value)


def _misplaced(facts: Facts, edge: Edge, option: str, reason: str) -> Diagnostic:
    value = edge_value(edge, **{option: None})
    return warning(
        "structure.misplaced_option",
        f"{facts.place(edge)}.{option}",
        f"`{option}` has no effect on `{edge.label}`: {reason}",
        f"remove `{option}`",
        Fix.set(f"Remove `{option}`", facts.place(edge), value),
    )


# Rows that meet in one place: does each of them come once, with one text and one score?


def rows_come_with_one_text(facts: Facts) -> Iterator[Diagnostic]:
    """No two concatenated inputs bring the same rows with different texts."""
    for name, node in facts.nodes.items():
        if node.kind == "buffer" or not (node.kind in ALWAYS_CONCAT or node.join == "concat"):
            continue
        edges = [e for e in facts.walk.row_edges(name) if not e.rounds and not facts.is_dead(e)]
        for other, edge in _clashes(facts, edges, _differ):
            yield error(
                "lineage.rows_meet",
                facts.place(edge),
                f"`{other.label}` and `{edge.label}` carry the same rows with different texts, but "
                "a row counts once: those of the second edge are lost",
                "let one template produce both as elements of a list, with `each`, or connect "
                "the second to another node",
                removal(facts, edge),
            )


def buffers_read_one_score(facts: Facts) -> Iterator[Diagnostic]:
    """A buffer whose scores are used gets one score per row."""
    for name, _ in facts.of(BufferNode):
        if not facts.walk.out_of(name, "scores"):
            continue
        edges = facts.alive(name, "scores")
        for other, edge in _clashes(facts, edges, _score_one_row):
            yield error(
                "lineage.scores_meet",
                facts.place(edge),
                f"`{other.label}` and `{edge.label}` score the same rows, but `{name}.scores` "
                "holds one number per row: the second is lost",
                "combine both into one score with a built-in `weighted` reward and connect "
                "that; the single scores remain available as columns",
                removal(facts, edge),
            )


def _clashes(
    facts: Facts, edges: Sequence[Edge], is_clash: Callable[[Facts, Edge, Edge], bool]
) -> Iterator[tuple[Edge, Edge]]:
    """Each edge that clashes with an earlier one, paired with the first of those."""
    for index, edge in enumerate(edges):
        other = next((before for before in edges[:index] if is_clash(facts, before, edge)), None)
        if other is not None:
            yield other, edge


def _differ(facts: Facts, edge: Edge, other: Edge) -> bool:
    """Whether two edges bring rows of one level that different nodes wrote."""
    levels = facts.lineage.edge_levels(edge) & facts.lineage.edge_levels(other)
    return any(
        _writers(facts, edge, level, frozenset()) != _writers(facts, other, level, frozenset())
        for level in ordered(levels)
    )


def _writers(facts: Facts, edge: Edge, level: Level, seen: frozenset[str]) -> frozenset[str]:
    """Nodes that wrote the texts of a level, as an edge brings them."""
    name, port = edge.source.node, edge.source.port
    node = facts.nodes[name]
    if isinstance(node, TemplateNode) or (isinstance(node, PairsNode) and node.method == "relabel"):
        return frozenset({name})
    if not isinstance(node, FilterNode) or name in seen:
        return frozenset({level.node})
    given = [
        above
        for above in facts.walk.into(name, port, "spare")
        if level in facts.lineage.edge_levels(above)
    ]
    return frozenset().union(
        *(_writers(facts, above, level, seen | {name}) for above in given)
    ) or frozenset({level.node})


def _score_one_row(facts: Facts, edge: Edge, other: Edge) -> bool:
    relation = relate(facts.lineage.edge_levels(edge), facts.lineage.edge_levels(other))
    return relation in (Relation.SAME, Relation.DOWN, Relation.UP)


# The graph as a whole: required inputs, outputs without inputs, what nothing uses.


def required_inputs_are_there(facts: Facts) -> Iterator[Diagnostic]:
    for name in facts.nodes:
        if facts.has_broken_input(name):
            continue
        missing = {
            port: reason
            for port, reason in required_inputs(facts, name)
            if not facts.is_connected(name, port)
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
    """An output of a filter or buffer needs an edge at the input of the same name."""
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
    """Rollouts come from verifiers that generate, step scores from those that read steps, returns
    from actors that read values."""
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
    """The connected inputs of a pairs node are used by its method."""
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
    """Every node contributes to something learned, kept or measured."""
    if facts.has_broken_edges:
        return
    used = used_nodes(facts)
    for name in facts.nodes:
        if name not in used:
            yield _unused(facts, name, used)


def _unused(facts: Facts, name: str, used: set[str]) -> Diagnostic:
    """Warn about an unused node: how to continue from it, or remove it if others are used."""
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
        if chat_service(node) is not None:
            return "a chat model by URL cannot be called by other nodes", "use its `rollouts`"
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
    """Nodes from which a goal can be reached, and nodes that these name in their fields.

    Goals are learners, evaluations, and buffers that a phase fills.
    """
    filled = {name for phase in facts.phases for name in phase.fills}
    probes = [name for name, _ in facts.of(EvaluateNode)]
    goals = [*probes, *facts.learners, *(name for name in facts.nodes if name in filled)]

    def needed(name: str) -> set[str]:
        return {*(edge.source.node for edge in facts.walk.into(name)), *_named_by(facts, name)}

    return set(reach(goals, needed))


def _named_by(facts: Facts, name: str) -> set[str]:
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
"""Inputs that each method of a pairs node needs."""


def required_inputs(facts: Facts, name: str) -> Iterator[tuple[str, str]]:
    """Inputs that require an edge, connected or not, with the reason."""
    node = facts.nodes[name]
    for port, section in PORTS[node.kind].inputs.items():
        used = [out for out in section.required_where_used if facts.is_used(name, out)]
        if section.required is True:
            yield port, f"{a(node.kind)} needs it"
        elif used and not (node.kind == "actor" and facts.walk.callers.get(name)):
            yield port, f"`{name}.{used[0]}` is used"
    match node:
        case PairsNode():
            for port in PAIRS_NEED[node.method]:
                yield port, f"`method: {node.method}` needs it"
        case RewardNode() | VerifierNode():
            yield from _of_scorer(facts, name, node)
        case ReferenceNode() if facts.is_used(name, "log_probs"):
            if not facts.is_connected(name, "pairs"):
                yield "rollouts", f"`{name}.log_probs` is used"
        case FilterNode():
            yield from _of_filter(facts, name, node)
        case ToolNode(type="search"):
            yield "documents", "a search tool needs it"
        case ToolNode(type="model"):
            yield "policy", "a model tool needs it"
        case SearchNode():
            port = "tools" if node.method == "and_or" else "outcome"
            yield port, f"`method: {node.method}` needs it"


def _of_scorer(
    facts: Facts, name: str, node: RewardNode | VerifierNode
) -> Iterator[tuple[str, str]]:
    outputs = [out for out in PORTS[node.kind].outputs if out not in ("check", "policy")]
    used = [out for out in outputs if facts.is_used(name, out)]
    if not used:
        return
    source = node.source if isinstance(node, RewardNode) else None
    if source is not None and source.type == "builtin" and source.name in SCORE_TO_SCORE:
        yield "scores", f"`{source.name}` combines scores"
        return
    inputs = ("rollouts", "rows", "comparisons", "scores")
    if not any(facts.is_connected(name, port) for port in inputs):
        yield "rollouts", f"`{name}.{used[0]}` is used"
    is_implicit = isinstance(node, VerifierNode) and node.method == "implicit_prm"
    if is_implicit and not facts.is_connected(name, "labels"):
        yield "prior", "`method: implicit_prm` needs it"


def _of_filter(facts: Facts, name: str, node: FilterNode) -> Iterator[tuple[str, str]]:
    for rule in node.keep:
        if rule.rule not in (*GROUP_RULES, "score"):
            continue
        of = getattr(rule, "of", None)
        if of is None:
            yield "scores", f"the rule `{rule.rule}` needs scores"
        elif not facts.is_connected(name, "by") and not facts.is_connected(name, "scores"):
            yield "by", f"the rule `{rule.rule}` needs scores of `{of}`"
    if node.per_group is not None and node.per_group.pick in ("best", "worst"):
        yield "scores", f"`per_group.pick: {node.per_group.pick}` needs scores"
    if node.resample is not None:
        yield "scores", "`resample` needs scores"
