"""Log-probs by frozen or following weights, for rollouts and for pairs; inputs are taken one after
another."""

from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.texts import as_example, as_pair
from coloop.tables import Table, concat_rows


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
            examples = [as_example(row) for row in rollouts]
            heats = {row.tokens.temperature for row in rollouts if row.tokens}
            temperature = heats.pop() if len(heats) == 1 else 1.0
            scored = hosts.score(group, self._node, examples, temperature or 1.0)
            log_probs.update(zip((row.id for row in rollouts), scored, strict=True))
            tokens += sum(map(len, scored))
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
