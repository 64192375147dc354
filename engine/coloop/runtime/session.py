"""A run in progress: what `run_loop` calls, and the state that a resume restores.

The session holds no weights and has no algorithm-specific code: it advances the timeline, runs
steps through the scheduler, and between two steps carries out triggers and requests and writes
checkpoints.
"""

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
from coloop.runtime.actions import has_averages
from coloop.runtime.checkpoints.checkpoint_manager import pick_up
from coloop.runtime.checkpoints.pinned_settings import LEFT_OUT, REFUSED, edits_since
from coloop.runtime.roles.buffer import BufferRole
from coloop.runtime.run_files.events import (
    CheckpointRequest,
    EditEvent,
    EditRequest,
    RunStateName,
)
from coloop.runtime.schedule.calls import stage_failure
from coloop.runtime.steps import Steps
from coloop.workers.messages import Poll

logger = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class Session(Steps):
    plan: Plan

    # --- called by `run_loop`

    def begin(self) -> None:
        self.event_reporter.become(RunStateName.RUNNING)

    def enter_phase(self) -> None:
        """Begin a phase with the actions that refer to its start, then its `do`."""
        context = self.moments.stand_at(self.timeline.entering())
        with self._repeated_if_broken(self.timeline.take_back_entry):
            entry = self.timeline.enter()
            updates = self.phase_stages.updates_ahead(entry.plan, self.timeline.steps_of_phase)
            wants_checkpoint = self.actions.phase_starts(entry, updates, context)
        self.checkpoint_manager.note_change()
        self.event_reporter.phase(entry, "started")
        if self.timeline.steps_of_phase == 0:
            message = f"phase {entry.plan.name} has no steps: {entry.plan.epochs_of} has no rows"
            self.event_reporter.alert("warning", "phase.empty", message, node=entry.plan.epochs_of)
        if wants_checkpoint:
            self._checkpoint()

    @contextmanager
    def _repeated_if_broken(self, take_back: Callable[[], None]) -> Iterator[None]:
        """Actions between two steps. If they break off, their changes to all but weights are
        undone, and a resume repeats them. Repeating gives the same weights, except for moving
        averages, which would count twice."""
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

    def leave_phase(self) -> None:
        entry = self.timeline.current
        assert entry is not None
        for buffer in self.timeline.not_full():
            role, phase = self.roles[buffer], entry.plan
            assert isinstance(role, BufferRole)
            message = (
                f"{buffer} is not full: it got {role.fill_words(self.moments.now)} in "
                f"{phase.max_steps} steps of phase {phase.name}; the run continues"
            )
            hint = (
                f"raise `max_steps` of {phase.name}, lower `capacity`, or loosen the filters "
                f"before {buffer}"
            )
            self.event_reporter.alert("warning", "buffer.not_full", message, buffer, hint=hint)
        self.timeline.leave()
        self.checkpoint_manager.note_change()
        self.event_reporter.phase(entry, "finished")

    def run_steps(self) -> bool:
        """Run steps until something is due between two of them; false if the phase has none left.
        A step that ends before anything was learned, by a stop or a failure, is rolled back."""
        self._begun = 0
        self._flights.clear()
        self._last_at = time.monotonic()
        try:
            self.scheduler.run_steps(self.begin_step, self.finish_step, self.take_back_step)
        except StopRequested:
            self._stop()
        return self._begun > 0

    def evaluate(self, *, is_last: bool = False) -> None:
        try:
            self.evaluations.read_due(self.scheduler, is_last=is_last)
        except StopRequested:
            self._stop()
        except ColoopError:
            raise
        except Exception as error:
            raise stage_failure(error, None, self.timeline.step) from error

    def obey(self) -> None:
        """Carry out triggers that fired and requests, and write the checkpoint that is due.

        A checkpoint that a trigger requests still contains the triggers after it.
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
            self.checkpoint_manager.note_change()
            wants_stop |= stops
            if wants_checkpoint:
                self._checkpoint()
        self._obey_requests()
        every = self.moments.now.spec.run.checkpoint_every
        if self.checkpoint_manager.is_due(self.timeline.step, every):
            self._checkpoint(once=True)
        if wants_stop or self.control.stop_is_wanted:
            self._stop()

    def finish(self) -> None:
        """Write the last checkpoint. The end of the run is reported after everything else."""
        live = (port for entry in self.timeline.entries for port in entry.plan.learn)
        self.event_reporter.findings(self.readings.run_finished(self.timeline.step, live))
        self.checkpoint_manager.write(self.timeline.step, once=True)
        self.report_notices()

    def rescue(self, failure: BaseException) -> None:
        """Save the state of a failed run, if it is between two steps and its workers answer."""
        is_between = self._is_whole and not self._flights
        if not is_between or isinstance(failure, StorageFull | CheckpointError | StageStalled):
            return
        try:
            self.checkpoint_manager.write(self.timeline.step)
        except Exception as error:  # must not hide the failure
            logger.warning("the state before the failure was not saved: %s", error)

    def close(self) -> None:
        for role in self.roles.values():
            role.close()

    @property
    def stage_at_work(self) -> Stage | None:
        return self.failed_stage or self.event_reporter.stage

    # --- inside

    def _obey_requests(self) -> None:
        self._edit_again()
        for request in self.control.take():
            if isinstance(request, EditRequest):
                if self._edit(request):
                    step, changes = self.timeline.step, dict(request.changes)
                    self.event_reporter.record(EditEvent(changes=changes, by=request.by, step=step))
            elif isinstance(request, CheckpointRequest):
                self._checkpoint()
        for line in self.control.unreadable:
            self.event_reporter.alert(
                "warning", "control.unreadable", f"a request was not understood: {line}"
            )
        self.control.unreadable.clear()

    def _edit_again(self) -> None:
        """Apply edits of this step again that were made before a driver was killed."""
        step = self.timeline.step
        due = [edit for edit in self.edits if edit.step <= step]
        self.edits = [edit for edit in self.edits if edit.step > step]
        for edit in due:
            if self._edit(edit.request):
                message = f"{edit.words} is applied again, because no checkpoint contains it"
                self.event_reporter.alert("info", "edit.made_again", message)

    def _edit(self, request: EditRequest) -> bool:
        """Apply an edit; returns False, with an alert, if it is invalid."""
        try:
            self.fields.edit(request.changes)
        except SpecProblem as problem:
            self.event_reporter.alert("warning", REFUSED, str(problem))
            return False
        self.checkpoint_manager.note_change()
        return True

    def _checkpoint(self, *, once: bool = False) -> None:
        """If a checkpoint fails during the run, it is reported and the run continues."""
        self.checkpoint_manager.checkpoints.keep = self.moments.now.spec.run.keep
        try:
            self.checkpoint_manager.write(self.timeline.step, once=once)
        except (StorageFull, CheckpointError) as error:
            self.event_reporter.alert("error", "checkpoint.failed", str(error))

    def _stop(self) -> NoReturn:
        """Stop with everything saved, also edits that were read in this step."""
        self.event_reporter.at_work([])
        self.event_reporter.become(RunStateName.STOPPING)
        self._obey_requests()
        self.checkpoint_manager.write(self.timeline.step)
        raise StopRequested("a stop of the run was requested")

    def tick(self, poll: Poll | None) -> bool:
        """Called while a worker is waited for between two steps; never cancels the call."""
        del poll
        self.control.read()
        self.report_notices()
        self.event_reporter.show_if_due()
        return False

    # --- resume

    def state(self) -> dict[str, Any]:
        """All that a resume needs besides the weights."""
        return {
            "spec_hash": self.plan.spec_hash,
            "timeline": self.timeline.state(),
            "fields": self.fields.state(),
            "probes": self.evaluations.probes.state(),
            "phase_stages": self.phase_stages.state(),
            "actions": self.actions.state(),
            "roles": {node: role.state() for node, role in self.roles.items()},
            "idle_steps": self.idle_steps,
            **self.arrivals.state(),
            **self.readings.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.timeline.load_state(state["timeline"])
        self.fields.load_state(state["fields"])
        self.moments.stand_at(self.timeline.now())
        self.evaluations.probes.load_state(state["probes"])
        self.phase_stages.load_state(state["phase_stages"])
        self.actions.load_state(state["actions"])
        for node, role in self.roles.items():
            if node in state["roles"]:  # else the loop has it since the checkpoint
                role.load_state(state["roles"][node])
        self.idle_steps = state.get("idle_steps", 0)
        self.arrivals.load_state(state)
        self.readings.load_state(state)
        self.checkpoint_manager.note_resumed(self.timeline.step)

    def resume(self, folder: Path, step: int | None, *, is_fork: bool) -> None:
        """Continue from the checkpoint of a step, or from the newest intact one or the beginning.

        Edits that it lacks are applied again, unless a step is named, which discards them.
        """
        alert, checkpoints = self.event_reporter.alert, self.checkpoint_manager.checkpoints
        tell = partial(alert, "warning", "checkpoint.damaged")
        checkpoint = pick_up(checkpoints, folder, step, tell)
        if checkpoint is not None:
            manifest = checkpoints.read(checkpoint)
            self.actions.load(checkpoint.path)
            self.load_state(manifest)
            if manifest["spec_hash"] != self.plan.spec_hash:
                message = (
                    f"the loop has changed since the checkpoint of step {checkpoint.step}; the run "
                    "resumes from there with the current loop"
                )
                alert("info" if is_fork else "warning", "run.other_loop", message)
        edits = edits_since(folder, checkpoint.step if checkpoint is not None else 0)
        if step is None:
            self.edits = edits
        elif edits:
            message = f"not applied again: {', '.join(edit.words for edit in edits)}"
            alert("info", LEFT_OUT, message)
