"""A run at work: everything that `run_loop` speaks of, and the state that a resume brings back.

The session owns no weights and knows no algorithm: it moves the timeline, asks the executor for
stages, the checkpoints for folders and the recorder for events, and passes readings to the
triggers.
"""

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from coloop.cluster import Cluster
from coloop.errors import (
    CheckpointError,
    ColoopError,
    SpecProblem,
    StageStalled,
    StopRequested,
    StorageFull,
)
from coloop.events import CheckpointRequest, ControlRequest, EditRequest, RunStateName
from coloop.hosts.messages import Poll
from coloop.plan.types import Plan, Stage
from coloop.roles.protocol import Context, Outcome, Role
from coloop.runtime.actions import Actions
from coloop.runtime.arrivals import CODE as MISSING_ROWS
from coloop.runtime.arrivals import Arrivals, Missing
from coloop.runtime.checkpoint import Checkpoints
from coloop.runtime.control import Control
from coloop.runtime.doctor import Doctor, Finding
from coloop.runtime.executor import Executor, Situation, Unrolled, Watcher
from coloop.runtime.failures import stage_failure
from coloop.runtime.fields import Fields
from coloop.runtime.idleness import Idleness
from coloop.runtime.keeper import Keeper
from coloop.runtime.pace import Pace
from coloop.runtime.phase_stages import PhaseStages
from coloop.runtime.probes import Grades, Probes
from coloop.runtime.recorder import Recorder
from coloop.runtime.samples import Samples
from coloop.runtime.teller import Teller
from coloop.runtime.timeline import Moment, Timeline
from coloop.runtime.triggers import TriggerWatch
from coloop.spec.lineage import Lineages
from coloop.spec.schedule import Trigger

logger = logging.getLogger(__name__)

GOALS = ("learn", "write")
"""Verbs of the stages for whose sake a step runs."""


@dataclass(slots=True, kw_only=True)
class Parts:
    """What a session is made of."""

    plan: Plan
    context: Context
    lineages: Lineages
    cluster: Cluster
    roles: Mapping[str, Role]
    timeline: Timeline
    fields: Fields
    triggers: TriggerWatch
    phase_stages: PhaseStages
    probes: Probes
    checkpoints: Checkpoints
    recorder: Recorder
    control: Control
    samples: Samples
    actions: Actions


@dataclass(slots=True)
class _Controller:
    """Time of a step that no stage had."""

    step_began: float = 0.0
    in_stages: float = 0.0


