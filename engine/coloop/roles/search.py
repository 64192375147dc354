"""Drives a policy to label steps of texts: where rows have a text it is labelled as it is, else the
search writes texts of its own. The policy writes by its own writer and weights, and the node at
`outcome` grades by its own code.
"""

from collections.abc import Sequence

from coloop.roles.actor import ActorRole
from coloop.roles.inputs import joined_rows
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.scored import scored_outcome
from coloop.roles.searching import METHODS
from coloop.roles.searching.growth import Grader, Growth
from coloop.roles.searching.labels import labels_of
from coloop.roles.searching.method import Labelled
from coloop.roles.searching.purse import Purse
from coloop.spec.homes import rollout_of
from coloop.spec.nodes import SearchNode
from coloop.tables import Score, Table

LATE = "search.out_of_time"
"""Alert: `budget.seconds` ended searches, so what they found depends on the machine."""
NOTHING = "search.nothing_found"
"""Alert: not one step has a label."""
MOST_CHILDREN = 2**20
"""Of a row in one turn; the places of the next turn come behind them."""


class SearchRole(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node

    def run(self, call: Call) -> Outcome:
        context = call.context
        section, method = self._section(context), METHODS[self._section(context).method]
        rows = joined_rows(self._node, context, call, ("rows",))
        most = section.budget.searches_per_row if method.counts_rollouts else None
        purse = Purse(section.budget, most_rollouts=most)
        policy, check = self._source(context, "policy"), self._source(context, "outcome")
        grader = Grader(self._node, check, call)
        rollout = rollout_of(context.spec, policy)
        writer = call.callees[policy]
        assert rollout is not None
        assert isinstance(writer, ActorRole)
        growth = Growth(
            self._node,
            policy,
            writer.writer,
            grader,
            purse,
            call,
            longest=rollout.max_new_tokens,
            separator=section.step_separator,
        )
        if context.lineage.labels_texts(self._node):
            found = method.label(rows, growth, section)
        else:
            texts, first = rollout.completions_per_prompt, (call.turn - 1) * MOST_CHILDREN
            found = method.grow(rows, growth, section, texts, lambda number: first + number)
        return self._outcome(found, purse, grader, section, len(rows))

    def _section(self, context: Context) -> SearchNode:
        section = context.spec.nodes[self._node]
        assert isinstance(section, SearchNode)
        return section

    def _source(self, context: Context, port: str) -> str:
        """The node behind a handle."""
        [edge] = context.spec.graph.edges_into(self._node, port)
        return edge.source.node

    def _outcome(
        self,
        found: Sequence[Labelled],
        purse: Purse,
        grader: Grader,
        section: SearchNode,
        searched: int,
    ) -> Outcome:
        labels = [
            labels_of(
                one.chances,
                section.labels,
                before=one.before,
                stop_at_zero=section.stop_at_zero,
            )
            for one in found
        ]
        steps: list[Score] = [own or None for own in labels]
        alerts = [*grader.alerts.items(), *self._alerts(purse, searched, any(labels))]
        scored = scored_outcome(
            self._node,
            [one.row for one in found],
            [one.score for one in found],
            step_scores=steps,
            score_range=(0.0, 1.0),
            metrics=_measured(labels, purse, searched),
        )
        rows = scored.outputs["scores"].rows
        return Outcome(
            outputs={**scored.outputs, "rollouts": Table(rows=rows)},
            metrics=scored.metrics,
            samples=purse.rollouts,
            tokens=purse.tokens,
            alerts=alerts,
        )

    def _alerts(self, purse: Purse, searched: int, is_known: bool) -> list[tuple[str, str]]:
        found = []
        if purse.is_late:
            message = (
                f"{self._node}: `budget.seconds` ended {len(purse.cut)} searches before they were "
                "through; on another machine they find more or less, so bound them by `tokens`, "
                "`nodes` or `searches_per_row` as well"
            )
            found.append((LATE, message))
        if searched and not is_known:
            message = (
                f"{self._node}: not one step of {searched} rows has a label: {len(purse.cut)} "
                "searches had no room in `budget`; raise it, or lower `completions`"
            )
            found.append((NOTHING, message))
        return found


def _measured(labels: Sequence[dict[int, float]], purse: Purse, searched: int) -> dict[str, float]:
    """What was found, and what it cost; of no rows nothing."""
    if not searched:
        return {}
    known = [label for own in labels for label in own.values()]
    found = {
        "search/rollouts": float(purse.rollouts),
        "search/nodes": float(purse.nodes),
        "search/tokens": float(purse.tokens),
        "search/labels": float(len(known)),
        "search/cut": float(len(purse.cut)),
    }
    return {**found, "search/label": sum(known) / len(known)} if known else found
