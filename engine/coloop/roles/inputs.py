"""The rows that a node works on, and the scores that reach them; every role asks here and nowhere
else."""

from collections.abc import Sequence

from coloop.roles.protocol import Call, Context, Input
from coloop.spec.training import Gather
from coloop.tables import Delivery, Row, attach, concat_rows, cross_rows, gather_rows, join_rows
from coloop.tables.table import Table


def joined_rows(node: str, context: Context, call: Call, ports: Sequence[str]) -> tuple[Row, ...]:
    """The tables at these ports joined as the node says."""
    tables = [table for port in ports for table in call.tables(port)]
    join = context.spec.nodes[node].join
    match join:
        case "concat":
            return concat_rows(tables)
        case "cross":
            return cross_rows(tables)
        case Gather(gather=by):
            births = None if by is None else context.lineage.births_of(by)
            return gather_rows(join_rows(tables), births)
    return join_rows(tables)


def deliver(context: Context, rows: Sequence[Row], given: Input) -> Delivery:
    """What one score edge brings to these rows; the spec's lineage says which way it runs."""
    attachment = context.lineage.attachment(given.edge)
    return attach(
        rows,
        given.table,
        aggregate=given.edge.aggregate,
        via=attachment.via,
        rises=attachment.rises,
    )


def only_delivered(rows: Sequence[Row], deliveries: Sequence[Delivery]) -> tuple[Row, ...]:
    """The inner join: rows that every connected input delivered, `None` counting as delivered."""
    return tuple(row for row in rows if all(row.id in d.values for d in deliveries))


def merged(tables: Sequence[Table]) -> Table | None:
    """One table of several, or None."""
    if not tables:
        return None
    return Table(rows=concat_rows(tables))
