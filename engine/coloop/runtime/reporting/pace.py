"""The speed of a run: rates of nodes, stages and edges over the last steps, bottleneck, time left.

Rates of steps are over the whole time of the phase's last steps, so that rate times step time is
what a step produces. Stages and edges that only evaluations use have rates over the time from one
evaluation to the next, up to now. `samples_per_second` and `tokens_per_second` are rates while a
stage is busy. The report uses means over all steps of a phase since this attempt began.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import add
from typing import NamedTuple

from coloop.runtime.run_files.events import EdgeGauge, NodeGauge, StageGauge

WINDOW_STEPS = 8
WINDOW_EVALUATIONS = 8
WRITES = ".generate"
"""Suffix of the names of generating stages."""


class _Work(NamedTuple):
    """Totals of a stage over its runs."""

    seconds: float = 0.0
    samples: int = 0
    tokens: int = 0
    starved: float = 0.0
    blocked: float = 0.0
    runs: int = 1


@dataclass(slots=True, kw_only=True)
class _Window:
    """The work of one step, one evaluation, or several together."""

    seconds: float = 0.0
    stages: dict[str, _Work] = field(default_factory=dict)
    edges: Counter[str] = field(default_factory=Counter)

    def add(self, other: "_Window") -> None:
        self.seconds += other.seconds
        for stage, work in other.stages.items():
            self.add_work(stage, work)
        self.edges.update(other.edges)

    def add_work(self, stage: str, work: _Work) -> None:
        known = self.stages.get(stage)
        self.stages[stage] = work if known is None else _Work(*map(add, known, work))


@dataclass(slots=True)
class PhaseTimes:
    """All steps of a phase in this attempt."""

    steps: int = 0
    window: _Window = field(default_factory=_Window)

    @property
    def step_seconds(self) -> float:
        """Mean seconds of a step, without the evaluations between steps."""
        return self.window.seconds / self.steps

    @property
    def bottleneck(self) -> str | None:
        return _longest(self.window)


@dataclass(slots=True)
class _Evaluations:
    """The last evaluations of one probe."""

    since: float
    """Start of the time over which they are spread."""
    passes: deque[tuple[float, _Window]] = field(default_factory=deque)
    """With their end times."""

    def add(self, end: float, window: _Window) -> None:
        self.passes.append((end, window))
        if len(self.passes) > WINDOW_EVALUATIONS:
            self.since, _ = self.passes.popleft()


class Pace:
    """Work of the last steps and evaluations, by stage, node and edge."""

    def __init__(
        self,
        readers: Mapping[str, str],
        teaching: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`readers`: the reading node of each edge, by key. `teaching`: keys of edges into teaching
        ports."""
        self._clock = clock
        self._rows = dict.fromkeys(readers, 0)
        self._readers = readers
        self._teaching = teaching
        self._queues: Mapping[str, int] = {}
        self._staleness: dict[str, float] = {}
        self._phase = ""
        self._steps: dict[str, deque[_Window]] = {}
        self._step_sum: _Window | None = None
        """Sum of the phase's last steps; None: to be computed again."""
        self.phases: dict[str, PhaseTimes] = {}
        self._last_steps: deque[float] = deque(maxlen=WINDOW_STEPS)
        self._current = _Window()
        self._evaluation: _Window | None = None
        self._evaluations: dict[str, _Evaluations] = {}
        self._began: float | None = None

    # --- input

    def step_began(self, phase: str) -> None:
        """Begin a step, without the work of one that did not end."""
        self._start_clock()
        self._phase = phase
        self._step_sum = None
        self._current = _Window()

    def step_finished(self, seconds: float) -> None:
        self._current.seconds = seconds
        steps = self._steps.setdefault(self._phase, deque(maxlen=WINDOW_STEPS))
        steps.append(self._current)
        self._step_sum = None
        whole = self.phases.setdefault(self._phase, PhaseTimes())
        whole.steps += 1
        whole.window.add(self._current)
        self._last_steps.append(seconds)
        self._current = _Window()

    def evaluation_began(self) -> None:
        """From here on, stages and edges count for a probe."""
        self._start_clock()
        self._evaluation = _Window()

    def evaluation_finished(self, probe: str, stage: str, seconds: float, samples: int) -> None:
        """Count an evaluation as one run of the probe's stage, with all tokens generated for it."""
        done, self._evaluation = self._evaluation, None
        assert done is not None
        assert self._began is not None
        done.seconds = seconds
        tokens = sum(work.tokens for name, work in done.stages.items() if name.endswith(WRITES))
        done.add_work(stage, _Work(seconds, samples, tokens))
        known = self._evaluations.setdefault(probe, _Evaluations(self._began))
        known.add(self._clock(), done)

    def stage_finished(
        self,
        stage: str,
        seconds: float,
        samples: int,
        tokens: int,
        *,
        starved: float = 0.0,
        blocked: float = 0.0,
    ) -> None:
        """`starved`, `blocked`: seconds for which it waited for its inputs, and for its lane."""
        self._open.add_work(stage, _Work(seconds, samples, tokens, starved, blocked))

    def delivered(self, edge: str, rows: int) -> None:
        self._open.edges[edge] += rows
        self._rows[edge] = self._rows.get(edge, 0) + rows

    def queued(self, rows: Mapping[str, int]) -> None:
        """Set how many rows wait for the reader of each edge; 0 for edges not named."""
        self._queues = rows

    def learned(self, node: str, staleness: float) -> None:
        """Set by how many versions a learner is ahead of the rows that it learned from."""
        self._staleness[node] = staleness

    @property
    def _open(self) -> _Window:
        return self._evaluation if self._evaluation is not None else self._current

    def _start_clock(self) -> None:
        if self._began is None:
            self._began = self._clock()

    # --- output

    @property
    def step_seconds(self) -> float | None:
        """Mean seconds of the phase's last steps; in its first step, of the phases before."""
        last = [step.seconds for step in self._steps.get(self._phase, ())] or self._last_steps
        return sum(last) / len(last) if last else None

    def seconds_left(self, steps: int, evaluations: Mapping[str, int]) -> float | None:
        """Seconds that so many steps and, by probe, evaluations will take; None before the first
        step. A probe that was never read counts as 0."""
        if self.step_seconds is None:
            return None
        left = max(steps, 0) * self.step_seconds
        for probe, known in self._evaluations.items():
            mean = sum(window.seconds for _, window in known.passes) / len(known.passes)
            left += evaluations.get(probe, 0) * mean
        return left

    @property
    def evaluation_share(self) -> float:
        """Share of the time spent in evaluations, up to now."""
        now = self._clock()
        shares = [
            sum(window.seconds for _, window in known.passes) / max(now - known.since, 1e-9)
            for known in self._evaluations.values()
        ]
        return min(1.0, sum(shares))

    def stages(self) -> dict[str, StageGauge]:
        return self._beside(self._step_window())

    @property
    def window_steps(self) -> int:
        return len(self._steps.get(self._phase, ())) or len(self._last_steps)

    @property
    def phase_step_seconds(self) -> float | None:
        """Mean seconds of all steps of the phase; None before the first has ended."""
        times = self.phases.get(self._phase)
        return times.step_seconds if times else None

    def stages_of(self, phase: str) -> dict[str, StageGauge]:
        """Like `stages`, over all steps of a phase."""
        times = self.phases.get(phase)
        return self._beside(times.window if times else _Window())

    def nodes(self) -> dict[str, NodeGauge]:
        """By node, with the rates of the stage that takes most of its time."""
        by_node: dict[str, dict[bool, list[StageGauge]]] = {}
        for stage, gauge in self.stages().items():
            kinds = by_node.setdefault(stage.partition(".")[0], {})
            kinds.setdefault(gauge.evaluation, []).append(gauge)
        nodes = {}
        for node, kinds in by_node.items():
            evaluation = False not in kinds
            stages = kinds[evaluation]
            main = max(stages, key=lambda gauge: gauge.share)
            busy = min(1.0, sum(gauge.share for gauge in stages))
            starved = min(1.0 - busy, sum(gauge.starved for gauge in stages))
            waiting = [
                self._queues.get(edge, 0) for edge, to in self._readers.items() if to == node
            ]
            nodes[node] = NodeGauge(
                samples_per_second=main.samples_per_second,
                tokens_per_second=main.tokens_per_second,
                wall_samples_per_second=main.wall_samples_per_second,
                wall_tokens_per_second=main.wall_tokens_per_second,
                busy=busy,
                starved=starved,
                blocked=min(1.0 - busy - starved, sum(gauge.blocked for gauge in stages)),
                evaluation=evaluation,
                queue=sum(waiting) if waiting else None,
                staleness=self._staleness.get(node),
            )
        return nodes

    def edges(self) -> dict[str, EdgeGauge]:
        """All edges by key. The rate of an edge is over steps, or over evaluations if steps brought
        no rows."""
        steps, evaluations = self._step_window(), self._evaluation_windows()
        return {edge: self._edge(edge, steps, evaluations) for edge in self._rows}

    def _edge(self, edge: str, steps: _Window, evaluations: list[_Window]) -> EdgeGauge:
        in_step = steps.edges[edge]
        in_evaluations = [
            window.edges[edge] / window.seconds for window in evaluations if edge in window.edges
        ]
        evaluates = in_step == 0 and bool(in_evaluations)
        rate = in_step / steps.seconds if steps.seconds else None
        return EdgeGauge(
            rows_per_second=sum(in_evaluations) if evaluates else rate,
            rows=self._rows[edge],
            queue=self._queues.get(edge, 0),
            staleness=self._staleness.get(self._readers[edge]) if edge in self._teaching else None,
            evaluation=evaluates,
        )

    def bottleneck(self) -> str | None:
        return _longest(self._step_window())

    def _beside(self, steps: _Window) -> dict[str, StageGauge]:
        aside: dict[str, StageGauge] = {}
        for window in self._evaluation_windows():
            for stage, gauge in _stage_gauges(window, evaluation=True).items():
                aside[stage] = _together(aside[stage], gauge) if stage in aside else gauge
        return aside | _stage_gauges(steps, evaluation=False)

    def _step_window(self) -> _Window:
        if self._step_sum is None:
            self._step_sum = _sum(self._steps.get(self._phase, ()))
        return self._step_sum

    def _evaluation_windows(self) -> list[_Window]:
        """By probe, its last evaluations and the time over which they are spread."""
        now = self._clock()
        windows = []
        for known in self._evaluations.values():
            window = _sum(done for _, done in known.passes)
            window.seconds = max(now - known.since, 1e-9)
            windows.append(window)
        return windows


