"""Log-probs of rollouts and pairs by frozen or following weights. Several inputs are concatenated.

With rows at `prompts`, completions are read after the prompts of these rows, matched by lineage;
rollouts without such a row are not scored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.data.arrays import Numbers, numbers_of
from coloop.data.distributions import Teacher, Words
from coloop.data.tables import OTHER, Row, Table, concat_rows, matched_rows
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.inputs import meetings_of
from coloop.runtime.roles.rows.texts import (
    FittingRole,
    as_pair,
    distributions_of,
    log_probs_of,
    strangers,
)
from coloop.runtime.roles.verifiers.taught import judges_in_words, pairs_taught
from coloop.spec.algorithm import asks_of_others, taught_students
from coloop.spec.nodes import ReferenceNode
from coloop.workers.messages import TooLong


class ReferenceRole(FittingRole[ReferenceNode]):
    def run(self, call: Call) -> Outcome:
        hosts, group = call.context.hosts, call.context.groups[self._node]
        rollouts = concat_rows(call.tables("rollouts"))
        under, without = self._prompts(rollouts, call)
        rollouts = rollouts if under is None else tuple(row for row in rollouts if row.id in under)
        pairs = self._as_taught(concat_rows(call.tables("pairs")), call)
        every = (*rollouts, *pairs)
        if not every:
            return Outcome(outputs={"log_probs": Table(log_probs={})}, metrics=without)
        scored, said = self._read(rollouts, under, call.context)
        if pairs:
            sides = hosts.score_pairs(group, self._node, [as_pair(row) for row in pairs])
            scored.update(zip((row.id for row in pairs), sides, strict=True))
            if asks_of_others(call.context.spec, self._node):
                read = [row for row in pairs if isinstance(scored[row.id], dict)]
                self._add_others(read, scored, call.context)
        outcome = self._of_tokens("log_probs", every, scored, call)
        table = replace(outcome.outputs["log_probs"], distributions=said)
        metrics = {**outcome.metrics, **without}
        return replace(outcome, outputs={"log_probs": table}, metrics=metrics)

    def _read(
        self, rollouts: Sequence[Row], under: Mapping[str, Row] | None, context: Context
    ) -> tuple[dict[str, Any], dict[str, Teacher] | None]:
        """Log-probs of rollouts by row id, or why there are none; and what students ask for of
        other words."""
        students = taught_students(context.spec, self._node)
        asked = [student for student in students if student.words != 0]
        if not asked:
            return dict(log_probs_of(self._node, rollouts, context, under)), None
        temperature = asked[0].own_temperature
        whole = any(student.words is None for student in asked)
        is_half = all(student.dtype == "float16" for student in asked if student.words is None)
        words = Words(
            k=None if whole else max(student.words or 0 for student in asked),
            dtype="float16" if whole and is_half else "float32",
        )
        replies = distributions_of(
            self._node, rollouts, context, words, temperature=temperature, under=under
        )
        said = {name: own for name, own in replies.items() if isinstance(own, Teacher)}
        if temperature is not None:
            return dict(log_probs_of(self._node, rollouts, context, under)), said
        scored: dict[str, Any] = {row.id: _at_tokens(row, replies[row.id]) for row in rollouts}
        return scored, said

    def _prompts(
        self, rollouts: Sequence[Row], call: Call
    ) -> tuple[dict[str, Row] | None, dict[str, float]]:
        """For each rollout, by id, the row whose prompt it is read under, and as a metric how many
        have none; None without an edge at `prompts`. Raises `DataError` if one has several."""
        if not call.context.spec.graph.edges_into(self._node, "prompts"):
            return None, {}
        under: dict[str, Row] = {}
        levels = call.context.lineage.edge_levels
        for asked, prompts in call.delivered("prompts").items():
            for edge, table in call.delivered("rollouts").items():
                meetings = meetings_of([levels(edge), levels(asked)])
                for row, prompt in matched_rows(table.rows, prompts.rows, meetings):
                    if under.setdefault(row.id, prompt).id != prompt.id:
                        raise DataError(
                            f"row {row.id} has several prompts at `{self._node}.prompts`, "
                            f"{under[row.id].id} and {prompt.id}; give it one: a template with "
                            "`join: {gather: ...}` makes one row of several",
                            self._node,
                            "prompts",
                        )
        missing = sum(row.id not in under for row in rollouts)
        return under, {"rows/without_prompt": float(missing)}

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


def _at_tokens(row: Row, reply: Teacher | TooLong) -> Numbers | TooLong:
    """Log-probs of all tokens of a completion, 0 for those that are not trained."""
    if isinstance(reply, TooLong):
        return reply
    assert row.tokens is not None
    log_probs = np.zeros(len(row.tokens.token_ids), dtype=np.float32)
    log_probs[row.tokens.loss_mask] = reply.log_probs
    return numbers_of(log_probs)
