"""Which values of a sweep lead so far.

Runs are compared at the same step: the last one that every combination with readings has reached,
as successive halving does (Jamieson and Talwalkar, 2016, arXiv:1502.07943; Li et al., 2018,
arXiv:1810.05934). A combination counts with the mean over its seeds; one without readings is not
judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coloop.errors import SweepRefused
from coloop.explain.controls import Curve, Group
from coloop.explain.controls.comparing import mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(Group):
    """The runs of one combination of values, over seeds."""

    values: Mapping[str, Any]
    """By path."""

    def at(self, step: int | None) -> float | None:
        """Mean, over the seeds that have reached a step, of the last reading up to it; of a seed
        whose first reading comes later, that one. None if none has reached it."""
        if step is None:
            return None
        return mean([_reading(curve, step) for curve in self.curves])


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Positions in a list of trials."""

    step: int | None
    """Step at which they were compared; None if none has a reading."""
    best: tuple[int, ...]
    """The leading ones, the best first."""
    losers: tuple[int, ...]
    not_judged: tuple[int, ...]
    """Those without a reading."""


def stand(trials: Sequence[Trial], keep: int, better: Literal["higher", "lower"]) -> Standing:
    """The `keep` best trials, and the others.

    Raises:
        SweepRefused: `keep` is less than 1.
    """
    if keep < 1:
        raise SweepRefused(f"{keep} values to keep are none; keep 1 or more")
    step = standing_at(trials)
    values = {
        place: value for place, trial in enumerate(trials) if (value := trial.at(step)) is not None
    }
    sign = 1.0 if better == "lower" else -1.0
    order = sorted(values, key=lambda place: (sign * values[place], place))
    return Standing(
        step=step,
        best=tuple(order[:keep]),
        losers=tuple(order[keep:]),
        not_judged=tuple(place for place in range(len(trials)) if place not in values),
    )


def standing_at(trials: Sequence[Trial]) -> int | None:
    """The last step that every trial with readings has reached."""
    reached = [
        max(curve.steps[-1] for curve in trial.curves if curve.steps)
        for trial in trials
        if any(curve.steps for curve in trial.curves)
    ]
    return min(reached, default=None)


def _reading(curve: Curve, step: int) -> float | None:
    if not curve.steps or curve.steps[-1] < step:
        return None
    before = [value for at, value in zip(curve.steps, curve.values, strict=True) if at <= step]
    return before[-1] if before else curve.values[0]