def _sum(windows: Iterable[_Window]) -> _Window:
    whole = _Window()
    for window in windows:
        whole.add(window)
    return whole


def _longest(window: _Window) -> str | None:
    stages = window.stages
    return max(stages, key=lambda stage: stages[stage].seconds) if stages else None


def _stage_gauges(window: _Window, *, evaluation: bool) -> dict[str, StageGauge]:
    return {
        stage: _stage_gauge(work, window.seconds, evaluation=evaluation)
        for stage, work in window.stages.items()
    }


def _stage_gauge(work: _Work, seconds: float, *, evaluation: bool) -> StageGauge:
    """`seconds`: the whole time, with waits and other stages."""
    return StageGauge(
        seconds=work.seconds / work.runs,
        share=_share(work.seconds, seconds),
        samples_per_second=_rate(work.samples, work.seconds),
        tokens_per_second=_rate(work.tokens, work.seconds),
        wall_samples_per_second=_rate(work.samples, seconds),
        wall_tokens_per_second=_rate(work.tokens, seconds),
        starved=_share(work.starved, seconds),
        blocked=_share(work.blocked, seconds),
        evaluation=evaluation,
    )


def _share(seconds: float, whole: float) -> float:
    return min(1.0, seconds / whole) if whole else 0.0


def _together(first: StageGauge, second: StageGauge) -> StageGauge:
    """The sum for a stage that several probes use."""
    share = first.share + second.share
    part = first.share / share if share else 0.5

    def total(name: str, *weights: float) -> float | None:
        values = (getattr(first, name), getattr(second, name))
        pairs = zip(values, weights, strict=True)
        known = [value * weight for value, weight in pairs if value is not None]
        return sum(known) if known else None

    means = ("seconds", "samples_per_second", "tokens_per_second")
    sums = ("wall_samples_per_second", "wall_tokens_per_second")
    shares = ("share", "starved", "blocked")
    return first.model_copy(
        update={
            **{name: total(name, part, 1 - part) for name in means},
            **{name: total(name, 1.0, 1.0) for name in sums},
            **{name: min(1.0, getattr(first, name) + getattr(second, name)) for name in shares},
        }
    )


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None
