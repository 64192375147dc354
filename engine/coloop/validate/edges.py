"""Edges one by one: do both ends exist, do the types fit, is there room, do the options make
sense."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, did_you_mean, error, warning
from coloop.spec.graph import Edge, PortRef
from coloop.spec.levels import Level, Relation, ordered, relate
from coloop.spec.lineage.walk import ALWAYS_CONCAT
from coloop.spec.nodes import BufferNode, FilterNode, PairsNode, TemplateNode
from coloop.spec.ports import HANDLES, PORTS, PortType, accepts
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
    """An edge joins equal types; rollouts go where rows are asked."""
    for edge in facts.walk.edges:
        given, taken = types_of(facts, edge)
        if accepts(taken, given):
            continue
        ports = PORTS[facts.walk.kinds[edge.target.node]].inputs
        fitting = [name for name, port in ports.items() if accepts(port.type, given)]
        fixes = [
            _renamed(facts, edge, "target", PortRef(edge.target.node, name)) for name in fitting[:2]
        ]
        yield error(
            "structure.type_mismatch",
            facts.place(edge),
            f"`{edge.label}` connects {given} to a port that takes {taken}",
            _fitting_hint(edge.target.node, fitting, given),
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
    """`aggregate` stands on scores, `weight` where something is learned."""
    for edge in facts.walk.edges:
        given, _ = types_of(facts, edge)
        port = PORTS[facts.walk.kinds[edge.target.node]].inputs[edge.target.port]
        if edge.aggregate is not None and given is not PortType.SCORES:
            yield _misplaced(facts, edge, "aggregate", f"{given} are not rewards")
        elif edge.aggregate is not None and facts.walk.kinds[edge.target.node] == "buffer":
            yield _misplaced(facts, edge, "aggregate", "a buffer stores scores with their own rows")
        if edge.weight not in (0.0, 1.0) and not port.teaching:
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
    """An edge as it is written, with other options; `None` leaves one out."""
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


def _fitting_hint(node: str, fitting: Iterable[str], given: PortType) -> str:
    names = ", ".join(f"`{node}.{name}`" for name in fitting)
    return f"connect {given} to {names}" if names else f"`{node}` takes no {given}"


# Rows that meet in one place: does each of them come once, with one text and one score?


def rows_come_with_one_text(facts: Facts) -> Iterator[Diagnostic]:
    """Where inputs are put one after another, no two bring the same rows with different texts."""
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
    """The scores that a buffer gives are one number a row, so of one scorer."""
    for name, _ in facts.of(BufferNode):
        if not facts.walk.out_of(name, "scores"):
            continue
        edges = [edge for edge in facts.walk.into(name, "scores") if not facts.is_dead(edge)]
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
    """Each edge that clashes with an earlier one, behind the first of those."""
    for index, edge in enumerate(edges):
        other = next((before for before in edges[:index] if is_clash(facts, before, edge)), None)
        if other is not None:
            yield other, edge


def _differ(facts: Facts, one: Edge, other: Edge) -> bool:
    """Whether two edges bring rows of one level that different nodes wrote."""
    levels = facts.lineage.edge_levels(one) & facts.lineage.edge_levels(other)
    return any(
        _writers(facts, one, level, frozenset()) != _writers(facts, other, level, frozenset())
        for level in ordered(levels)
    )


def _writers(facts: Facts, edge: Edge, level: Level, seen: frozenset[str]) -> frozenset[str]:
    """The nodes that gave the rows of a level the texts with which an edge brings them."""
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


def _score_one_row(facts: Facts, one: Edge, other: Edge) -> bool:
    relation = relate(facts.lineage.edge_levels(one), facts.lineage.edge_levels(other))
    return relation in (Relation.SAME, Relation.DOWN, Relation.UP)
