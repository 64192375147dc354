"""The rows that a node works on, and the scores that belong to them; used by all roles."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from coloop.data.tables import Row, Score, attach, concat_rows, cross_rows, gather_rows, join_rows
from coloop.data.tables.join import Births, Meetings
from coloop.data.tables.table import Table
from coloop.runtime.roles.protocol import Call, Context, Inputs
from coloop.spec.graph import Edge
from coloop.spec.levels import Level, Levels, align, birth, births, ordered
from coloop.spec.training import Gather


def joined_rows(node: str, context: Context, inputs: Inputs) -> tuple[Row, ...]:
    """The rows of these edges, joined as the node says. The order of the edges matters only for
    `concat`."""
    join, rows = context.spec.nodes[node].join, single_rows(node, context, inputs)
    if not isinstance(join, Gather):
        return rows
    above = None if join.gather is None else context.lineage.births_of(join.gather)
    return gather_rows(rows, above, join.gather)


def single_rows(node: str, context: Context, inputs: Inputs) -> tuple[Row, ...]:
    """The same without `gather`."""
    join = context.spec.nodes[node].join
    if join == "concat":
        return concat_rows([*inputs.values()])
    edges = sorted(inputs, key=lambda edge: (edge.rounds is None, edge.source, edge.key))
    meetings = meetings_of([context.lineage.edge_levels(edge) for edge in edges])
    join_tables = cross_rows if join == "cross" else join_rows
    return concat_rows(
        [
            Table(rows=join_tables([met[edge] for edge in edges], meetings))
            for met in round_by_round(context, {edge: inputs[edge] for edge in edges})
        ]
    )


def round_by_round(context: Context, inputs: Inputs) -> Iterator[Inputs]:
    """The inputs, split by round if several of them have rows of one region of rounds, since rows
    of different rounds are not joined."""
    regions = {edge: context.lineage.rounds_along(edge) for edge in inputs}
    knots: list[set[Edge]] = []
    for edge, region in regions.items():
        alike = [knot for knot in knots if any(region & regions[other] for other in knot)]
        knots = [knot for knot in knots if knot not in alike]
        knots.append({edge}.union(*alike))
    several = [knot for knot in knots if len(knot) > 1]
    if not several:
        yield inputs
        return
    rounds = [sorted({row.round for edge in knot for row in inputs[edge].rows}) for knot in several]
    for numbers in product(*rounds):
        met = dict(inputs)
        for knot, number in zip(several, numbers, strict=True):
            met |= {edge: inputs[edge].of_round(number) for edge in knot}
        yield met


ROW_PORTS = ("rollouts", "rows", "comparisons")
"""Ports of a scorer for rows; if none has a table, it scores the rows of its incoming scores."""


def scored_rows(node: str, call: Call) -> tuple[tuple[Row, ...], list[dict[str, Score]]]:
    """The rows that a scorer scores, and for each the incoming scores by scorer."""
    if call.asked is not None:
        return call.asked, [{} for _ in call.asked]
    context, scores = call.context, call.delivered("scores")
    is_concat = context.spec.nodes[node].join == "concat"
    if any(call.tables(port) for port in ROW_PORTS):
        rows = joined_rows(node, context, call.delivered(*ROW_PORTS))
    else:
        level = {e: table for e, table in scores.items() if is_concat or e.aggregate is None}
        rows = joined_rows(node, context, level)
    delivered = deliveries(call, "scores", rows)
    if not is_concat:
        rows = only_delivered(rows, delivered)
    return rows, by_scorer(call, "scores", delivered, rows)


def meetings_of(tables: Sequence[Levels]) -> Meetings:
    return Meetings(
        levels=tuple(tuple(map(_births, ordered(levels))) for levels in tables),
        combinations=tuple(tuple(map(_births, met)) for met in align(tables)[0]) if tables else (),
    )


def _births(level: Level) -> Births:
    return Births(birth(level), frozenset(map(birth, level.parents)), births(level))


def deliver(context: Context, rows: Sequence[Row], edge: Edge, table: Table) -> dict[str, Score]:
    """The scores of these rows from one score edge, by row id."""
    attachment = context.lineage.attachment(edge)
    in_rounds = bool(context.lineage.rounds_along(edge))  # a later row stands below
    return attach(
        rows,
        table,
        aggregate=edge.aggregate,
        via=attachment.via,
        rises=attachment.rises or in_rounds,
        in_rounds=in_rounds,
    )


def deliveries(call: Call, port: str, rows: Sequence[Row]) -> list[dict[str, Score]]:
    """The scores of these rows from each score edge at a port, by row id."""
    edges = call.delivered(port).items()
    return [deliver(call.context, rows, edge, table) for edge, table in edges]


def by_scorer(
    call: Call, port: str, deliveries: Sequence[Mapping[str, Score]], rows: Sequence[Row]
) -> list[dict[str, Score]]:
    """For each row, its scores from the edges at a port, by scorer."""
    names = [edge.source.node for edge in call.delivered(port)]
    return [
        {
            name: scores[row.id]
            for name, scores in zip(names, deliveries, strict=True)
            if row.id in scores
        }
        for row in rows
    ]


def only_delivered(
    rows: Sequence[Row], deliveries: Sequence[Mapping[str, Score]]
) -> tuple[Row, ...]:
    """Inner join: rows that have a score from every input; `None` counts as a score."""
    return tuple(row for row in rows if all(row.id in scores for scores in deliveries))
