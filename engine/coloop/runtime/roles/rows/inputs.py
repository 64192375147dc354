"""The rows that a node works on, and the scores that reach them; every role asks here and nowhere
else."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from coloop.data.tables import (
    Delivery,
    Row,
    Score,
    attach,
    concat_rows,
    cross_rows,
    gather_rows,
    join_rows,
)
from coloop.data.tables.join import Births, Meetings
from coloop.data.tables.table import Table
from coloop.runtime.roles.protocol import Call, Context, Input
from coloop.spec.levels import Level, Levels, align, birth, births, ordered
from coloop.spec.training import Gather


def joined_rows(node: str, context: Context, call: Call, ports: Sequence[str]) -> tuple[Row, ...]:
    """The tables at these ports joined as the node says."""
    return joined_inputs(
        node, context, [one for port in ports for one in call.inputs.get(port, ())]
    )


def joined_inputs(node: str, context: Context, inputs: Sequence[Input]) -> tuple[Row, ...]:
    """What these edges brought joined as the node says; the order of the edges changes nothing but
    that of a `concat`."""
    join, rows = context.spec.nodes[node].join, single_rows(node, context, inputs)
    if not isinstance(join, Gather):
        return rows
    above = None if join.gather is None else context.lineage.births_of(join.gather)
    return gather_rows(rows, above, join.gather)


def single_rows(node: str, context: Context, inputs: Sequence[Input]) -> tuple[Row, ...]:
    """The same before any of them are gathered."""
    join = context.spec.nodes[node].join
    if join == "concat":
        return concat_rows([one.table for one in inputs])
    inputs = sorted(
        inputs, key=lambda one: (one.edge.rounds is None, one.edge.source, one.edge.key)
    )
    meetings = meetings_of([context.lineage.edge_levels(one.edge) for one in inputs])
    join_tables = cross_rows if join == "cross" else join_rows
    return concat_rows(
        [
            Table(rows=join_tables([one.table for one in met], meetings))
            for met in round_by_round(context, inputs)
        ]
    )


def round_by_round(context: Context, inputs: Sequence[Input]) -> Iterator[list[Input]]:
    """The same inputs, where some of them bring rows of all rounds of one region once for each
    round: rows of different rounds do not meet."""
    regions = [context.lineage.rounds_along(one.edge) for one in inputs]
    knots: list[set[int]] = []
    for place, region in enumerate(regions):
        alike = [knot for knot in knots if any(region & regions[other] for other in knot)]
        knots = [knot for knot in knots if knot not in alike]
        knots.append({place}.union(*alike))
    several = [sorted(knot) for knot in knots if len(knot) > 1]
    if not several:
        yield [*inputs]
        return
    rounds = [
        sorted({row.round for place in knot for row in inputs[place].table.rows})
        for knot in several
    ]
    for numbers in product(*rounds):
        met = [*inputs]
        for knot, number in zip(several, numbers, strict=True):
            for place in knot:
                met[place] = replace(inputs[place], table=inputs[place].table.of_round(number))
        yield met


def scored_rows(
    node: str, call: Call, ports: Sequence[str]
) -> tuple[tuple[Row, ...], list[dict[str, Score]]]:
    """The rows that a scorer scores, and for each the scores that came in, by scorer.

    Args:
        ports: those that bring rows; without any of them the rows that were scored before.
    """
    if call.asked is not None:
        return call.asked, [{} for _ in call.asked]
    context, given = call.context, call.inputs.get("scores", ())
    is_concat = context.spec.nodes[node].join == "concat"
    if any(call.tables(port) for port in ports):
        rows = joined_rows(node, context, call, ports)
    else:
        level = [one for one in given if is_concat or one.edge.aggregate is None]
        rows = joined_inputs(node, context, level)
    deliveries = [deliver(context, rows, one) for one in given]
    if not is_concat:
        rows = only_delivered(rows, deliveries)
    incoming: list[dict[str, Score]] = [
        {
            one.edge.source.node: delivery.values[row.id]
            for one, delivery in zip(given, deliveries, strict=True)
            if row.id in delivery.values
        }
        for row in rows
    ]
    return rows, incoming


def meetings_of(tables: Sequence[Levels]) -> Meetings:
    return Meetings(
        levels=tuple(tuple(map(_births, ordered(levels))) for levels in tables),
        combinations=tuple(tuple(map(_births, met)) for met in align(tables)[0]) if tables else (),
    )


def _births(level: Level) -> Births:
    return Births(birth(level), frozenset(map(birth, level.parents)), births(level))


def deliver(context: Context, rows: Sequence[Row], given: Input) -> Delivery:
    """What one score edge brings to these rows; the spec's lineage says which way it runs."""
    attachment = context.lineage.attachment(given.edge)
    in_rounds = bool(context.lineage.rounds_along(given.edge))  # a later row stands below
    return attach(
        rows,
        given.table,
        aggregate=given.edge.aggregate,
        via=attachment.via,
        rises=attachment.rises or in_rounds,
        in_rounds=in_rounds,
    )


def only_delivered(rows: Sequence[Row], deliveries: Sequence[Delivery]) -> tuple[Row, ...]:
    """The inner join: rows that every connected input delivered, `None` counting as delivered."""
    return tuple(row for row in rows if all(row.id in d.values for d in deliveries))


def merged(tables: Sequence[Table]) -> Table | None:
    if not tables:
        return None
    return Table(rows=concat_rows(tables))
