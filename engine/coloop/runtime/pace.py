"""How fast a run goes: rates of nodes and stages over the last steps, the bottleneck, the time
left.

Pure bookkeeping over finished stages; the gauges are made of it.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field

from coloop.events import NodeGauge, StageGauge

WINDOW_STEPS = 8


@dataclass(slots=True, kw_only=True)
class _Work:
    seconds: float = 0.0
    samples: int = 0
    tokens: int = 0
    runs: int = 0

    def add(self, seconds: float, samples: int, tokens: int) -> None:
        self.seconds += seconds
        self.samples += samples
        self.tokens += tokens
        self.runs += 1


@dataclass(slots=True, kw_only=True)
class _Step:
    seconds: float = 0.0
    stages: dict[str, _Work] = field(default_factory=dict)


class Pace:
    """Work of the last steps, by stage and by node."""

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque(maxlen=WINDOW_STEPS)
        self._current = _Step()

    def stage_finished(self, stage: str, seconds: float, samples: int, tokens: int) -> None:
        self._current.stages.setdefault(stage, _Work()).add(seconds, samples, tokens)

    def step_finished(self, seconds: float) -> None:
        self._current.seconds = seconds
        self._steps.append(self._current)
        self._current = _Step()

    @property
    def step_seconds(self) -> float | None:
        """Mean seconds of a step over the window."""
        if not self._steps:
            return None
        return sum(step.seconds for step in self._steps) / len(self._steps)

    def stages(self) -> dict[str, StageGauge]:
        totals, whole = self._totals()
        return {
            stage: StageGauge(
                seconds=work.seconds / work.runs,
                share=work.seconds / whole if whole else 0.0,
                samples_per_second=_rate(work.samples, work.seconds),
                tokens_per_second=_rate(work.tokens, work.seconds),
            )
            for stage, work in totals.items()
        }

    def nodes(self) -> dict[str, NodeGauge]:
        """Rates while the node's stages ran, and the share of the time that they took."""
        totals, whole = self._totals()
        by_node: dict[str, list[_Work]] = defaultdict(list)
        for stage, work in totals.items():
            by_node[stage.partition(".")[0]].append(work)
        gauges = {}
        for node, works in by_node.items():
            main = max(works, key=lambda work: work.seconds)
            busy = sum(work.seconds for work in works) / whole if whole else 0.0
            gauges[node] = NodeGauge(
                samples_per_second=_rate(main.samples, main.seconds),
                tokens_per_second=_rate(main.tokens, main.seconds),
                busy=min(1.0, busy),
            )
        return gauges

    def bottleneck(self) -> str | None:
        """The stage that took most of the last steps."""
        totals, _ = self._totals()
        return max(totals, key=lambda stage: totals[stage].seconds) if totals else None

    def _totals(self) -> tuple[dict[str, _Work], float]:
        totals: dict[str, _Work] = {}
        for step in self._steps:
            for stage, work in step.stages.items():
                total = totals.setdefault(stage, _Work())
                total.seconds += work.seconds
                total.samples += work.samples
                total.tokens += work.tokens
                total.runs += work.runs
        return totals, sum(step.seconds for step in self._steps)


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if count and seconds > 0 else None
