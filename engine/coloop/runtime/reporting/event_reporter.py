"""Reports a run: events as things happen, and gauges a few times a second."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from coloop.plan.types import Stage
from coloop.runtime.health.checks import Finding
from coloop.runtime.phases.timeline import Entry, Timeline
from coloop.runtime.reporting.pace import Pace
from coloop.runtime.roles.protocol import Outcome
from coloop.runtime.run_files.event_file import has_line
from coloop.runtime.run_files.events import (
    AlertEvent,
    Gauges,
    MetricsEvent,
    PhaseEvent,
    Progress,
    RunStateEvent,
    RunStateName,
    StageAtWork,
    StageFinished,
    StageStarted,
    utc_now,
)
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.schedule.in_flight import Work

STALENESS = "staleness"
"""Metric of learners that the gauges show as well."""

Level = Literal["info", "warning", "error"]


class EventReporter:
    def __init__(
        self,
        recorder: Recorder,
        timeline: Timeline,
        pace: Pace,
        evaluations_ahead: Callable[[int, int], Mapping[str, int]],
    ) -> None:
        """`evaluations_ahead`: from done and total steps, how often each probe will be read."""
        self._recorder = recorder
        self.record = recorder.record
        self._timeline = timeline
        self._evaluations_ahead = evaluations_ahead
        self.pace = pace
        self._probe: str | None = None
        self.state = RunStateName.STARTING
        self._works: dict[int, Work] = {}
        """Running stages by identity, in the order in which they began."""
        self.step = 0
        """The step of the stage that began last."""
        self._memory: dict[int, int] = {}
        """Bytes of the workers' processes, by process id."""
        self.held_bytes: dict[str, int] = {}
        """By stage, the largest memory of a GPU, or of a process without one, seen in it."""

    def become(self, state: RunStateName) -> None:
        self.state = state
        self.record(RunStateEvent(state=state, step=self._timeline.step))
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
        self.record(
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
        self.record(
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
        """The first running stage, in the order of the plan."""
        works = sorted(self._works.values(), key=lambda work: (work.flight.step, work.task.place))
        return works[0].stage if works else None

    def stage_started(self, work: Work) -> None:
        self._works[id(work)] = work
        self.step = work.flight.step
        self.record(StageStarted(**self._about(work)))

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
        self.record(
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
        for finding in findings:
            self.alert(
                "info" if finding.cleared else finding.level,
                finding.code,
                finding.message,
                node=finding.node,
                hint=None if finding.cleared else finding.hint,
                metric=finding.metric,
                cleared=finding.cleared,
            )

    def evaluation_began(self, probe: str, phase: str) -> None:
        """Stages that run from here on run for this probe."""
        self._probe = probe
        self.pace.evaluation_began()
        self.record(StageStarted(**self._about_evaluation(probe, phase)))

    def evaluation_finished(self, phase: str, seconds: float, rows: int) -> None:
        """`seconds`: time of the whole evaluation, with the stages that ran for it."""
        probe, self._probe = self._probe, None
        assert probe is not None
        about = self._about_evaluation(probe, phase)
        self.pace.evaluation_finished(probe, about["stage"], seconds, rows)
        self.record(StageFinished(**about, seconds=round(seconds, 6), samples=rows))
        self.keep_gauges(self._timeline.step)

    def _about_evaluation(self, probe: str, phase: str) -> dict[str, Any]:
        return {
            "stage": f"{probe}.evaluate",
            "phase": phase,
            "node": probe,
            "step": self._timeline.step,
            "evaluation": probe,
        }

    def step_finished(self, step: int, seconds: float, idle_seconds: float) -> None:
        """`idle_seconds`: the part of the time during which no stage was running."""
        self.pace.step_finished(seconds)
        metrics: dict[str, float | None] = {
            "step/seconds": seconds,
            "step/controller_share": min(1.0, idle_seconds / seconds),
        }
        self.record(MetricsEvent(step=step, metrics=metrics))

    def metrics(
        self, node: str, step: int, values: Mapping[str, float], *, evaluation: bool = False
    ) -> None:
        """Report metrics of a node; those that are not finite are reported as null."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if STALENESS in known:
            self.pace.learned(node, known[STALENESS])
        if values:
            metrics = {name: known.get(name) for name in values}
            self.record(MetricsEvent(node=node, step=step, metrics=metrics, evaluation=evaluation))

    def show_if_due(self) -> None:
        if self._recorder.gauges_are_due():
            self.show()

    def show(self) -> None:
        self._recorder.show(self._gauges())

    def keep_gauges(self, step: int) -> None:
        """Keep the gauges after a step for replays, and show them if that is due."""
        is_due = self._recorder.gauges_are_due()
        if not is_due and not has_line(step):
            return
        gauges = self._gauges()
        if has_line(step):
            self._recorder.keep_gauges(step, gauges)
        if is_due:
            self._recorder.show(gauges)

    def show_last(self, state: RunStateName) -> None:
        """Show and keep the gauges of a run that has ended."""
        self.state = state
        self.at_work([])
        gauges = self._gauges()
        self._recorder.keep_gauges(self._timeline.step, gauges)
        self._recorder.show(gauges)

    def _gauges(self) -> Gauges:
        timeline, pace = self._timeline, self.pace
        position, total = timeline.now(), timeline.steps_total()
        at_work = self._stages_at_work()
        first = next(
            (work for work in at_work if self.stage and work.stage == self.stage.name), None
        )
        seconds_left = None
        if total is not None:
            evaluations = self._evaluations_ahead(timeline.step, total)
            seconds_left = pace.seconds_left(total - timeline.step, evaluations)
        return Gauges(
            at=utc_now(),
            run=self._recorder.run_id,
            attempt=self._recorder.attempt,
            state=self.state,
            step=timeline.step,
            steps_total=total,
            is_bound=total is not None and timeline.may_end_early,
            phase=position.phase.name if position else None,
            phase_step=position.step_in_phase if position else None,
            phase_steps=position.steps_of_phase if position else None,
            stage=first.stage if first is not None else None,
            at_work=at_work,
            step_seconds=pace.step_seconds,
            window_steps=pace.window_steps,
            phase_step_seconds=pace.phase_step_seconds,
            eta_seconds=seconds_left,
            progress=first.progress if first is not None else None,
            evaluation_share=pace.evaluation_share,
            nodes=pace.nodes(),
            stages=pace.stages(),
            edges=pace.edges(),
            bottleneck=pace.bottleneck(),
            memory={"rss_bytes": sum(self._memory.values())} if self._memory else {},
        )

    def _stages_at_work(self) -> list[StageAtWork]:
        at_work = []
        for work in self._works.values():
            stage, poll = work.stage, work.poll
            progress = None
            if poll is not None:
                if poll.pid is not None and poll.rss_bytes is not None:
                    self._memory[poll.pid] = poll.rss_bytes
                progress = Progress(
                    stage=stage.name, done=poll.done, total=poll.total, unit=poll.unit
                )
            at_work.append(
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
        return at_work


Notice = tuple[str | None, str, str]
"""(node or none, code, message)."""


class Notices(deque[Notice]):
    """What lanes have noticed, from any thread, and the driver has not reported yet."""

    def put(self, node: str | None, code: str, message: str) -> None:
        self.append((node, code, message))
