"""Compares what comes to a stage with what the plan is certain of: nobody learns or scores nothing
without a word.

    plan: `exact.score` gets at least 32 rows over `actor.rollouts->exact.rollouts`
    step: none came  ──> an alert at once; an error where the phase first runs the stage

Only rows that are bound to come are missed. What may legally be empty (a buffer, a filter, pairs, a
refill that gives up, a learner that pauses) has a least count of 0 in the plan. Probes are not
looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coloop.errors import RowsMissing
from coloop.plan.types import Stage, StageRows
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.schedule.calls import StepContext
from coloop.spec.graph import Edge

CODE = "rows.missing"
Key = tuple[str, str | None, str]
"""Stage, edge and what was missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Rows that were bound to come and did not."""

    stage: str
    node: str
    edge: str | None
    """The edge that brought nothing; None where all of them did and their rows do not meet."""
    what: str
    """`came`, `met`, `reached` or `referenced`: what the rows have not done."""
    message: str
    hint: str
    may_come: bool = False
    """The learner has written nothing that could be reached: it may do so in a later step."""

    @property
    def key(self) -> Key:
        return self.stage, self.edge, self.what


class Arrivals:
    """What was missed so far, over the steps of a run."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._edges = {edge.key: edge for edge in edges}
        self._missed: set[Key] = set()
        """What was told and has not come since."""
        self._known: dict[str, None] = {}
        """`phase/stage` that have run before; an error would take a run's work with it."""

    def of_step(self, expected: Sequence[StageRows]) -> "StepArrivals":
        return StepArrivals(self._edges, expected)

    def note(self, stage: Stage, whats: Sequence[str], missing: Sequence[Missing]) -> list[Missing]:
        """What of this was not missed in the stage's last run already; what has come again is told
        anew when it stays away."""
        fresh = [one for one in missing if one.key not in self._missed]
        still = {one.key for one in missing}
        self._missed = {
            key
            for key in self._missed
            if key[0] != stage.name or key[2] not in whats or key in still
        } | still
        return fresh

    def check_first(self, missing: Sequence[Missing], phase: str) -> None:
        """Raises `RowsMissing` where the phase runs the stage for the first time: what is bound to
        come and does not will never come. A learner that wrote nothing, as nobody asked it yet, is
        idle."""
        for one in missing:
            if not one.may_come and f"{phase}/{one.stage}" not in self._known:
                raise RowsMissing(one.message, one.node, one.stage, one.hint)

    def step_finished(self, phase: str, step: "StepArrivals") -> None:
        """The stages of the step are no longer new to their phase."""
        self._known.update(dict.fromkeys(f"{phase}/{stage}" for stage in step.stages))

    def state(self) -> dict[str, Any]:
        return {
            "arrivals": list(self._known),
            "missed": sorted(self._missed, key=str),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._known = dict.fromkeys(state["arrivals"])
        self._missed = {(stage, edge, what) for stage, edge, what in state.get("missed", ())}


AT_START = ("came",)
RETURNS = "returns"
AT_END = ("met", "reached", "referenced")


class StepArrivals:
    """Rows of one step, by port."""

    def __init__(self, edges: Mapping[str, Edge], expected: Sequence[StageRows]) -> None:
        self._edges = edges
        self._expected = {one.stage: one for one in expected}
        self._came: dict[tuple[str, str], int] = {}

    @property
    def stages(self) -> Iterable[str]:
        return self._expected

    def stage_starts(self, stage: Stage, step_context: StepContext) -> list[Missing]:
        expected = self._expected.get(stage.name)
        if expected is None or step_context.turn > 1:
            return []
        found = []
        for key in stage.edges:
            edge = self._edges[key]
            came = self._came.get((edge.source.node, edge.source.port))
            rows = expected.edges.get(key)
            if rows is None or not rows.least or came or _may_be_none(edge, came):
                continue
            found.append(_nothing_over(edge, stage, rows.text, has_run=came is not None))
        return found

    def stage_finished(
        self, stage: Stage, step_context: StepContext, outcome: Outcome
    ) -> list[Missing]:
        """Rows that came and did not meet, or did not reach the learner."""
        for port, table in outcome.outputs.items():
            place = stage.node, port
            self._came[place] = self._came.get(place, 0) + len(table.rows)
        expected = self._expected.get(stage.name)
        if expected is None or step_context.turn > 1:
            return []
        return [*self._without_output(stage, expected, outcome), *self._unreached(stage, outcome)]

    def _without_output(
        self, stage: Stage, expected: StageRows, outcome: Outcome
    ) -> Iterator[Missing]:
        if not outcome.outputs or not expected.rows.least or stage.verb in ("credit", "learn"):
            return
        if any(table.rows for table in outcome.outputs.values()):
            return
        came = [
            f"{self._came.get((edge.source.node, edge.source.port), 0)} over {key}"
            for key in stage.edges
            if (edge := self._edges[key])
        ]
        if not came or any(one.startswith("0 ") for one in came):
            return  # told when the stage began
        meets = len(came) > 1
        why = ", and none of them belong together" if meets else ""
        yield Missing(
            stage=stage.name,
            node=stage.node,
            edge=None,
            what="met",
            message=(
                f"{stage.name} produced no rows, {expected.rows.text} were expected: its inputs "
                f"have rows ({', '.join(came)}){why}"
            ),
            hint="check its alerts"
            + (
                ", at its `join`, and at what its inputs descend from" if meets else " in this step"
            ),
        )

    def _unreached(self, stage: Stage, outcome: Outcome) -> Iterator[Missing]:
        """Scores that came and speak of no row of the learner; rows without their reference."""
        details = [outcome.detail] if stage.verb == "credit" else outcome.detail.get("ports", ())
        for detail in details:
            for key, given in detail.get("edges", {}).items():
                edge = self._edges[key]
                came = self._came.get((edge.source.node, edge.source.port), 0)
                if came and not given["delivered"] and self._is_due(stage, key):
                    yield _unreached_over(edge, stage, came, is_idle=detail.get("rows") == 0)
            yield from self._without_reference(stage, detail)

    def _without_reference(self, stage: Stage, detail: Mapping[str, Any]) -> Iterator[Missing]:
        without = detail.get("without_reference", 0)
        if not without or detail.get("learned"):
            return
        for key in stage.edges:
            edge = self._edges[key]
            if edge.target.port == "reference" and self._is_due(stage, key):
                yield Missing(
                    stage=stage.name,
                    node=edge.target.node,
                    edge=key,
                    what="referenced",
                    message=(
                        f"{key} has no log-probs for any of the {without} rows that {stage.name} "
                        "would learn"
                    ),
                    hint=f"connect to {edge.source.node} the rows that {edge.target.node} learns",
                )

    def _is_due(self, stage: Stage, key: str) -> bool:
        rows = self._expected[stage.name].edges.get(key)
        return rows is not None and rows.least > 0


def _may_be_none(edge: Edge, came: int | None) -> bool:
    """Credit gives no returns where nothing has a score or all is masked; it tells so itself."""
    return edge.source.port == RETURNS and came is not None


def _unreached_over(edge: Edge, stage: Stage, came: int, *, is_idle: bool) -> Missing:
    learner = edge.target.node
    why = (
        f"{learner} wrote none in this step that they could reach"
        if is_idle
        else f"none of them reaches a row that {learner} wrote in this step"
    )
    hint = (
        f"check the prompts of {learner}, or which node calls the tool that it implements"
        if is_idle
        else "check which rows the scored rows descend from, and `aggregate`"
    )
    return Missing(
        stage=stage.name,
        node=learner,
        edge=edge.key,
        what="reached",
        message=f"{edge.key} carries {came} rows to {stage.name}, but {why}",
        hint=hint,
        may_come=is_idle,
    )


def _nothing_over(edge: Edge, stage: Stage, expected: str, *, has_run: bool) -> Missing:
    giver = edge.source.node
    why = f"{giver} produced none in this step" if has_run else f"{giver} has not run before it"
    hint = (
        f"check the inputs of {giver} and its alerts"
        if has_run
        else "`coloop plan` shows the order of the stages; report this loop, it should not run"
    )
    return Missing(
        stage=stage.name,
        node=stage.node,
        edge=edge.key,
        what="came",
        message=f"{stage.name} gets no rows over {edge.key}, {expected} are expected: {why}",
        hint=hint,
    )
