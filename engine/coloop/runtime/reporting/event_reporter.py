"""What a run tells of itself: events as things happen, and how it stands a few times a second."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Literal

from coloop.plan.types import Stage
from coloop.runtime.health.checks import Finding
from coloop.runtime.phases.timeline import Entry, Timeline
from coloop.runtime.reporting.pace import Pace
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.run_files.event_file import has_line
from coloop.runtime.run_files.events import (
    AlertEvent,
    EditEvent,
    Gauges,
    LogEvent,
    MetricsEvent,
    PhaseEvent,
    Progress,
    RunStateEvent,
    RunStateName,
    SampleEvent,
    StageAtWork,
    StageFinished,
    StageStarted,
    utc_now,
)
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.schedule.calls import StepContext
from coloop.runtime.schedule.in_flight import Work
from coloop.spec.graph import Edge

STALENESS = "staleness"
"""Metric of learners that the gauges show, too."""

Level = Literal["info", "warning", "error"]

LONGEST_PRINTED = 4000
"""Characters of what code printed in a stage that stand in the log."""


class EventReporter:
    """Reports events and gauges of a run."""

    def __init__(
        self,
        recorder: Recorder,
        timeline: Timeline,
        edges: Iterable[Edge],
        evaluations_ahead: Callable[[int, int], Mapping[str, int]],
        teaching: Iterable[Edge] = (),
    ) -> None:
        """
        Args:
            edges: all edges of the loop.
            evaluations_ahead: by probe, how often it will be read, of steps done and steps in all.
            teaching: those of the edges that lead into a teaching port.
        """
        self._recorder = recorder
        self._timeline = timeline
        self._evaluations_ahead = evaluations_ahead
        readers = {edge.key: edge.target.node for edge in edges}
        learners = {edge.key: edge.target.node for edge in teaching}
        self.pace = Pace(readers, readers=readers, teaching=learners)
        self._probe: str | None = None
        self.state = RunStateName.STARTING
        self._works: dict[int, Work] = {}
        """Stages at work, by identity, in the order in which they began."""
        self.step = 0
        """The step of the stage that began last."""
        self._memory: dict[int, int] = {}
        """Bytes of the hosts' processes, by id."""
        self.held_bytes: dict[str, int] = {}
        """By stage, the most that a GPU, or a process without one, was seen to hold in it."""

    def become(self, state: RunStateName) -> None:
        self.state = state
        self._recorder.record(RunStateEvent(state=state, step=self._timeline.step))
        self.show_if_due()

    def alert(
        self,
        level: Level,
        code: str,
        message: str,
        node: str | None = None,
        *,
        hint: str | None = None,
        metric: str | None = None,
        cleared: bool = False,
    ) -> None:
        """Something that a person may want to act on."""
        self._recorder.record(
            AlertEvent(
                level=level,
                code=code,
                message=message,
                hint=hint,
                node=node,
                metric=metric,
                cleared=cleared,
                step=self._timeline.step,
            )
        )

    def phase(self, entry: Entry, state: Literal["started", "finished"]) -> None:
        steps = self._timeline.steps_of_phase if state == "started" else None
        self._recorder.record(
            PhaseEvent(
                phase=entry.plan.name,
                index=entry.index,
                round=entry.round,
                learn=list(entry.plan.learn),
                steps=steps,
                state=state,
                step=self._timeline.step,
            )
        )

    @property
    def stage(self) -> Stage | None:
        """The first stage at work, in the order of the plan."""
        works = sorted(self._works.values(), key=lambda work: (work.flight.step, work.task.place))
        return works[0].stage if works else None

    def stage_started(self, work: Work) -> None:
        self._works[id(work)] = work
        self.step = work.flight.step
        self._recorder.record(StageStarted(**self._about(work)))

    def stage_finished(self, work: Work, outcome: Outcome) -> None:
        stage = work.stage
        self._works.pop(id(work), None)
        if work.held_bytes:
            before = self.held_bytes.get(stage.name, 0)
            self.held_bytes[stage.name] = max(before, work.held_bytes)
        self.pace.stage_finished(
            stage.name,
            work.seconds,
            outcome.samples,
            outcome.tokens,
            starved=work.starved,
            blocked=work.blocked,
        )
        self._recorder.record(
            StageFinished(
                **self._about(work),
                seconds=round(work.seconds, 6),
                samples=outcome.samples,
                tokens=outcome.tokens,
                waited_seconds=round(work.starved + work.blocked, 6),
                starved_seconds=round(work.starved, 6),
                blocked_seconds=round(work.blocked, 6),
                rank_seconds=[round(seconds, 3) for seconds in work.rank_seconds] or None,
            )
        )

    def _about(self, work: Work) -> dict[str, Any]:
        stage, step_context = work.stage, work.task.step_context
        return {
            "stage": stage.name,
            "phase": step_context.phase,
            "node": stage.node,
            "step": step_context.step,
            "pool": stage.pool,
            "evaluation": self._probe,
            "round": step_context.round,
        }

    def at_work(self, works: Sequence[Work]) -> None:
        self._works = {id(work): work for work in works}

    def findings(self, findings: Sequence[Finding]) -> None:
        for one in findings:
            self.alert(
                "info" if one.cleared else one.level,
                one.code,
                one.message,
                node=one.node,
                hint=None if one.cleared else one.hint,
                metric=one.metric,
                cleared=one.cleared,
            )

    def sample(self, event: SampleEvent) -> None:
        self._recorder.record(event)

    def evaluation_began(self, probe: str, phase: str) -> None:
        """What runs from here on runs for a probe."""
        self._probe = probe
        self.pace.evaluation_began()
        self._recorder.record(
            StageStarted(
                stage=_evaluate_stage(probe),
                phase=phase,
                node=probe,
                step=self._timeline.step,
                evaluation=probe,
            )
        )

    def evaluation_finished(self, phase: str, seconds: float, rows: int) -> None:
        """The probe was read; with what ran for it that took so long."""
        probe, self._probe = self._probe, None
        assert probe is not None
        self.pace.evaluation_finished(probe, _evaluate_stage(probe), seconds, rows)
        self._recorder.record(
            StageFinished(
                stage=_evaluate_stage(probe),
                phase=phase,
                node=probe,
                step=self._timeline.step,
                seconds=round(seconds, 6),
                samples=rows,
                evaluation=probe,
            )
        )
        self.keep_gauges(self._timeline.step)

    def detail_of(self, stage: Stage, step_context: StepContext, outcome: Outcome) -> None:
        """How many rows went where, for whoever looks for one that is missing."""
        if not outcome.detail:
            return
        self._recorder.record(
            LogEvent(
                level="debug",
                message=f"{stage.name} in step {step_context.step}",
                node=stage.node,
                step=step_context.step,
                detail=dict(outcome.detail),
            )
        )

    def printed(self, node: str, step: int, text: str) -> None:
        """What the user's code of a node printed in a stage; of much the beginning."""
        text = text.rstrip()
        if not text:
            return
        cut = len(text) - LONGEST_PRINTED
        more = f"\n... {cut:,} characters more" if cut > 0 else ""
        self._recorder.record(
            LogEvent(
                message=text[:LONGEST_PRINTED] + more,
                node=node,
                step=step,
                detail={"printed": True},
            )
        )

    def step_finished(self, step: int, seconds: float, idle_seconds: float) -> None:
        """A step took so long, and so long of it nothing was at work but the driver."""
        self.pace.step_finished(seconds)
        metrics: dict[str, float | None] = {
            "step/seconds": seconds,
            "step/controller_share": min(1.0, idle_seconds / seconds),
        }
        self._recorder.record(MetricsEvent(step=step, metrics=metrics))

    def metrics(
        self, node: str, step: int, values: Mapping[str, float], *, evaluation: bool = False
    ) -> dict[str, float]:
        """Readings of a node; what is no finite number is told as null and not given back."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if STALENESS in known:
            self.pace.learned(node, known[STALENESS])
        if values:
            told = {name: known.get(name) for name in values}
            self._recorder.record(
                MetricsEvent(node=node, step=step, metrics=told, evaluation=evaluation)
            )
        return known

    def edited(self, changes: Mapping[str, object], by: str) -> None:
        step = self._timeline.step
        self._recorder.record(EditEvent(changes=dict(changes), by=by, step=step))

    def show_if_due(self) -> None:
        """The gauges, unless they were shown a moment ago."""
        if self._recorder.gauges_are_due():
            self.show()

    def show(self) -> None:
        self._recorder.show(self._gauges())

    def keep_gauges(self, step: int) -> None:
        """How the run stands now is kept for a replay, and shown as well if that is due.

        Args:
            step: the newest step that is done.
        """
        is_due = self._recorder.gauges_are_due()
        if not is_due and not has_line(step):
            return
        gauges = self._gauges()
        if has_line(step):
            self._recorder.keep_gauges(step, gauges)
        if is_due:
            self._recorder.show(gauges)

    def show_last(self, state: RunStateName) -> None:
        """How the run stands now that it has ended so; kept whatever its step is."""
        self.state = state
        self.at_work([])
        gauges = self._gauges()
        self._recorder.keep_gauges(self._timeline.step, gauges)
        self._recorder.show(gauges)

    def _gauges(self) -> Gauges:
        timeline, pace = self._timeline, self.pace
        moment, total = timeline.now(), timeline.steps_total()
        at_work = self._stages_at_work()
        first = next((one for one in at_work if self.stage and one.stage == self.stage.name), None)
        return Gauges(
            at=utc_now(),
            run=self._recorder.run_id,
            attempt=self._recorder.attempt,
            state=self.state,
            step=timeline.step,
            steps_total=total,
            is_bound=total is not None and timeline.may_end_early,
            phase=moment.phase.name if moment else None,
            phase_step=moment.step_in_phase if moment else None,
            phase_steps=moment.steps_of_phase if moment else None,
            stage=first.stage if first is not None else None,
            at_work=at_work,
            step_seconds=pace.step_seconds,
            window_steps=pace.window_steps,
            phase_step_seconds=pace.phase_step_seconds,
            eta_seconds=self._seconds_left(timeline.step, total),
            progress=first.progress if first is not None else None,
            evaluation_share=pace.evaluation_share,
            nodes=pace.nodes(),
            stages=pace.stages(),
            edges=pace.edges(),
            bottleneck=pace.bottleneck(),
            memory={"rss_bytes": sum(self._memory.values())} if self._memory else {},
        )

    def _stages_at_work(self) -> list[StageAtWork]:
        found = []
        for work in self._works.values():
            stage, poll = work.stage, work.poll
            progress = None
            if poll is not None:
                if poll.pid is not None and poll.rss_bytes is not None:
                    self._memory[poll.pid] = poll.rss_bytes
                progress = Progress(
                    stage=stage.name, done=poll.done, total=poll.total, unit=poll.unit
                )
            found.append(
                StageAtWork(
                    stage=stage.name,
                    node=stage.node,
                    pool=stage.pool,
                    step=work.flight.step,
                    evaluation=self._probe,
                    round=work.task.step_context.round,
                    progress=progress,
                )
            )
        return found

    def _seconds_left(self, done: int, total: int | None) -> float | None:
        if total is None:
            return None
        return self.pace.seconds_left(total - done, self._evaluations_ahead(done, total))


def _evaluate_stage(probe: str) -> str:
    return f"{probe}.evaluate"


# What came up in a lane and a person should know: put there by any thread, told by the driver.

Notice = tuple[str | None, str, str]
"""(node or none, code, message)."""


class Notices:
    """Those of one session that nobody has told yet."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Notice] = SimpleQueue()

    def put(self, node: str | None, code: str, message: str) -> None:
        self._waiting.put((node, code, message))

    def take(self) -> Iterator[Notice]:
        while True:
            try:
                yield self._waiting.get_nowait()
            except Empty:
                return
