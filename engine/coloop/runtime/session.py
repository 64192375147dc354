"""A run at work: everything that `run_loop` speaks of, and the state that a resume brings back.

The session owns no weights and knows no algorithm: it moves the timeline, asks the scheduler for
steps, the checkpoints for folders and the recorder for events, and obeys triggers and requests
between two steps.
"""

import copy
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from coloop.errors import (
    CheckpointError,
    ColoopError,
    SpecProblem,
    StageStalled,
    StopRequested,
    StorageFull,
)
from coloop.plan.types import Plan, Stage
from coloop.runtime.actions import Actions, has_averages
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.checkpoints.checkpoint_manager import CheckpointManager
from coloop.runtime.checkpoints.pinned_settings import LEFT_OUT, REFUSED, Edit
from coloop.runtime.control import Control
from coloop.runtime.evaluations import Evaluations, Probes
from coloop.runtime.phases.fields import Fields, Moments
from coloop.runtime.phases.phase_stages import PhaseStages
from coloop.runtime.phases.timeline import Timeline
from coloop.runtime.reporting.event_reporter import EventReporter
from coloop.runtime.reporting.readings import Readings
from coloop.runtime.roles.protocol import Role
from coloop.runtime.run_files.events import CheckpointRequest, EditRequest, RunStateName
from coloop.runtime.schedule.arrivals import Arrivals
from coloop.runtime.schedule.calls import stage_failure
from coloop.runtime.schedule.scheduler import Scheduler
from coloop.runtime.steps import Steps
from coloop.workers.messages import Poll

