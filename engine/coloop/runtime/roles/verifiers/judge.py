"""What judges that write nothing have in common: the rows that they judge, and what they give."""

import math
from collections.abc import Iterable, Mapping, Sequence

from coloop.data.tables import Row, Score
from coloop.data.tables.attach import REDUCTIONS
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.inputs import scored_rows
from coloop.runtime.roles.rows.scored import scored_outcome
from coloop.spec.nodes import VerifierNode
from coloop.spec.reading import Read

ROW_PORTS = ("rollouts", "rows", "comparisons")

Incoming = dict[str, Score]
"""The scores that came in with a row, by scorer."""


def section_of(node: str, context: Context) -> VerifierNode:
    section = context.spec.nodes[node]
    assert isinstance(section, VerifierNode)
    return section


def judged_rows(node: str, call: Call) -> tuple[tuple[Row, ...], list[Incoming]]:
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


# How the numbers of a judge become scores: steps to one number, bounds, a threshold.


def reduced(steps: Iterable[float | None], read: Read) -> float | None:
    """One number of those of steps, in their order; None where no step has one."""
    said = [step for step in steps if step is not None]
    return float(REDUCTIONS[read.reduce or "mean"](said)) if said else None


def activated(number: float, read: Read) -> float:
    """A head's number as `activation` lets it through."""
    if read.activation == "none":
        return number
    small = math.exp(-abs(number))
    return 1 / (1 + small) if number >= 0 else small / (1 + small)


def finished(score: Score, read: Read) -> Score:
    """A score, or one at each position, within `clamp`, and 0 or 1 where there is a threshold."""
    if score is None:
        return None
    if isinstance(score, dict):
        return {place: _finished(number, read) for place, number in score.items()}
    return _finished(score, read)


def _finished(score: float, read: Read) -> float:
    if read.clamp is not None:
        low, high = read.clamp
        score = min(max(score, low), high)
    return score if read.threshold is None else float(score >= read.threshold)
