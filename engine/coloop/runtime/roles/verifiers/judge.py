"""What judges that write nothing have in common: the rows that they judge, and what they give."""

from collections.abc import Mapping, Sequence

from coloop.data.tables import Row, Score
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.inputs import scored_rows
from coloop.runtime.roles.rows.scored import scored_outcome
from coloop.runtime.roles.verifiers.reading import finished
from coloop.spec.nodes import VerifierNode

ROW_PORTS = ("rollouts", "rows", "comparisons")

Incoming = dict[str, Score]
"""The scores that came in with a row, by scorer."""


def section_of(node: str, context: Context) -> VerifierNode:
    """The node's section at this moment."""
    section = context.spec.nodes[node]
    assert isinstance(section, VerifierNode)
    return section


def judged_rows(node: str, call: Call) -> tuple[tuple[Row, ...], list[Incoming]]:
    """The rows to judge, and the scores that came in with each."""
    return scored_rows(node, call, ROW_PORTS)


def wants_steps(node: str, context: Context) -> bool:
    """Whether anybody reads the node's scores of steps."""
    return bool(context.spec.graph.edges_out_of(node, "step_scores"))


def judgement(
    node: str,
    context: Context,
    rows: Sequence[Row],
    scores: Sequence[Score],
    step_scores: Sequence[Score] | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    metrics: Mapping[str, float] | None = None,
    alerts: Sequence[tuple[str, str]] = (),
) -> Outcome:
    """Scores of rows, read as the node's `read` says.

    Args:
        bounds: least and greatest score, where `read` names none.
    """
    read = section_of(node, context).read
    return scored_outcome(
        node,
        rows,
        [finished(score, read) for score in scores],
        step_scores=None if step_scores is None else [finished(one, read) for one in step_scores],
        score_range=bounds or read.range,
        metrics=metrics,
        alerts=alerts,
    )