logger = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class Session:
    """A running loop: everything that `run_loop` uses, and the state that a resume restores."""

    plan: Plan
    moments: Moments
    roles: Mapping[str, Role]
    timeline: Timeline
    fields: Fields
    phase_stages: PhaseStages
    probes: Probes
    checkpoints: Checkpoints
    control: Control
    actions: Actions
    event_reporter: EventReporter
    checkpoint_manager: CheckpointManager
    readings: Readings
    arrivals: Arrivals
    evaluations: Evaluations
    steps: Steps
    scheduler: Scheduler
    _edits: list[Edit] = field(default_factory=list, init=False)
    """Those that are to be made again."""
    _is_whole: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.checkpoints.on_lost_copy = partial(
            self.event_reporter.alert, "warning", "checkpoint.not_copied"
        )
        self.steps.must_pause = self._must_pause

    # --- the loop's words

    def begin(self) -> None:
        self.event_reporter.become(RunStateName.RUNNING)

    def enter_phase(self) -> None:
        """Begin a phase: what refers to its start happens, then its `do`."""
        context = self.moments.stand_at(self.timeline.entering())
        with self._repeated_if_broken(self.timeline.take_back_entry):
            entry = self.timeline.enter()
            updates = self.phase_stages.updates_ahead(entry.plan, self.timeline.steps_of_phase)
            wants_checkpoint = self.actions.phase_starts(entry, updates, context)
        self.checkpoint_manager.note_change()
        self._tell_notes()
        self.event_reporter.phase(entry, "started")
        if self.timeline.steps_of_phase == 0:
            message = f"phase {entry.plan.name} has no steps: {entry.plan.epochs_of} has no rows"
            self.event_reporter.alert("warning", "phase.empty", message, node=entry.plan.epochs_of)
        if wants_checkpoint:
            self._checkpoint()

    @contextmanager
    def _repeated_if_broken(self, take_back: Callable[[], None]) -> Iterator[None]:
        """Actions between two steps. Where they break off, what they changed besides weights is
        taken back, so that a resume does them again from their start; weights that follow become
        the same again, but for moving averages, which would count twice."""
        actions, roles = self.actions, self.roles
        memory = {node: role.remember() for node, role in roles.items()}
        before = copy.deepcopy(actions.state())
        self._is_whole = False
        try:
            yield
        except Exception:
            for node, role in roles.items():
                role.recall(memory[node])
            actions.load_state(before)
            take_back()
            self._is_whole = not has_averages(self.moments.now.spec)
            self.checkpoint_manager.note_change()
            raise
        self._is_whole = True

    def _tell_notes(self) -> None:
        notes, self.actions.notes = self.actions.notes, []
        for node, message in notes:
            self.event_reporter.alert("info", "snapshot.from_current", message, node=node)

    def leave_phase(self) -> None:
        entry = self.timeline.current
        assert entry is not None
        for buffer in self.timeline.not_full():
            message = f"{buffer} is not full after {entry.plan.max_steps} steps; the run continues"
            self.event_reporter.alert("warning", "buffer.not_full", message, node=buffer)
        self.timeline.leave()
        self.checkpoint_manager.note_change()
        self.event_reporter.phase(entry, "finished")

    def run_steps(self) -> bool:
        """Steps up to the next thing that lies between two of them; false where the phase has none
        left. A step that ends before anything was learned, by a stop or a failure, is taken back
        whole."""
        steps, scheduler = self.steps, self.scheduler
        steps.stretch_begins()
        try:
            scheduler.run_steps(
                partial(steps.begin, scheduler), partial(steps.finish, scheduler), steps.take_back
            )
        except StopRequested:
            self._stop()
        return steps.have_begun

    def _must_pause(self, step: int) -> bool:
        every = self.moments.now.spec.run.checkpoint_every
        return bool(
            self.readings.fired
            or self.checkpoint_manager.has_best
            or self.control.has_requests
            or any(edit.step <= step for edit in self._edits)
            or self.checkpoint_manager.is_due(step, every)
            or self.evaluations.are_due(step)
        )

    def evaluate(self, *, is_last: bool = False) -> None:
        """Read the probes that are due at this step and have not been read yet, or all at the
        end of the run."""
        try:
            self.evaluations.read_due(self.scheduler, is_last=is_last)
        except StopRequested:
            self._stop()
        except ColoopError:
            raise
        except Exception as error:
            raise stage_failure(error, None, self.timeline.step) from error

    def obey(self) -> None:
        """Triggers that fired, requests that came, the checkpoint that is due.

        A checkpoint that a trigger asks for still names the triggers that come after it.
        """
        if self.checkpoint_manager.has_best:
            self._checkpoint()
        wants_stop = False
        fired = self.readings.fired
        while fired:
            trigger = fired.pop(0)
            self.event_reporter.alert(
                "info", "trigger.fired", f"{trigger.when.metric} set off a trigger"
            )
            with self._repeated_if_broken(partial(fired.insert, 0, trigger)):
                stops, wants_checkpoint = self.actions.obey(
                    trigger.do, self.timeline, self.moments.now.spec
                )
            self._tell_notes()
            self.checkpoint_manager.note_change()
            wants_stop |= stops
            if wants_checkpoint:
                self._checkpoint()
        self._obey_requests()
        every = self.moments.now.spec.run.checkpoint_every
        if self.checkpoint_manager.is_due(self.timeline.step, every):
            self._try(self.checkpoint_manager.write_once)
        if wants_stop or self.control.stop_is_wanted:
            self._stop()

    def finish(self) -> None:
        """The last checkpoint; that the run is over is said when everything else is written."""
        live = (port for entry in self.timeline.entries for port in entry.plan.learn)
        self.event_reporter.findings(self.readings.run_finished(self.timeline.step, live))
        self.checkpoint_manager.write_once(self.timeline.step)
        self.steps.tell_notices()

    def rescue(self, failure: BaseException) -> None:
        """Save what a failed run has, where it stands between two steps and its hosts answer."""
        if not (self._is_whole and self.steps.is_between) or isinstance(
            failure, StorageFull | CheckpointError | StageStalled
        ):
            return
        try:
            self.checkpoint_manager.write_changes(self.timeline.step)
        except Exception as error:  # what cannot be saved does not hide why the run failed
            logger.warning("the state before the failure was not saved: %s", error)

    def close(self) -> None:
        for role in self.roles.values():
            role.close()

    @property
    def stage_at_work(self) -> Stage | None:
        """The stage that failed, or that is running."""
        return self.steps.failed_stage or self.event_reporter.stage

    # --- inside

    def _obey_requests(self) -> None:
        self._edit_again()
        for request in self.control.take():
            if isinstance(request, EditRequest):
                if self._edit(request):
                    self.event_reporter.edited(request.changes, request.by)
            elif isinstance(request, CheckpointRequest):
                self._checkpoint()
        for line in self.control.unreadable:
            self.event_reporter.alert(
                "warning", "control.unreadable", f"a request was not understood: {line}"
            )
        self.control.unreadable.clear()

    def _edit_again(self) -> None:
        """What a person changed after this step, before a driver was killed."""
        step = self.timeline.step
        due = [edit for edit in self._edits if edit.step <= step]
        self._edits = [edit for edit in self._edits if edit.step > step]
        for edit in due:
            if self._edit(edit.request):
                message = f"{edit.words} is applied again, because no checkpoint contains it"
                self.event_reporter.alert("info", "edit.made_again", message)

    def _edit(self, request: EditRequest) -> bool:
        """Whether the change was made; else a person is told why not."""
        try:
            self.fields.edit(request.changes)
        except SpecProblem as problem:
            self.event_reporter.alert("warning", REFUSED, str(problem))
            return False
        self.checkpoint_manager.note_change()
        return True

    def _checkpoint(self) -> None:
        self._try(self.checkpoint_manager.write_changes)

    def _try(self, write: Callable[[int], None]) -> None:
        """A checkpoint on the way may fail: the run goes on, and a person is told."""
        self.checkpoints.keep = self.moments.now.spec.run.keep
        try:
            write(self.timeline.step)
        except (StorageFull, CheckpointError) as error:
            self.event_reporter.alert("error", "checkpoint.failed", str(error))

    def make_again(self, edits: Sequence[Edit]) -> None:
        """Each of these edits is made when its step is done."""
        self._edits = list(edits)

    def leave_edits(self, edits: Sequence[Edit]) -> None:
        """A person went back before these edits."""
        if edits:
            told = ", ".join(edit.words for edit in edits)
            self.event_reporter.alert("info", LEFT_OUT, f"not applied again: {told}")

    def left_out(self, damage: str) -> None:
        """A checkpoint of the run is damaged: it resumes from another one."""
        self.event_reporter.alert("warning", "checkpoint.damaged", damage)

    def _stop(self) -> NoReturn:
        """Stop with everything saved, edits that were read in this step among it."""
        self.event_reporter.at_work([])
        self.event_reporter.become(RunStateName.STOPPING)
        self._obey_requests()
        self.checkpoint_manager.write_changes(self.timeline.step)
        raise StopRequested("a stop of the run was requested")

    def tick(self, poll: Poll | None) -> bool:
        """While a host is waited for between two steps; nothing there is given up."""
        del poll
        self.control.read()
        self.steps.tell_notices()
        self.event_reporter.show_if_due()
        return False

    # --- resume

    def state(self) -> dict[str, Any]:
        """All that a resume needs besides the weights."""
        return {
            "spec_hash": self.plan.spec_hash,
            "timeline": self.timeline.state(),
            "fields": self.fields.state(),
            "probes": self.probes.state(),
            "phase_stages": self.phase_stages.state(),
            "actions": self.actions.state(),
            "roles": {node: role.state() for node, role in self.roles.items()},
            "idle_steps": self.steps.idleness.steps,
            **self.arrivals.state(),
            **self.readings.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.timeline.load_state(state["timeline"])
        self.fields.load_state(state["fields"])
        self.moments.stand_at(self.timeline.now())
        self.probes.load_state(state["probes"])
        self.phase_stages.load_state(state["phase_stages"])
        self.actions.load_state(state["actions"])
        for node, role in self.roles.items():
            if node in state["roles"]:  # else the loop has it since the checkpoint
                role.load_state(state["roles"][node])
        self.steps.idleness.steps = state.get("idle_steps", 0)
        self.arrivals.load_state(state)
        self.readings.load_state(state)
        self.checkpoint_manager.note_resumed(self.timeline.step)
