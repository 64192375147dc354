"""Compares the runs of a loop with those of its control, over seeds.

curve       readings of the metric, by steps since the phase in which the loops begin to differ
group       mean and spread over seeds of the first and the last reading; an arm of a comparison
            is one
verdict     the loop leads its control if the difference of the mean last readings is larger
            than the spread of either
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from coloop.spec.placement import ControlKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One metric of one run."""

    seed: int
    run: str
    """Id of the run."""
    steps: tuple[int, ...]
    values: tuple[float, ...]
    """The reading at each of `steps`."""
    begins_at: int
    """The step before the phase in which the loops begin to differ; 0 without such a phase."""

    @property
    def start(self) -> float | None:
        """The last reading up to `begins_at`, else the first one."""
        before = [v for s, v in zip(self.steps, self.values, strict=True) if s <= self.begins_at]
        return before[-1] if before else self.end if not self.values else self.values[0]

    @property
    def end(self) -> float | None:
        return self.values[-1] if self.values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The runs of one loop over seeds."""

    curves: tuple[Curve, ...]

    @property
    def start(self) -> float | None:
        return mean([curve.start for curve in self.curves])

    @property
    def end(self) -> float | None:
        return mean([curve.end for curve in self.curves])

    @property
    def spread(self) -> float | None:
        """Sample standard deviation of the last readings; None for fewer than two."""
        known = [curve.end for curve in self.curves if curve.end is not None]
        return stdev(known) if len(known) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm(Group):
    """The runs of a loop, or of one of its controls."""

    kind: ControlKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    full: Arm
    control: Arm

    @property
    def difference(self) -> float | None:
        """Mean last reading of the loop minus that of its control."""
        if self.full.end is None or self.control.end is None:
            return None
        return self.full.end - self.control.end

    @property
    def leads(self) -> bool | None:
        """Whether the difference is larger than the spread of either arm; None with fewer than two
        seeds in one of them."""
        spreads = (self.full.spread, self.control.spread)
        if self.difference is None or None in spreads:
            return None
        return self.difference > max(spread for spread in spreads if spread is not None)


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are not None; None without any."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def curve_of(
    events: Iterable[Mapping[str, Any]], metric: str, *, begins: str | None, seed: int, run: str
) -> Curve:
    """A metric in the events of a run. Of a step that was repeated after a resume, the later
    reading counts.

    Args:
        metric: `node.metric`.
        begins: the phase in which the loops begin to differ; None: the first step.
    """
    node, _, name = metric.partition(".")
    readings: dict[int, float] = {}
    begins_at: int | None = None
    step = 0
    for event in events:
        at = event.get("step")
        step = step if at is None else at
        if event["type"] == "phase" and event["state"] == "started" and event["phase"] == begins:
            begins_at = step if begins_at is None else min(begins_at, step)
        if event["type"] == "metrics" and event.get("node") == node:
            value = event["metrics"].get(name)
            if isinstance(value, int | float):
                readings = {known: v for known, v in readings.items() if known < step}
                readings[step] = float(value)
    return Curve(
        seed=seed,
        run=run,
        steps=tuple(readings),
        values=tuple(readings.values()),
        begins_at=begins_at or 0,
    )
