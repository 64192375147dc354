"""Rows that meet in one place: does each of them come once, with one text and one score?"""

from collections.abc import Callable, Iterator, Sequence

from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import Edge
from coloop.spec.levels import Level, Relation, ordered, relate
from coloop.spec.lineage.inputs import ALWAYS_CONCAT
from coloop.spec.nodes import BufferNode, FilterNode, PairsNode, TemplateNode
from coloop.validate.edges import removal
from coloop.validate.facts import Facts, found


def rows_come_with_one_text(facts: Facts) -> Iterator[Diagnostic]:
    """Where inputs are put one after another, no two bring the same rows with different texts."""
    for name, node in facts.nodes.items():
        if node.kind == "buffer" or not (node.kind in ALWAYS_CONCAT or node.join == "concat"):
            continue
        edges = [e for e in facts.walk.row_edges(name) if not e.rounds and not facts.is_dead(e)]
        for other, edge in _clashes(facts, edges, _differ):
            yield found(
                "lineage.rows_meet",
                f"`{other.label}` and `{edge.label}` carry the same rows with different texts, but "
                "a row counts once: those of the second edge are lost",
                hint=(
                    "let one template produce both as elements of a list, with `each`, or connect "
                    "the second to another node"
                ),
                field=facts.place(edge),
                fixes=(removal(facts, edge),),
            )


def buffers_read_one_score(facts: Facts) -> Iterator[Diagnostic]:
    """The scores that a buffer gives are one number a row, so of one scorer."""
    for name, node in facts.nodes.items():
        if not isinstance(node, BufferNode) or not facts.walk.out_of(name, "scores"):
            continue
        edges = [edge for edge in facts.walk.into(name, "scores") if not facts.is_dead(edge)]
        for other, edge in _clashes(facts, edges, _score_one_row):
            yield found(
                "lineage.scores_meet",
                f"`{other.label}` and `{edge.label}` score the same rows, but `{name}.scores` "
                "holds one number per row: the second is lost",
                hint=(
                    "combine both into one score with a built-in `weighted` reward and connect "
                    "that; the single scores remain available as columns"
                ),
                field=facts.place(edge),
                fixes=(removal(facts, edge),),
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


RULES = (
    rows_come_with_one_text,
    buffers_read_one_score,
)
