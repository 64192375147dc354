"""Values of tokens, for advantages with a learned baseline: the value before each trained token of
a text. Several inputs are concatenated.

Its training data come from its actor's credit; see `teaching`.
"""

from collections.abc import Sequence

from coloop.data.tables import Row, Table, concat_rows
from coloop.runtime.roles.credit.credit_rows import Prompts
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.texts import FittingRole, as_read
from coloop.spec.algorithm import off_policy_of
from coloop.spec.nodes import CriticNode


class CriticRole(FittingRole[CriticNode]):
    def run(self, call: Call) -> Outcome:
        rows = concat_rows(call.tables("rollouts")) if call.asked is None else call.asked
        if not rows:
            return Outcome(outputs={"values": Table(values={})})
        hosts, group = call.context.hosts, call.context.groups[self._node]
        read = [as_read(row) for row in self._as_learned(rows, call.context)]
        replies = hosts.score(group, self._node, read, 1.0, "values")
        values = {row.id: own for row, own in zip(rows, replies, strict=True)}
        return self._of_tokens("values", rows, values, call)

    def _as_learned(self, rows: Sequence[Row], context: Context) -> list[Row]:
        """Rows as its actor learns them: rows of other nodes after the actor's prompt."""
        for edge in context.spec.graph.edges_out_of(self._node, "values"):
            actor, how = edge.target.node, off_policy_of(context.spec, edge.target.node)
            if how is not None:
                prompts = Prompts([row for row in rows if row.writer == actor])
                return [
                    row if row.writer == actor else prompts.answered_by(row, how) or row
                    for row in rows
                ]
        return [*rows]
