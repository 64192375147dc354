"""The stages of a step: those of its phase without learners that pause (`learn.X.every`,
`.after`)."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coloop.plan.compile import Compiler
from coloop.plan.stages import Step
from coloop.plan.types import PhasePlan, ProbePlan, Stage, StageRows
from coloop.runtime.phases.timeline import StepPosition
from coloop.spec.graph import LoopSpec
from coloop.spec.schedule import LearnRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    step: Step
    live: frozenset[tuple[str, str]]
    rows: tuple[StageRows, ...]


@dataclass(eq=False)
class PhaseStages:
    """Counts the steps in which each learner is live; caches stages by live ports."""

    rules: Callable[[], Mapping[str, LearnRule]]
    """Returns the current `schedule.learn`."""
    compiler: Compiler
    _live_steps: Counter[str] = field(default_factory=Counter, init=False)
    _known: dict[tuple[int, frozenset[tuple[str, str]], frozenset[str]], Due] = field(
        default_factory=dict, init=False
    )

    def due(self, position: StepPosition, watched: frozenset[str] = frozenset()) -> Due:
        """`watched`: nodes whose scores before learning are needed by an evaluation."""
        phase = position.phase
        ports = [tuple(name.split(".")) for name in phase.learn]
        live = frozenset(
            (node, port) for node, port in ports if self._is_due(node, self._live_steps[node])
        )
        key = (phase.index, live, watched)
        if key not in self._known:
            if len(live) == len(ports):
                step, rows = Step.of(phase), phase.rows
            else:
                step = self.compiler.unroll(live, phase.fill, phase.overrides)
                rows = self.compiler.rows(step, live, phase.overrides)
            self._known[key] = Due(step=with_foresight(step, watched), live=live, rows=rows)
        return self._known[key]

    def step_begins(self, position: StepPosition) -> None:
        """Count the step for every learner that is live in it, after `due`."""
        for node in _learners(position.phase):
            self._live_steps[node] += 1

    def take_back_step(self, position: StepPosition) -> None:
        for node in _learners(position.phase):
            self._live_steps[node] -= 1

    def updates_ahead(self, phase: PhasePlan, steps: int | None) -> dict[str, int]:
        """By learner, the number of updates in so many steps of a phase; empty if unknown."""
        if steps is None:
            return {}
        updates = {}
        for node in _learners(phase):
            rule = self.rules().get(node)
            begin = self._live_steps[node]
            due = sum(self._is_due(node, step) for step in range(begin, begin + steps))
            updates[node] = due * (rule.updates if rule is not None else 1)
        return updates

    def _is_due(self, node: str, step: int) -> bool:
        rule = self.rules().get(node)
        if rule is None:
            return True
        return step >= rule.after and (step - rule.after) % rule.every == 0

    def state(self) -> dict[str, Any]:
        return {"live_steps": self._live_steps}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._live_steps = Counter(state["live_steps"])


def _learners(phase: PhasePlan) -> set[str]:
    return {name.partition(".")[0] for name in phase.learn}


# If a node learns before it scores and a due evaluation of the step's tables reads its scores, it
# also scores before it learns, for this evaluation alone.

SUFFIX = "foresee"
"""Replaces the verb in the name of that stage."""


def watched_by(spec: LoopSpec, probes: Collection[ProbePlan]) -> frozenset[str]:
    """Nodes that these evaluations read and that learn before they score."""
    early = {node for node, rule in spec.schedule.learn.items() if rule.when == "before_score"}
    edges = (edge for probe in probes for edge in spec.graph.edges_into(probe.node))
    return frozenset(edge.source.node for edge in edges) & early


def with_foresight(step: Step, watched: Collection[str]) -> Step:
    """The step with a scoring stage before the learner of each of these nodes."""
    learners = {stage.name: stage for stage in step.stages if stage.verb == "learn"}
    stages: list[Stage] = []
    before: dict[str, list[str]] = {}
    for stage in step.stages:
        own = [
            name
            for name in stage.after
            if name in learners and stage.node in learners[name].members
        ]
        if stage.verb != "score" or stage.node not in watched or not own:
            continue
        name = f"{stage.node}.{SUFFIX}"
        after = tuple(other for other in stage.after if other not in own)
        stages.append(stage.model_copy(update={"name": name, "after": after, "foresees": True}))
        for learner in own:
            before.setdefault(learner, []).append(name)
    if not stages:
        return step
    early = {stage.name: stage for stage in stages}
    ordered: list[Stage] = []
    for stage in step.stages:
        names = before.get(stage.name, [])
        later = stage.model_copy(update={"after": (*stage.after, *names)}) if names else stage
        ordered += [*(early[name] for name in names), later]
    return replace(step, stages=tuple(ordered))
