"""Phases in time: which phase is on, when it ends, and what comes next.

The schedule's groups are written out into a flat list of entries; the timeline is a cursor over it
with three counters (entry, step in the entry, step of the run), all of which go into the manifest.
It asks the sources how much they have left through `Sources`, and decides nothing about fields or
stages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from coloop.plan.phases import turns
from coloop.plan.types import PhasePlan, Plan
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.schedule import PhaseActions


class Sources(Protocol):
    """What the timeline asks of datasets and buffers."""

    def steps_for_epochs(self, node: str, epochs: float) -> int:
        """Steps that serve every row of the source this often."""
        ...

    def is_full(self, buffer: str) -> bool:
        """Whether the buffer has got `capacity` rows since the phase started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One coming round of a phase."""

    plan: PhasePlan
    index: int
    """Place in the schedule with its repeats written out."""
    round: int
    actions: tuple[PhaseActions, ...] = ()
    """What the groups and the phase `do` when it starts."""
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
    """The schedule with its repeats written out."""
    return [
        Entry(
            plan=plan.phases[turn.index],
            index=place,
            round=turn.round,
            actions=turn.actions,
            may_end_early=_may_end_early(spec, plan.phases[turn.index]),
        )
        for place, turn in enumerate(turns(spec))
    ]


def _may_end_early(spec: LoopSpec, phase: PhasePlan) -> bool:
    ending = [one for one in spec.schedule.triggers if one.do.next_phase or one.do.stop]
    is_left = any(not one.in_ or phase.name in as_tuple(one.in_) for one in ending)
    return is_left or bool(phase.until)


@dataclass(eq=False)
class Timeline:
    """The cursor over the entries."""

    entries: Sequence[Entry]
    sources: Sources
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
        """The next step of the current entry, or None where the entry is over."""
        entry = self.entries[self.entry]
        if self._entry_is_over(entry.plan):
            return None
        self.step += 1
        self.step_in_phase += 1
        return StepPosition(
            entry=entry,
            step=self.step,
            step_in_phase=self.step_in_phase,
            steps_of_phase=self.steps_of_phase,
        )

    def now(self) -> StepPosition | None:
        """The position as it stands: the last step of the current entry, or its beginning."""
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
        """A trigger said `next_phase`."""
        self._must_leave = True

    def take_back_entry(self) -> None:
        """The entry that was begun was not: what its start does broke off."""
        self._is_entered = False

    def take_back_step(self) -> None:
        """The step that was begun was not done: a stop came in between."""
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
        """Whether `steps_total` is only the most that the run can have."""
        return any(entry.may_end_early for entry in self.entries[self.entry :])

    def not_full(self) -> tuple[str, ...]:
        """Buffers that the current entry waits for."""
        until = self.entries[self.entry].plan.until
        return tuple(buffer for buffer in until if not self.sources.is_full(buffer))

    def _entry_is_over(self, plan: PhasePlan) -> bool:
        if self._must_leave:
            return True
        if self.steps_of_phase is not None and self.step_in_phase >= self.steps_of_phase:
            return True
        return bool(plan.until) and not self.not_full()

    def _steps_of(self, plan: PhasePlan) -> int | None:
        if plan.epochs is not None and plan.epochs_of is not None:
            steps = self.sources.steps_for_epochs(plan.epochs_of, plan.epochs)
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
        """Go on where `state` was taken; a fork may have another number of steps."""
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
        """More than it was to have; one that a trigger ended before is over all the same."""
        last = self.entries[-1].plan.steps if self.entries else None
        planned = self.step_in_phase if self.steps_of_phase is None else self.steps_of_phase
        return last is not None and last > planned
