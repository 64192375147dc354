"""Log-probs of rollouts and pairs by frozen or following weights. Several inputs are
concatenated.
"""

from collections.abc import Sequence
from typing import Any

from coloop.data.tables import OTHER, Row, Table, concat_rows
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.texts import FittingRole, as_pair, log_probs_of, strangers
from coloop.runtime.roles.verifiers.taught import judges_in_words, pairs_taught
from coloop.spec.algorithm import asks_of_others
from coloop.spec.nodes import ReferenceNode
from coloop.workers.messages import TooLong


class ReferenceRole(FittingRole[ReferenceNode]):
    def run(self, call: Call) -> Outcome:
        hosts, group = call.context.hosts, call.context.groups[self._node]
        rollouts = concat_rows(call.tables("rollouts"))
        pairs = self._as_taught(concat_rows(call.tables("pairs")), call)
        every = (*rollouts, *pairs)
        if not every:
            return Outcome(outputs={"log_probs": Table(log_probs={})})
        scored: dict[str, Any] = log_probs_of(self._node, rollouts, call.context)
        if pairs:
            sides = hosts.score_pairs(group, self._node, [as_pair(row) for row in pairs])
            scored.update(zip((row.id for row in pairs), sides, strict=True))
            if asks_of_others(call.context.spec, self._node):
                read = [row for row in pairs if isinstance(scored[row.id], dict)]
                self._add_others(read, scored, call.context)
        return self._of_tokens("log_probs", every, scored, call)

    def _as_taught(self, pairs: Sequence[Row], call: Call) -> Sequence[Row]:
        """The pairs as they are learned: for a judge in words, after its prompts."""
        spec = call.context.spec
        learners = [edge.target.node for edge in spec.graph.edges_out_of(self._node, "log_probs")]
        judge = next((node for node in learners if judges_in_words(spec, node)), None)
        return pairs if judge is None else pairs_taught(judge, pairs, call.context, call.step)

    def _add_others(self, pairs: Sequence[Row], scored: dict[str, Any], context: Context) -> None:
        """Add to the log-probs of each pair those of another pair's sides after its prompt."""
        hosts, group = context.hosts, context.groups[self._node]
        others = strangers(pairs)
        asked = [row for row in pairs if row.id in others]
        if not asked:
            return
        crossed = [as_pair(row, giver=others[row.id]) for row in asked]
        for row, sides in zip(asked, hosts.score_pairs(group, self._node, crossed), strict=True):
            if not isinstance(sides, TooLong):
                others_of = {f"{OTHER}{side}": own for side, own in sides.items()}
                scored[row.id] = {**scored[row.id], **others_of}
