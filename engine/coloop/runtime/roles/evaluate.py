"""Metrics of rows: `scores` grade them, `selectors` choose among k, `labels` are the ground truth;
with `of`, loss and accuracy at teaching ports without learning.
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

from coloop.data.contests import Game, result_of
from coloop.data.metrics import Group, measure, read_metric
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Table, Tokens, concat_rows
from coloop.runtime.roles.credit.credit_rows import problem_of
from coloop.runtime.roles.credit.teaching import teaching_items
from coloop.runtime.roles.protocol import Call, Context, Inputs, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import deliver, joined_rows, only_delivered
from coloop.runtime.roles.rows.texts import SIDES
from coloop.runtime.roles.verifiers.judge import is_pair, judged_orders, leads_of, middle_of
from coloop.spec.graph import Edge
from coloop.spec.nodes import EvaluateNode
from coloop.workers.messages import LearnRequest

GRADERS = ("scores", "selectors", "labels")
"""Ports whose rows are evaluated if there are no rollouts; the first one with a table counts."""

PORT_METRICS = {"pair_accuracy": "accuracy"}
"""Metrics of `of` with another name among a learner's metrics."""


class EvaluateRole(NodeRole[EvaluateNode]):
    def run(self, call: Call) -> Outcome:
        return Outcome(metrics=self.measure(call))

    def measure(self, call: Call, *, of_k: bool | None = None) -> dict[str, float]:
        """Metrics by name; with several scorers `scorer.metric`. `of_k`: only metrics of k samples,
        or only the others; None: all."""
        names = [
            name
            for name in self._section(call.context).metrics
            if of_k is None or (read_metric(name).k is not None) is of_k
        ]
        if not names:
            return {}
        given = call.delivered("scores")
        if not given:
            rows = concat_rows(call.tables("rollouts"))
            return self._measured(names, rows, {}, call, None) if rows else {}
        measured: dict[str, float] = {}
        for edge, table in given.items():
            rows = self._graded_rows(call, edge, table)
            scores = deliver(call.context, rows, edge, table)
            graded = only_delivered(rows, [scores])
            values = self._measured(names, graded, scores, call, table)
            prefix = f"{edge.source.node}." if len(given) > 1 else ""
            measured |= {f"{prefix}{name}": value for name, value in values.items()}
        return measured

    def _graded_rows(self, call: Call, edge: Edge, scored: Table) -> tuple[Row, ...]:
        """The rows to evaluate: the rollouts, or without any, the scored rows; for scores with an
        `aggregate`, the rows that other edges score."""
        if call.tables("rollouts"):
            return joined_rows(self._node, call.context, call.delivered("rollouts"))
        if edge.aggregate is not None:
            for port in GRADERS:
                others = call.delivered(port).items()
                tables = [table for other, table in others if other.aggregate is None]
                if tables:
                    return concat_rows(tables)
        return scored.rows

    def _measured(
        self,
        names: Sequence[str],
        rows: Sequence[Row],
        scores: Mapping[str, Any],
        call: Call,
        table: Table | None,
    ) -> dict[str, float]:
        selectors = self._others(call, "selectors", rows)
        labels = self._others(call, "labels", rows)
        problems: dict[Hashable, list[Row]] = {}
        for row in rows:
            problems.setdefault(problem_of(row), []).append(row)
        groups = [
            Group(
                scores=[_number(scores.get(row.id)) for row in members],
                answers=[str(row.columns.get("completion") or "") for row in members],
                selectors=[_number(selectors.get(row.id)) for row in members],
                labels=[_number(labels.get(row.id)) for row in members],
                lengths=[length for row in members if (length := _tokens_of(row)) is not None],
                leads=[] if table is None else leads_of(members, scores, table),
                games=[] if table is None else games_of(members, scores, table),
                orders=[] if table is None else judged_orders(members, scores, table),
                steps=[
                    (scores[row.id], labels[row.id])
                    for row in members
                    if isinstance(scores.get(row.id), dict) and isinstance(labels.get(row.id), dict)
                ],
            )
            for members in problems.values()
        ]
        return dict(measure(names, groups, right_at=self._section(call.context).right_at).values)

    def _others(self, call: Call, port: str, rows: Sequence[Row]) -> Mapping[str, Any]:
        for edge, table in call.delivered(port).items():
            return deliver(call.context, rows, edge, table)
        return {}

    def measure_ports(
        self, inputs: Mapping[tuple[str, str], Inputs], step: int, context: Context
    ) -> dict[str, float]:
        """Loss and accuracy of the teaching ports in `of` on the rows of the inputs."""
        measured: dict[str, float] = {}
        section = self._section(context)
        several = len(section.of) > 1
        for name in section.of:
            node, _, port = name.partition(".")
            items, _ = teaching_items(node, port, context, inputs, step)
            if not items:
                continue
            reply = context.hosts.evaluate(
                LearnRequest(
                    group=context.groups[node],
                    items={(node, port): items},
                    seed=derive_seed(context.seed, self._node, step),
                    overrides=context.overrides,
                )
            )
            left_out = len(reply.too_long.get(node, ()))
            if left_out:
                key = f"{name}.rows/too_long" if several else "rows/too_long"
                measured[key] = float(left_out)
            metrics = reply.metrics.get(node, {})
            for wanted in section.metrics:
                key = wanted if wanted in metrics else PORT_METRICS.get(wanted, wanted)
                if key in metrics:
                    measured[f"{name}.{wanted}" if several else wanted] = metrics[key]
        return measured


def _tokens_of(row: Row) -> int | None:
    """Generated tokens of a row, even if a template has rewritten its text; None: not generated."""
    if row.tokens is not None:
        return len(row.tokens.token_ids)
    length = row.columns.get("length") if row.writer is not None else None
    return length if isinstance(length, int) else None


def _number(score: Any) -> float | None:
    return float(score) if isinstance(score, float | int) else None


# Games between nodes that generate: the two sides of a judged pair, or else every two texts of
# different nodes for one problem.


def games_of(rows: Sequence[Row], scores: Mapping[str, Any], table: Table) -> list[Game]:
    """Games between the rows of one problem that have a score. `table`: the incoming scores."""
    said = [(row, scores.get(row.id)) for row in rows]
    graded = [(row, float(score)) for row, score in said if isinstance(score, float | int)]
    middle = middle_of(table)
    judged = [(row, score - middle) for row, score in graded if is_pair(row)]
    if judged:
        return [_judged(row, lead) for row, lead in judged]
    return [
        Game(first=one.writer, second=other.writer, result=result_of(score - other_score))
        for (one, score), (other, other_score) in combinations(graded, 2)
        if one.writer is not None and other.writer is not None and one.writer != other.writer
    ]


def _judged(row: Row, lead: float) -> Game:
    chosen, rejected = (_writer(row, side) for side in SIDES)
    if chosen == rejected:
        chosen, rejected = SIDES
    return Game(first=chosen, second=rejected, result=result_of(lead))


def _writer(row: Row, side: str) -> str:
    """The node that generated a side, or else the name of the side."""
    tokens = row.columns.get(f"{side}_tokens")
    return (tokens.writer or side) if isinstance(tokens, Tokens) else side
