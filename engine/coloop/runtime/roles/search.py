"""Searches with a policy: rows with a text get labels of their steps; from rows without one, trees
of texts or proofs are grown. The policy generates with its own settings and weights, the nodes at
`outcome` and `value` score with their own code, and the environment at `tools` applies actions.
"""

from collections.abc import Sequence
from typing import Final

from coloop.data.tables import Row, Score, Table
from coloop.runtime.roles.actor import ActorRole
from coloop.runtime.roles.protocol import Call, Context, NodeRole, Outcome
from coloop.runtime.roles.rows.inputs import joined_rows
from coloop.runtime.roles.rows.scored import scored_outcome
from coloop.runtime.roles.searching.and_or import AndOr
from coloop.runtime.roles.searching.binary_search import BinarySearch
from coloop.runtime.roles.searching.graders import Grader, SearchEnvironment, Valuer
from coloop.runtime.roles.searching.monte_carlo import MonteCarlo
from coloop.runtime.roles.searching.text_tree import Puct
from coloop.runtime.roles.searching.tree_expansion import Method, SearchBudget, TreeExpansion
from coloop.runtime.roles.searching.trees import Findings, labels_of
from coloop.spec.groups import rollout_of
from coloop.spec.nodes import SearchNode

METHODS: Final[dict[str, Method]] = {
    "and_or": AndOr(),
    "binary_search": BinarySearch(),
    "monte_carlo": MonteCarlo(),
    "puct": Puct(),
}
"""By name, as in `method`."""
MOST_CHILDREN = 2**20
"""Most children of a row in one turn; the indices of the next turn begin after them."""


class SearchRole(NodeRole[SearchNode]):
    def run(self, call: Call) -> Outcome:
        context = call.context
        section = self._section(context)
        method = METHODS[section.method]
        rows = joined_rows(self._node, context, call.delivered("rows"))
        expansion = self._expansion(call, section, method)
        if context.lineage.labels_texts(self._node):
            found = Findings(rows=method.label(rows, expansion, section))
        else:
            first = (call.turn - 1) * MOST_CHILDREN
            found = method.grow(rows, expansion, section, lambda number: first + number)
        return self._outcome(found, method, expansion, section, rows)

    def _expansion(self, call: Call, section: SearchNode, method: Method) -> TreeExpansion:
        policy = self._source(call.context, "policy")
        assert policy is not None
        rollout, writer = rollout_of(call.context.spec, policy), call.callees[policy]
        assert rollout is not None
        assert isinstance(writer, ActorRole)
        outcome, value = (self._source(call.context, port) for port in ("outcome", "value"))
        most = section.budget.searches_per_row if method.counts_rollouts else None
        return TreeExpansion(
            node=self._node,
            policy=policy,
            writer=writer.writer,
            call=call,
            search_budget=SearchBudget(section.budget, most_rollouts=most),
            longest=rollout.max_new_tokens,
            texts_per_prompt=rollout.completions_per_prompt,
            separator=section.step_separator,
            grader=None if outcome is None else Grader(self._node, "outcome", outcome, call),
            valuer=None if value is None else Valuer(self._node, "value", value, call),
            environment=SearchEnvironment(self._node, call)
            if self._source(call.context, "tools")
            else None,
        )

    def _source(self, context: Context, port: str) -> str | None:
        edges = context.spec.graph.edges_into(self._node, port)
        return edges[0].source.node if edges else None

    def _outcome(
        self,
        found: Findings,
        method: Method,
        expansion: TreeExpansion,
        section: SearchNode,
        searched: Sequence[Row],
    ) -> Outcome:
        labels = [
            labels_of(
                one.chances,
                section.labels,
                before=one.before,
                stop_at_zero=section.stop_at_zero,
            )
            for one in found.rows
        ]
        steps: list[Score] = [own or None for own in labels]
        given = scored_outcome(
            self._node,
            [one.row for one in found.rows],
            [one.score for one in found.rows],
            step_scores=steps,
            score_range=method.score_range,
        )
        rolled = Table(rows=given.outputs["scores"].rows)
        scored = given
        if found.searched is not None:
            scored = scored_outcome(self._node, searched, found.searched, score_range=(0.0, 1.0))
        return Outcome(
            outputs={
                "scores": scored.outputs["scores"],
                "step_scores": given.outputs["step_scores"],
                "rollouts": rolled,
            },
            metrics={**scored.metrics, **_measured(labels, found, expansion, len(searched))},
            samples=expansion.search_budget.rollouts,
            tokens=expansion.search_budget.tokens,
            alerts=[
                *expansion.alerts.items(),
                *_alerts(
                    self._node,
                    found,
                    expansion,
                    searched=len(searched),
                    has_labels=any(labels),
                ),
            ],
        )


def _alerts(
    node: str, found: Findings, expansion: TreeExpansion, *, searched: int, has_labels: bool
) -> list[tuple[str, str]]:
    budget, environment = expansion.search_budget, expansion.environment
    moves = 0 if environment is None else environment.moves
    reason = "" if environment is None else environment.reason
    is_known = has_labels or any(score is not None for score in found.searched or ())
    alerts = [
        (
            budget.is_late,
            "search.out_of_time",
            f"`budget.seconds` ended {len(budget.cut)} searches before they were through; on "
            "another machine they find more or less, so bound them by `tokens`, `nodes` or "
            "`searches_per_row` as well",
        ),
        (
            found.rejected > 0,
            "search.proof_rejected",
            f"`outcome` rejects {found.rejected} proofs that the environment accepts as finished; "
            "they count as not proved: make both use the same definition of a proof",
        ),
        (
            environment is not None and environment.refused == moves > 0,
            "search.leads_nowhere",
            f"none of {moves} actions led to a new state; for the last one the environment "
            f"returned: {reason}",
        ),
        (
            searched > 0 and not is_known,
            "search.nothing_found",
            f"not one step of {searched} rows has a label: {len(budget.cut)} searches had no room "
            "in `budget`; raise it, or lower `completions` or `expand.samples`",
        ),
    ]
    return [(code, f"{node}: {message}") for is_so, code, message in alerts if is_so]


def _measured(
    labels: Sequence[dict[int, float]], found: Findings, expansion: TreeExpansion, searched: int
) -> dict[str, float]:
    if not searched:
        return {}
    budget, environment = expansion.search_budget, expansion.environment
    known = [label for own in labels for label in own.values()]
    measured = {
        "search/rollouts": float(budget.rollouts),
        "search/nodes": float(budget.nodes),
        "search/tokens": float(budget.tokens),
        "search/labels": float(len(known)),
        "search/cut": float(len(budget.cut)),
    }
    if known:
        measured["search/label"] = sum(known) / len(known)
    if environment is not None:
        measured["search/rejected"] = float(found.rejected)
        if environment.moves:
            measured["search/dead"] = environment.refused / environment.moves
    return measured
