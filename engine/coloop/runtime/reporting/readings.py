"""What a run derives from its metrics: latest values, the best step, triggers, health findings.

Metrics of a step count when it is finished, in the order of its plan.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from coloop.runtime.health.checks import Finding, HealthChecks, Truth
from coloop.spec.base import as_tuple
from coloop.spec.schedule import Trigger

EVENT_NAMES = {"clip_share": "clip_fraction"}
"""Metric names in a loop that differ from those in events."""


@dataclass(slots=True, kw_only=True)
class _Memory:
    lowest: float | None = None
    best: float | None = None
    in_a_row: int = 0
    has_fired: bool = False


@dataclass(slots=True, kw_only=True)
class TriggerWatch:
    """Tracks which triggers fire: once when the condition has held for `for` readings in a row, and
    again only after it did not hold."""

    triggers: Sequence[Trigger]
    _memories: list[_Memory] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._memories = [_Memory() for _ in self.triggers]

    def read(self, metric: str, value: float, phase: str) -> list[Trigger]:
        """Record a reading and return the triggers that it fires, in the order of the spec."""
        fired = []
        for trigger, memory in zip(self.triggers, self._memories, strict=True):
            node, _, name = trigger.when.metric.partition(".")
            if f"{node}.{EVENT_NAMES.get(name, name)}" != metric:
                continue
            holds = _holds(trigger, memory, value)
            memory.best = value if memory.best is None else max(memory.best, value)
            memory.lowest = value if memory.lowest is None else min(memory.lowest, value)
            if trigger.in_ and phase not in as_tuple(trigger.in_):
                continue
            if not holds:
                memory.in_a_row, memory.has_fired = 0, False
                continue
            memory.in_a_row += 1
            if memory.in_a_row >= trigger.when.for_ and not memory.has_fired:
                memory.has_fired = True
                fired.append(trigger)
        return fired

    def state(self) -> list[dict[str, Any]]:
        return [asdict(memory) for memory in self._memories]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        self._memories = [_Memory(**memory) for memory in state]


def _holds(trigger: Trigger, memory: _Memory, value: float) -> bool:
    when = trigger.when
    if when.above is not None and not value > when.above:
        return False
    if when.below is not None and not value < when.below:
        return False
    best, lowest = memory.best, memory.lowest
    if when.falls_by is not None and (best is None or value > best - when.falls_by):
        return False
    return when.rises_by is None or (lowest is not None and value >= lowest + when.rises_by)


LOSS = "loss/"
"""Prefix of the metric for the loss of a port."""


class Readings:
    def __init__(
        self,
        watch: TriggerWatch,
        best_metric: Callable[[], str | None],
        on_best: Callable[[Mapping[str, float]], None],
        truths: Mapping[str, Truth],
    ) -> None:
        """
        Args:
            best_metric: gives the metric that currently decides which step is best.
            on_best: called with each reading that is the best so far.
            truths: by learner, the metric that is its ground truth.
        """
        self._watch = watch
        self._best_metric = best_metric
        self._on_best = on_best
        self._checks = HealthChecks(truths)
        self.latest: dict[str, float] = {}
        """By `node.metric`."""
        self.fired: list[Trigger] = []
        """Triggers whose actions are due, in the order in which they fired."""
        self.best: float | None = None
        self.best_step = 0
        self._taught: set[str] = set()
        """Teaching ports for which a loss was reported."""
        self._untaught: list[Finding] = []

    def read(self, node: str, metrics: Mapping[str, float], *, step: int, phase: str) -> None:
        for name, value in metrics.items():
            if not math.isfinite(value):
                continue
            metric = f"{node}.{name}"
            self.latest[metric] = value
            is_best = metric == self._best_metric()
            if is_best and (self.best is None or value > self.best):
                self.best, self.best_step = value, step
                self._on_best({metric: value})
            self.fired += self._watch.read(metric, value, phase)

    @property
    def best_words(self) -> str | None:
        """The best metrics of the run, in words; None if there are none."""
        if self.best is None:
            return None
        return f"best {self._best_metric()} {self.best:.4g}, at step {self.best_step}"

    def learned(self, node: str, metrics: Mapping[str, float], reasons: Mapping[str, str]) -> None:
        """Record metrics of a step, and the causes of abnormal values."""
        losses = (name for name in metrics if name.startswith(LOSS))
        self._taught.update(f"{node}.{name.removeprefix(LOSS)}" for name in losses)
        self._checks.hear(node, _finite(metrics), reasons)

    def evaluated(
        self, node: str, metrics: Mapping[str, float], *, step: int, phase: str
    ) -> Sequence[Finding]:
        self.read(node, metrics, step=step, phase=phase)
        return self._checks.evaluated(node, _finite(metrics), step, phase)

    def step_finished(self, step: int, phase: str) -> Sequence[Finding]:
        return self._checks.step_finished(step, phase)

    def run_finished(self, step: int, ports: Iterable[str]) -> Sequence[Finding]:
        """Findings at the end of the run. `ports`: teaching ports that were live in some phase."""
        self._untaught = [_untaught(port, step) for port in sorted({*ports} - self._taught)]
        return [*self._checks.run_finished(step), *self._untaught]

    @property
    def unresolved(self) -> list[Finding]:
        return [*self._checks.open, *self._untaught]

    def state(self) -> dict[str, Any]:
        triggers = self._watch.triggers
        return {
            "triggers": self._watch.state(),
            "best_reading": self.best,
            "best_step": self.best_step,
            "doctor": self._checks.state(),
            "taught": sorted(self._taught),
            "fired": [triggers.index(trigger) for trigger in self.fired],
            "latest": dict(self.latest),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._watch.load_state(state["triggers"])
        self._checks.load_state(state["doctor"])
        self._taught = set(state.get("taught", ()))
        self.best, self.best_step = state["best_reading"], state["best_step"]
        self.fired = [self._watch.triggers[index] for index in state["fired"]]
        self.latest = dict(state.get("latest", {}))


def _untaught(port: str, step: int) -> Finding:
    node, _, name = port.partition(".")
    return Finding(
        code="learning.untaught",
        level="error",
        node=node,
        metric=f"{LOSS}{name}",
        message=f"`{port}` should learn, but no update of this run had a row for it",
        hint=(
            "check the alerts about rows, and whether `schedule.learn` (`after`, `every`, `rows`) "
            "allows an update in the steps in which it is live"
        ),
        step=step,
    )


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
