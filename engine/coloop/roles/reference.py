"""Log-probs by frozen or following weights, for rollouts and for pairs; inputs are taken one after
another.

Rollouts are scored at the temperature that they were drawn at, as their writer's own log-probs are.
"""

from collections.abc import Sequence

from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.texts import as_example, as_pair
from coloop.tables import Row, Table, concat_rows


class ReferenceRole(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        self._node = node
        self._context = context

    def run(self, call: Call) -> Outcome:
        hosts, group = self._context.hosts, self._context.groups[self._node]
        rollouts = concat_rows(call.tables("rollouts"))
        pairs = concat_rows(call.tables("pairs"))
        log_probs: dict[str, object] = {}
        tokens = 0
        if rollouts:
            scored = self._scored(rollouts)
            log_probs.update(scored)
            tokens += sum(map(len, scored.values()))
        if pairs:
            sides = hosts.score_pairs(group, self._node, [as_pair(row) for row in pairs])
            log_probs.update(zip((row.id for row in pairs), sides, strict=True))
            tokens += sum(len(side) for pair in sides for side in pair.values())
        rows = (*rollouts, *pairs)
        return Outcome(
            outputs={"log_probs": Table(rows=rows, log_probs=log_probs)},
            samples=len(rows),
            tokens=tokens,
        )

    def _scored(self, rollouts: Sequence[Row]) -> dict[str, list[float]]:
        """Log-probs by row id, one call for each temperature that is there."""
        by_heat: dict[float, list[Row]] = {}
        for row in rollouts:
            heat = (row.tokens.temperature if row.tokens else 1.0) or 1.0
            by_heat.setdefault(heat, []).append(row)
        hosts, group = self._context.hosts, self._context.groups[self._node]
        found: dict[str, list[float]] = {}
        for temperature, rows in by_heat.items():
            examples = [as_example(row) for row in rows]
            scored = hosts.score(group, self._node, examples, temperature)
            found.update(zip((row.id for row in rows), scored, strict=True))
        return {row.id: found[row.id] for row in rollouts}
