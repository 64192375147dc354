"""Log-probs of texts by the weights of a node, each at the temperature at which it was drawn, as
their writer's own log-probs are."""

from collections.abc import Sequence

from coloop.data.arrays import Numbers
from coloop.data.tables import Row
from coloop.runtime.roles.protocol import Context
from coloop.runtime.roles.rows.texts import as_read
from coloop.workers.messages import TooLong


def heat_of(row: Row) -> float:
    """The temperature at which log-probs of a row are compared."""
    return (row.tokens.temperature if row.tokens else 1.0) or 1.0


def log_probs_of(node: str, rows: Sequence[Row], context: Context) -> dict[str, Numbers | TooLong]:
    """By row id, one call for each temperature that is there."""
    by_heat: dict[float, list[Row]] = {}
    for row in rows:
        by_heat.setdefault(heat_of(row), []).append(row)
    hosts, group = context.hosts, context.groups[node]
    found: dict[str, Numbers | TooLong] = {}
    for temperature, own in by_heat.items():
        scored = hosts.score(group, node, [as_read(row) for row in own], temperature)
        found.update(zip((row.id for row in own), scored, strict=True))
    return {row.id: found[row.id] for row in rows}
