"""Compares the rows that reach a stage with what the plan guarantees. Missing rows are an alert, or
an error if the phase runs the stage for the first time.

    plan: `exact.score` gets at least 32 rows over `actor.rollouts->exact.rollouts`

Inputs that may be empty (a buffer, a filter, pairs, a refill that gives up, a learner that pauses)
have a least count of 0 in the plan. Probes are not checked.
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
"""Stage, edge, and one of `Missing.what`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Guaranteed rows that are missing."""

    stage: str
    node: str
    edge: str | None
    """The edge that brought nothing; None if all edges have rows, but none that belong together."""
    what: str
    """What the rows failed to do: `came`, `met`, `reached` or `referenced`."""
    message: str
    hint: str
    may_come: bool = False
    """The learner generated no rows in this step; it may in a later one."""

    @property
    def key(self) -> Key:
        return self.stage, self.edge, self.what


class Arrivals:
    """Missing rows so far, over all steps."""

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._edges = {edge.key: edge for edge in edges}
        self._missed: set[Key] = set()
        """Reported and still missing."""
        self._known: dict[str, None] = {}
        """`phase/stage` that have finished a step. From then on, missing rows are only an alert."""

    def of_step(self, expected: Sequence[StageRows]) -> "StepArrivals":
        return StepArrivals(self._edges, expected)

    def note(self, stage: Stage, whats: Sequence[str], missing: Sequence[Missing]) -> list[Missing]:
        """Record the result of the checks named `whats`; returns what the stage's last run did not
        miss."""
        fresh = [rows for rows in missing if rows.key not in self._missed]
        still = {rows.key for rows in missing}
        self._missed = {
            key
            for key in self._missed
            if key[0] != stage.name or key[2] not in whats or key in still
        } | still
        return fresh

    def check_first(self, missing: Sequence[Missing], phase: str) -> None:
        """Raises `RowsMissing` if the phase runs the stage for the first time: the rows would be
        missing in every step."""
        for rows in missing:
            if not rows.may_come and f"{phase}/{rows.stage}" not in self._known:
                raise RowsMissing(rows.message, rows.node, rows.stage, rows.hint)

    def step_finished(self, phase: str, step: "StepArrivals") -> None:
        self._known.update(dict.fromkeys(f"{phase}/{stage}" for stage in step.stages))

    def state(self) -> dict[str, Any]:
        return {"arrivals": list(self._known), "missed": sorted(self._missed, key=str)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._known = dict.fromkeys(state["arrivals"])
        self._missed = {(stage, edge, what) for stage, edge, what in state.get("missed", ())}


AT_START = ("came",)
RETURNS = "returns"
AT_END = ("met", "reached", "referenced")


class StepArrivals:
    def __init__(self, edges: Mapping[str, Edge], expected: Sequence[StageRows]) -> None:
        self._edges = edges
        self._expected = {rows.stage: rows for rows in expected}
        self._came: dict[tuple[str, str], int] = {}

    @property
    def stages(self) -> Iterable[str]:
        return self._expected

    def stage_starts(self, stage: Stage, step_context: StepContext) -> list[Missing]:
        """Edges that should have delivered rows and did not."""
        expected = self._expecting(stage, step_context)
        if expected is None:
            return []
        missing = []
        for key in stage.edges:
            edge, rows = self._edges[key], expected.edges.get(key)
            came = self._came.get((edge.source.node, edge.source.port))
            # credit gives no returns if nothing has a score or all is masked, and reports it
            may_be_none = edge.source.port == RETURNS and came is not None
            if rows is not None and rows.least and not came and not may_be_none:
                missing.append(_nothing_over(edge, stage, rows.text, has_run=came is not None))
        return missing

    def stage_finished(
        self, stage: Stage, step_context: StepContext, outcome: Outcome
    ) -> list[Missing]:
        """Inputs that gave no output rows, and rows that did not reach the learner."""
        for port, table in outcome.outputs.items():
            source = stage.node, port
            self._came[source] = self._came.get(source, 0) + len(table.rows)
        expected = self._expecting(stage, step_context)
        if expected is None:
            return []
        return [*self._without_output(stage, expected, outcome), *self._unreached(stage, outcome)]

    def _expecting(self, stage: Stage, step_context: StepContext) -> StageRows | None:
        """What the plan guarantees; None in a stage's second and later runs in the step."""
        return None if step_context.turn > 1 else self._expected.get(stage.name)

    def _came_over(self, key: str) -> int:
        source = self._edges[key].source
        return self._came.get((source.node, source.port), 0)

    def _without_output(
        self, stage: Stage, expected: StageRows, outcome: Outcome
    ) -> Iterator[Missing]:
        if not outcome.outputs or not expected.rows.least or stage.verb in ("credit", "learn"):
            return
        if any(table.rows for table in outcome.outputs.values()):
            return
        came = {key: self._came_over(key) for key in stage.edges}
        if not all(came.values()) or not came:
            return  # reported when the stage began
        inputs = ", ".join(f"{count} over {key}" for key, count in came.items())
        has_several = len(came) > 1
        why = ", and none of them belong together" if has_several else ""
        where = ", at its `join`, and at what its inputs descend from"
        yield Missing(
            stage=stage.name,
            node=stage.node,
            edge=None,
            what="met",
            message=(
                f"{stage.name} produced no rows, {expected.rows.text} were expected: its inputs "
                f"have rows ({inputs}){why}"
            ),
            hint=f"check its alerts{where if has_several else ' in this step'}",
        )

    def _unreached(self, stage: Stage, outcome: Outcome) -> Iterator[Missing]:
        """Edges whose scores belong to no row of the learner, and references without log-probs for
        it."""
        details = [outcome.detail] if stage.verb == "credit" else outcome.detail.get("ports", ())
        for detail in details:
            for key, given in detail.get("edges", {}).items():
                came = self._came_over(key)
                if came and not given["delivered"] and self._is_due(stage, key):
                    is_idle = detail.get("rows") == 0
                    yield _unreached_over(self._edges[key], stage, came, is_idle=is_idle)
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


def _unreached_over(edge: Edge, stage: Stage, came: int, *, is_idle: bool) -> Missing:
    learner = edge.target.node
    if is_idle:
        why = f"{learner} wrote none in this step that they could reach"
        hint = f"check the prompts of {learner}, or which node calls the tool that it implements"
    else:
        why = f"none of them reaches a row that {learner} wrote in this step"
        hint = "check which rows the scored rows descend from, and `aggregate`"
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
    if has_run:
        why = f"{giver} produced none in this step"
        hint = f"check the inputs of {giver} and its alerts"
    else:
        why = f"{giver} has not run before it"
        hint = "`coloop plan` shows the order of the stages; report this loop, it should not run"
    return Missing(
        stage=stage.name,
        node=stage.node,
        edge=edge.key,
        what="came",
        message=f"{stage.name} gets no rows over {edge.key}, {expected} are expected: {why}",
        hint=hint,
    )
