"""Phases in time: the current phase, when it ends, and what comes next.

The schedule's groups are expanded into a flat list of entries; the timeline is a cursor over it
with three counters (entry, step in the entry, step of the run), which the manifest keeps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coloop.plan.phases import turns
from coloop.plan.types import PhasePlan, Plan
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.schedule import PhaseActions


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A phase in the schedule, once for each of its rounds."""

    plan: PhasePlan
    index: int
    """Position in the schedule with its repeats expanded."""
    round: int
    actions: tuple[PhaseActions, ...] = ()
    """`do` of the groups and of the phase, when it starts."""
    may_end_early: bool = False
    """A trigger or a full buffer may end it before its steps are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPosition:
    entry: Entry
    step: int
    """1, 2, ... over the whole run."""
    step_in_phase: int
    """1, 2, ... since this entry began."""
    steps_of_phase: int | None

    @property
    def phase(self) -> PhasePlan:
        return self.entry.plan


def entries_of(spec: LoopSpec, plan: Plan) -> list[Entry]:
    """The schedule with its repeats expanded."""
    return [
        Entry(
            plan=plan.phases[turn.index],
            index=index,
            round=turn.round,
            actions=turn.actions,
            may_end_early=_may_end_early(spec, plan.phases[turn.index]),
        )
        for index, turn in enumerate(turns(spec))
    ]


def _may_end_early(spec: LoopSpec, phase: PhasePlan) -> bool:
    return bool(phase.until) or any(
        (trigger.do.next_phase or trigger.do.stop)
        and (not trigger.in_ or phase.name in as_tuple(trigger.in_))
        for trigger in spec.schedule.triggers
    )


@dataclass(eq=False)
class Timeline:
    entries: Sequence[Entry]
    steps_for_epochs: Callable[[str, float], int]
    """Steps that serve every row of a dataset or buffer so many times."""
    is_full: Callable[[str], bool]
    """Whether a buffer has received `capacity` rows since the phase started."""
    entry: int = field(default=0, init=False)
    step: int = field(default=0, init=False)
    step_in_phase: int = field(default=0, init=False)
    steps_of_phase: int | None = field(default=None, init=False)
    _must_leave: bool = field(default=False, init=False)
    _is_entered: bool = field(default=False, init=False)

    @property
    def is_over(self) -> bool:
        return self.entry >= len(self.entries)

    @property
    def current(self) -> Entry | None:
        return None if self.is_over else self.entries[self.entry]

    @property
    def must_enter(self) -> bool:
        return not self.is_over and not self._is_entered

    def entering(self) -> StepPosition:
        """The position before the current entry's first step."""
        return StepPosition(
            entry=self.entries[self.entry], step=self.step, step_in_phase=0, steps_of_phase=None
        )

    def enter(self) -> Entry:
        entry = self.entries[self.entry]
        self._is_entered = True
        self._must_leave = False
        self.step_in_phase = 0
        self.steps_of_phase = self._steps_of(entry.plan)
        return entry

    def next_position(self) -> StepPosition | None:
        """Advance to the next step of the current entry; None if the entry is over."""
        steps, until = self.steps_of_phase, self.entries[self.entry].plan.until
        is_done = steps is not None and self.step_in_phase >= steps
        if self._must_leave or is_done or (until and not self.not_full()):
            return None
        self.step += 1
        self.step_in_phase += 1
        return self.now()

    def now(self) -> StepPosition | None:
        """The last step of the current entry, or its beginning."""
        if self.is_over or not self._is_entered:
            return None
        return StepPosition(
            entry=self.entries[self.entry],
            step=self.step,
            step_in_phase=self.step_in_phase,
            steps_of_phase=self.steps_of_phase,
        )

    def leave(self) -> None:
        self.entry += 1
        self._is_entered = False
        self._must_leave = False

    def leave_after_this_step(self) -> None:
        self._must_leave = True

    def take_back_entry(self) -> None:
        """The actions at the start of the entry broke off; it begins again."""
        self._is_entered = False

    def take_back_step(self) -> None:
        self.step -= 1
        self.step_in_phase -= 1

    def steps_total(self) -> int | None:
        total = 0
        for entry in self.entries:
            if entry.index == self.entry and self._is_entered:
                steps = self.steps_of_phase
            else:
                steps = entry.plan.steps
            if steps is None:
                return None
            total += steps if entry.index >= self.entry else 0
        return total + self.step - self.step_in_phase if self._is_entered else total + self.step

    @property
    def may_end_early(self) -> bool:
        """Whether `steps_total` is only an upper bound."""
        return any(entry.may_end_early for entry in self.entries[self.entry :])

    def not_full(self) -> tuple[str, ...]:
        """Buffers that the current entry waits for."""
        until = self.entries[self.entry].plan.until
        return tuple(buffer for buffer in until if not self.is_full(buffer))

    def _steps_of(self, plan: PhasePlan) -> int | None:
        if plan.epochs is not None and plan.epochs_of is not None:
            steps = self.steps_for_epochs(plan.epochs_of, plan.epochs)
            return steps if plan.max_steps is None else min(steps, plan.max_steps)
        return plan.max_steps if plan.until else plan.steps

    def state(self) -> dict[str, Any]:
        return {
            "entry": self.entry,
            "step": self.step,
            "step_in_phase": self.step_in_phase,
            "steps_of_phase": self.steps_of_phase,
            "must_leave": self._must_leave,
            "is_entered": self._is_entered,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """A fork may have another number of steps than the run that `state` is from."""
        self.entry = state["entry"]
        self.step = state["step"]
        self.step_in_phase = state["step_in_phase"]
        self.steps_of_phase = state["steps_of_phase"]
        self._must_leave = state["must_leave"]
        self._is_entered = state["is_entered"]
        if self.is_over and self._last_has_more_steps:
            self.entry, self._is_entered = len(self.entries) - 1, True
        current = self.current
        if current is not None and self._is_entered and current.plan.steps is not None:
            self.steps_of_phase = current.plan.steps

    @property
    def _last_has_more_steps(self) -> bool:
        """Whether the last phase has more steps than were done; one that a trigger ended early
        stays over."""
        last = self.entries[-1].plan.steps if self.entries else None
        planned = self.step_in_phase if self.steps_of_phase is None else self.steps_of_phase
        return last is not None and last > planned
