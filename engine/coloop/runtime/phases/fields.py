"""The values of a step: the spec with overrides, later ones first.

    spec  <  phase and group `set`  <  anneal  <  trigger `set`  <  edit

The spec is rebuilt at each step; the same values give the same spec object.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coloop.errors import SpecProblem
from coloop.runtime.phases.timeline import Entry, StepPosition
from coloop.runtime.roles.protocol import Context
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Lineages
from coloop.spec.paths import apply_overrides, check_path
from coloop.spec.schedule import Anneal


@dataclass(eq=False)
class Fields:
    """Override values by source."""

    spec: LoopSpec
    entries: Sequence[Entry]
    _triggered: dict[str, Any] = field(default_factory=dict, init=False)
    _edited: dict[str, Any] = field(default_factory=dict, init=False)
    _cached: tuple[dict[str, Any], LoopSpec] = field(init=False)
    _steps_begun_in: Counter[str] = field(default_factory=Counter, init=False)
    _phase_steps: dict[str, int] = field(default_factory=dict, init=False)
    """Planned steps of the last round of each phase, by name."""

    def __post_init__(self) -> None:
        self._cached = ({}, self.spec)

    def overrides(self, position: StepPosition | None) -> dict[str, Any]:
        """Values by path; before the first step only those of edits and triggers."""
        values: dict[str, Any] = {}
        if position is not None:
            values.update(position.phase.overrides)
            for anneal in self.spec.schedule.anneal:
                values.update(self._annealed(anneal, position))
        values.update(self._triggered)
        values.update(self._edited)
        return values

    def at(self, position: StepPosition | None) -> LoopSpec:
        values = self.overrides(position)
        if not values:
            return self.spec
        if self._cached[0] != values:
            self._cached = (values, apply_overrides(self.spec, values))
        return self._cached[1]

    def step_begins(self, position: StepPosition) -> None:
        """Count the step for anneals over its phase, after its values were read."""
        name = position.phase.name
        self._steps_begun_in[name] += 1
        if position.steps_of_phase is not None:
            self._phase_steps[name] = position.steps_of_phase

    def take_back_step(self, position: StepPosition) -> None:
        self._steps_begun_in[position.phase.name] -= 1

    def set_by_trigger(self, values: Mapping[str, Any]) -> None:
        self._triggered.update(values)

    def edit(self, values: Mapping[str, Any]) -> None:
        """Apply a user's edit; raises `SpecProblem` if it does not fit the spec or is not hot."""
        for path in values:
            problem = check_path(self.spec, path, hot=True)
            if problem is not None:
                raise SpecProblem(problem.message, [problem])
        apply_overrides(self.spec, {**self._triggered, **self._edited, **values})
        self._edited.update(values)

    def _annealed(self, anneal: Anneal, position: StepPosition) -> dict[str, float]:
        names = _phases_of(anneal, self.entries)
        if position.phase.name not in names:
            return {}
        done = sum(self._steps_begun_in[name] for name in names)
        value = anneal_value(anneal, done, self._span(anneal, position))
        values = {anneal.path: value}
        if anneal.complement is not None:
            values[anneal.complement] = 1.0 - value
        return values

    def _span(self, anneal: Anneal, position: StepPosition) -> int | None:
        """Steps of the anneal, without later phases whose number of steps is not known yet."""
        if anneal.steps is not None:
            return anneal.steps
        names = _phases_of(anneal, self.entries)
        known = dict(self._phase_steps)
        if position.steps_of_phase is not None:
            known[position.phase.name] = position.steps_of_phase
        plans = [entry.plan for entry in self.entries if entry.plan.name in names]
        steps = [plan.steps or known.get(plan.name) or plan.max_steps for plan in plans]
        return sum(count for count in steps if count is not None) or None

    def state(self) -> dict[str, Any]:
        return {
            "triggered": self._triggered,
            "edited": self._edited,
            "steps_done_in": self._steps_begun_in,
            "phase_steps": self._phase_steps,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._triggered = dict(state["triggered"])
        self._edited = dict(state["edited"])
        self._steps_begun_in = Counter(state["steps_done_in"])
        self._phase_steps = dict(state.get("phase_steps", {}))


def anneal_value(anneal: Anneal, step: int, span: int | None) -> float:
    """The annealed value at a step (0, 1, ...) of `span` steps, or of each `cycle`.

    The first step has `from`, the last one `to`; `step` keeps `from` in the first half and `to` in
    the second. If the number of steps is unknown, the anneal has not begun.
    """
    length = anneal.cycle or span
    if length is None:
        return anneal.from_
    index = step % length if anneal.cycle else min(step, length - 1)
    share = index / (length - 1) if length > 1 else 1.0
    low, high = anneal.from_, anneal.to
    match anneal.shape:
        case "linear":
            return low + (high - low) * share
        case "cosine":
            return high + (low - high) * (1.0 + math.cos(math.pi * share)) / 2.0
        case "exponential":
            if low == 0.0 or high == 0.0 or (low > 0) != (high > 0):
                return low + (high - low) * share
            a, b = math.log(abs(low)), math.log(abs(high))
            return math.copysign(math.exp(a + (b - a) * share), low)
        case "step":
            return low if share < 0.5 else high


def _phases_of(anneal: Anneal, entries: Sequence[Entry]) -> set[str]:
    return set(as_tuple(anneal.over)) if anneal.over else {entry.plan.name for entry in entries}


class Moments:
    def __init__(self, start: Context, lineages: Lineages, fields: Fields) -> None:
        self._start = start
        self._lineages = lineages
        self._fields = fields
        self.now = start

    def stand_at(self, position: StepPosition | None) -> Context:
        self.now = replace(
            self._start,
            spec=self._fields.at(position),
            lineage=self._lineages.at(position.phase.overrides if position else {}),
            overrides=self._fields.overrides(position),
        )
        return self.now