class Session(Watcher):
    """See the module."""

    def __init__(self, parts: Parts, executor_of: Callable[["Session"], Executor]) -> None:
        self._parts = parts
        self.timeline = parts.timeline
        self._executor: Executor = executor_of(self)
        edges = [edge.key for edge in parts.context.spec.edges]
        self._teller = Teller(parts.recorder, parts.timeline, edges, parts.probes.ahead)
        self._step_has_learned = False
        self._controller = _Controller()
        self._fired: list[Trigger] = []
        self._requests: list[ControlRequest] = []
        self._best: float | None = None
        self._best_step = 0
        self.readings: dict[str, float] = {}
        self._idleness = Idleness()
        self._arrivals = Arrivals(parts.context.spec.edges)
        self._doctor = Doctor()
        self._keeper = Keeper(parts.checkpoints, parts.actions, parts.recorder, self.state)
        self._is_whole = True
        parts.checkpoints.on_lost_copy = self._lost_copy
        parts.cluster.on_tick(self._tick)
        parts.context.tick = self._tick_in_driver

    # --- the loop's words

    def begin(self) -> None:
        self._teller.become(RunStateName.RUNNING)

    def enter_phase(self) -> None:
        """Begin a phase: what refers to its start happens, then its `do`."""
        parts = self._parts
        self._stand_at(self.timeline.entering())
        with self._repeated_if_broken(self.timeline.take_back_entry):
            entry = self.timeline.enter()
            updates = parts.phase_stages.updates_ahead(entry.plan, self.timeline.steps_of_phase)
            wants_checkpoint = parts.actions.phase_starts(entry, updates)
        self._keeper.note_change()
        self._tell_notes()
        self._teller.phase(entry, "started")
        if self.timeline.steps_of_phase == 0:
            message = f"phase {entry.plan.name} has no steps: {entry.plan.epochs_of} has no rows"
            self._teller.alert("warning", "phase.empty", message, node=entry.plan.epochs_of)
        if wants_checkpoint:
            self._checkpoint()

    @contextmanager
    def _repeated_if_broken(self, take_back: Callable[[], None]) -> Iterator[None]:
        """Actions between two steps. Where they break off, what they changed besides weights is
        taken back, so that a resume does them again from their start; weights that follow become
        the same again, but for moving averages, which would count twice."""
        actions, roles = self._parts.actions, self._parts.roles
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
            self._is_whole = not actions.has_averages
            self._keeper.note_change()
            raise
        self._is_whole = True

    def _tell_notes(self) -> None:
        notes, self._parts.actions.notes = self._parts.actions.notes, []
        for node, message in notes:
            self._teller.alert("info", "snapshot.from_current", message, node=node)

    def leave_phase(self) -> None:
        """End a phase."""
        entry = self.timeline.current
        assert entry is not None
        for buffer in self.timeline.not_full():
            message = f"{buffer} is not full after {entry.plan.max_steps} steps; the run goes on"
            self._teller.alert("warning", "buffer.not_full", message, node=buffer)
        self.timeline.leave()
        self._keeper.note_change()
        self._teller.phase(entry, "finished")

    def step(self, moment: Moment) -> None:
        """One unrolling of the graph. Where it ends before anything was learned, by a stop or a
        failure, the step is taken back whole."""
        parts = self._parts
        self._step_has_learned = self._is_whole = False
        self._stand_at(moment)
        take_back = self._memory()
        self._controller = _Controller(step_began=time.monotonic())
        self.pace.step_began(moment.phase.name)
        self._idleness.step_begins()
        try:
            due = parts.phase_stages.due(moment)
            self._arrivals.step_begins(due.rows)
            self._doctor.step_begins()
            situation = Situation(step=moment.step, phase=moment.phase.name, live=due.live)
            unrolled = self._executor.run(due.stages, situation, due.refills)
        except StopRequested:
            take_back()
            self._stop()
        except (Exception, SystemExit) as error:
            if not self._step_has_learned and not self._has_changed_weights():
                take_back()
            self._fail(error, moment.step)
        parts.phase_stages.done(moment)
        parts.fields.step_done(moment)
        parts.actions.step_done(moment)
        self._is_whole = True
        self._keeper.note_change()
        self._arrivals.step_finished(moment.phase.name)
        self._tell_findings(self._doctor.step_finished(moment.step, moment.phase.name))
        self._after_step(moment, unrolled)
        self._idleness.step_finished(moment.step, moment.phase.name)

    def _memory(self) -> Callable[[], None]:
        """What undoes the step that begins now."""
        parts = self._parts
        memory = {node: role.remember() for node, role in parts.roles.items()}
        readings, fired = parts.triggers.state(), list(self._fired)

        def take_back() -> None:
            for node, role in parts.roles.items():
                role.recall(memory[node])
            parts.triggers.load_state(readings)
            self._fired = fired
            self.timeline.take_back_step()
            self._is_whole = True

        return take_back

    def _has_changed_weights(self) -> bool:
        """Whether the stage that failed has changed weights, or nobody can tell."""
        stage = self._teller.stage
        if stage is None or stage.verb != "learn":
            return stage is not None and stage.verb == "sync"
        try:
            return self._parts.context.hosts.has_changed(stage.node)
        except ColoopError:
            return True

    def _fail(self, error: BaseException, step: int) -> NoReturn:
        """Raise what went wrong, with its place where the error does not know it."""
        if isinstance(error, ColoopError):
            raise error
        raise stage_failure(error, self._teller.stage, step) from error

    def evaluate_due(self) -> None:
        """Probes that are due at this step and have not been read yet."""
        self._evaluate(is_last=False)

    def evaluate_last(self) -> None:
        """Every probe once more at the end."""
        self._evaluate(is_last=True)

    def obey(self) -> None:
        """Triggers that fired, requests that came, the checkpoint that is due.

        A checkpoint that a trigger asks for still names the triggers that come after it.
        """
        parts = self._parts
        if self._keeper.has_best:
            self._checkpoint()
        wants_stop = False
        while self._fired:
            trigger = self._fired.pop(0)
            self._teller.alert("info", "trigger.fired", f"{trigger.when.metric} set off a trigger")
            with self._repeated_if_broken(partial(self._fired.insert, 0, trigger)):
                stops, wants_checkpoint = parts.actions.obey(trigger.do, self.timeline)
            self._tell_notes()
            self._keeper.note_change()
            wants_stop |= stops
            if wants_checkpoint:
                self._checkpoint()
        self._obey_requests()
        every = parts.context.spec.run.checkpoint_every
        if every and self.timeline.step and self.timeline.step % every == 0:
            self._try(self._keeper.write_once)
        if wants_stop or parts.control.stop_is_wanted:
            self._stop()

    def finish(self) -> None:
        """The last checkpoint; that the run is over is said when everything else is written."""
        self._tell_findings(self._doctor.run_finished(self.timeline.step))
        self._keeper.write_once(self.timeline.step)

    def rescue(self, failure: BaseException) -> None:
        """Save what a failed run has, where it stands between two steps and its hosts answer."""
        if not self._is_whole or isinstance(failure, StorageFull | CheckpointError | StageStalled):
            return
        try:
            self._keeper.write_changes(self.timeline.step)
        except Exception as error:  # what cannot be saved does not hide why the run failed
            logger.warning("the state before the failure was not saved: %s", error)

    def close(self) -> None:
        """End what roles have started."""
        for role in self._parts.roles.values():
            close = getattr(role, "close", None)
            if close is not None:
                close()

    @property
    def pace(self) -> Pace:
        """How long stages and steps take."""
        return self._teller.pace

    @property
    def stage_at_work(self) -> Stage | None:
        """The stage that is running."""
        return self._teller.stage

    @property
    def step_at_work(self) -> int:
        """The step that was begun last, done or not."""
        return self._teller.step

    # --- what the executor tells

    def delivered(self, edge: str, rows: int) -> None:
        self.pace.delivered(edge, rows)

    def noticed(self, node: str, code: str, message: str) -> None:
        self._teller.alert("warning", code, message, node=node)
        self._idleness.noticed(message)

    def stage_started(self, stage: Stage, situation: Situation) -> None:
        self._teller.stage_started(stage, situation)
        self._tell_missing(self._arrivals.stage_starts(stage, situation), situation)

    def stage_finished(
        self, stage: Stage, situation: Situation, seconds: float, outcome: Outcome
    ) -> None:
        self._controller.in_stages += seconds
        self._step_has_learned |= stage.verb == "learn"
        self._teller.stage_finished(stage, situation, seconds, outcome)
        if not situation.is_probe:
            for node, metrics in ((stage.node, outcome.metrics), *outcome.member_metrics.items()):
                self._doctor.hear(node, self._report(node, metrics, situation))
        for code, message in outcome.alerts:
            self.noticed(stage.node, code, message)
        self._teller.detail_of(stage, situation, outcome)
        self._tell_missing(self._arrivals.stage_finished(stage, situation, outcome), situation)
        if stage.verb in GOALS:
            self._idleness.goal_finished(stage.name, is_idle=outcome.is_idle)
        self._collect_requests()
        self._teller.show_if_due()
        if self._parts.control.stop_is_wanted and not self._step_has_learned:
            raise StopRequested("between stages")

    @property
    def best_words(self) -> str | None:
        """The best reading of the run, where it says what is best."""
        if self._best is None:
            return None
        metric = self._parts.context.spec.run.best
        return f"best {metric} {self._best:.4g}, at step {self._best_step}"

    @property
    def unresolved(self) -> list[Finding]:
        """What the learning doctor has raised and not cleared."""
        return self._doctor.open

    # --- inside

    def _tell_findings(self, findings: Sequence[Finding]) -> None:
        for one in findings:
            self._teller.alert(
                "info" if one.cleared else one.level,
                one.code,
                one.message,
                node=one.node,
                hint=None if one.cleared else one.hint,
                metric=one.metric,
                cleared=one.cleared,
            )

    def _stand_at(self, moment: Moment | None) -> None:
        """Roles see the values of this moment, and the lineage of its phase."""
        context = self._parts.context
        context.spec = self._parts.fields.at(moment)
        context.lineage = self._parts.lineages.at(moment.phase.overrides if moment else {})

    def _tell_missing(self, missing: Sequence[Missing], situation: Situation) -> None:
        """Rows that are bound to come and did not: an alert at once, an error where they never
        came."""
        for one in self._arrivals.note(missing):
            self._teller.alert("error", MISSING_ROWS, one.message, node=one.node, hint=one.hint)
            self._idleness.noticed(one.message)
        self._arrivals.check_first(missing, situation.phase)

    def _after_step(self, moment: Moment, unrolled: Unrolled) -> None:
        parts = self._parts
        whole = time.monotonic() - self._controller.step_began
        self._teller.step_finished(moment.step, whole, self._controller.in_stages)
        for probe in parts.probes.of_tables(moment.step, moment.phase):
            with self._evaluation(probe.node, moment.phase.name) as grades:
                readings = parts.probes.read_tables(
                    probe, unrolled, moment.step, moment.phase.name, grades
                )
            parts.probes.mark_read(probe, moment.step)
            situation = Situation(step=moment.step, phase=moment.phase.name)
            self._report(probe.node, readings, situation)
        self._show_samples(moment.step, unrolled)
        self._teller.show_if_due()

    def _show_samples(self, step: int, unrolled: Unrolled) -> None:
        try:
            event = self._parts.samples.of_step(step, unrolled)
        except OSError as error:
            logger.warning("samples of step %d were not written: %s", step, error)
            return
        if event is not None:
            self._parts.recorder.record(event)

    def _evaluate(self, *, is_last: bool) -> None:
        parts = self._parts
        step = self.timeline.step
        moment = self.timeline.now()
        plan = moment.phase if moment else self.timeline.entries[-1].plan
        due = parts.probes.due(step, plan, is_last=is_last)
        if not due:
            return
        self._stand_at(moment)
        phase = plan.name
        self._step_has_learned = False
        for probe in due:
            try:
                with self._evaluation(probe.node, phase) as grades:
                    metrics = parts.probes.read(probe, self._executor, step, phase, grades)
            except StopRequested:
                self._stop()
            except (Exception, SystemExit) as error:
                self._fail(error, step)
            parts.probes.mark_read(probe, step)
            self._keeper.note_change()
            situation = Situation(step=step, phase=phase)
            self._report(probe.node, metrics, situation)

    @contextmanager
    def _evaluation(self, probe: str, phase: str) -> Iterator[Grades]:
        """Times an evaluation and counts what its own edges bring."""
        began = time.monotonic()
        most_rows = 0

        def grades(edge: str, rows: int) -> None:
            nonlocal most_rows
            most_rows = max(most_rows, rows)
            self.delivered(edge, rows)

        self._teller.evaluation_began(probe, phase)
        yield grades
        self._teller.evaluation_finished(phase, time.monotonic() - began, most_rows)

    def _report(
        self, node: str, metrics: Mapping[str, float], situation: Situation
    ) -> Mapping[str, float]:
        """Tell the readings of a node to everybody; those that are numbers."""
        known = self._teller.metrics(node, situation.step, metrics)
        for name, value in known.items():
            self.readings[f"{node}.{name}"] = value
            self._note_best(f"{node}.{name}", value)
            self._fired += self._parts.triggers.read(f"{node}.{name}", value, situation.phase)
        return known

    def _note_best(self, metric: str, value: float) -> None:
        is_best = metric == self._parts.context.spec.run.best
        if is_best and (self._best is None or value > self._best):
            self._best, self._best_step = value, self.timeline.step
            self._keeper.note_best({metric: value})

    def _collect_requests(self) -> None:
        """Read what is asked; a stop counts at once, the rest waits for the end of the step."""
        self._requests += self._parts.control.take()

    def _obey_requests(self) -> None:
        parts = self._parts
        self._collect_requests()
        requests, self._requests = self._requests, []
        for request in requests:
            if isinstance(request, EditRequest):
                self._edit(request)
            elif isinstance(request, CheckpointRequest):
                self._checkpoint()
        for line in parts.control.unreadable:
            self._teller.alert(
                "warning", "control.unreadable", f"a request was not understood: {line}"
            )
        parts.control.unreadable.clear()

    def _edit(self, request: EditRequest) -> None:
        try:
            self._parts.fields.edit(request.changes)
        except SpecProblem as problem:
            self._teller.alert("warning", "control.edit_refused", str(problem))
            return
        self._keeper.note_change()
        self._teller.edited(request.changes, request.by)

    def _checkpoint(self) -> None:
        self._try(self._keeper.write_changes)

    def _try(self, write: Callable[[int], None]) -> None:
        """A checkpoint on the way may fail: the run goes on, and a person is told."""
        self._parts.checkpoints.keep = self._parts.context.spec.run.keep
        try:
            write(self.timeline.step)
        except (StorageFull, CheckpointError) as error:
            self._teller.alert("error", "checkpoint.failed", str(error))

    def left_out(self, damage: str) -> None:
        """A checkpoint of the run is not whole: it goes on from another one."""
        self._teller.alert("warning", "checkpoint.damaged", damage)

    def _lost_copy(self, reason: str) -> None:
        self._teller.alert("warning", "checkpoint.not_copied", reason)

    def _stop(self) -> None:
        """Stop with everything saved, edits that were read in this step among it."""
        self._teller.stage = None
        self._teller.become(RunStateName.STOPPING)
        self._obey_requests()
        self._keeper.write_changes(self.timeline.step)
        raise StopRequested("the run was asked to stop")

    def show_last(self, state: RunStateName) -> None:
        """The gauges of a run that has ended."""
        self._teller.state = state
        self._teller.stage = None
        self._teller.show()

    def _tick(self, poll: Poll | None) -> bool:
        self._collect_requests()
        self._teller.show_if_due(poll)
        return self._parts.control.stop_is_wanted and not self._step_has_learned

    def _tick_in_driver(self, done: int = 0, total: int = 0) -> None:
        """What `_tick` is while a host is waited for, for a role that works here."""
        if self._tick(Poll(done=done, total=total, unit="rows") if total else None):
            raise StopRequested("while a role was at work")

    # --- resume

    def state(self) -> dict[str, Any]:
        """All that a resume needs besides the weights."""
        parts = self._parts
        return {
            "spec_hash": parts.plan.spec_hash,
            "timeline": self.timeline.state(),
            "fields": parts.fields.state(),
            "triggers": parts.triggers.state(),
            "probes": parts.probes.state(),
            "phase_stages": parts.phase_stages.state(),
            "actions": parts.actions.state(),
            "roles": {node: role.state() for node, role in parts.roles.items()},
            "best_reading": self._best,
            "best_step": self._best_step,
            "arrivals": self._arrivals.state(),
            "doctor": self._doctor.state(),
            "fired": [parts.triggers.triggers.index(trigger) for trigger in self._fired],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on where a checkpoint stands."""
        parts = self._parts
        self.timeline.load_state(state["timeline"])
        parts.fields.load_state(state["fields"])
        self._stand_at(self.timeline.now())
        parts.triggers.load_state(state["triggers"])
        parts.probes.load_state(state["probes"])
        parts.phase_stages.load_state(state["phase_stages"])
        parts.actions.load_state(state["actions"])
        for node, role in parts.roles.items():
            role.load_state(state["roles"][node])
        self._arrivals.load_state(state["arrivals"])
        self._doctor.load_state(state["doctor"])
        self._best, self._best_step = state["best_reading"], state["best_step"]
        self._fired = [parts.triggers.triggers[index] for index in state["fired"]]
        self._keeper.note_resumed(self.timeline.step)
