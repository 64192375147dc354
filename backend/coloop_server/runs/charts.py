"""Data of charts: curves of one or several runs, in buckets of equal width."""

import math
from collections.abc import Mapping, Sequence

from coloop_server.runs.schemas import CurveOutline, CurvesOfRuns, RunCurves, RunSeries
from coloop_server.runs.series import (
    SECONDS,
    TOKENS,
    Ends,
    Key,
    Points,
    cut_ends,
    fold,
    values_at,
    width_for,
)
from coloop_server.runs.watch import Snapshot, Watch

LAST_STEP = 2**31 - 1


def curves_of(
    watches: Mapping[str, Watch],
    metrics: Sequence[str],
    *,
    first: int = 0,
    last: int = LAST_STEP,
    buckets: int,
) -> CurvesOfRuns:
    """Curves by `node.metric`, or by a metric of every node."""
    names = frozenset(metrics)

    def is_wanted(key: Key) -> bool:
        return key[1] in names or ".".join(key) in names

    is_part = first > 0 or last < LAST_STEP
    ends = [
        cut
        for watch in watches.values()
        for curve in watch.ends(is_wanted)
        for cut in ([curve] if not is_part else within_part(watch, curve, first, last))
    ]
    width = width_for(ends, buckets)
    # One run after the other: the points of all at once may be more than there is memory for.
    runs = [
        run_curves(run, watch.snapshot(is_wanted), first, last, width)
        for run, watch in watches.items()
    ]
    return CurvesOfRuns(width=width, runs=runs)


def within_part(watch: Watch, ends: Ends, first: int, last: int) -> list[Ends]:
    points_of_curve = watch.series.read([ends.key]).values()
    return [cut for points in points_of_curve if (cut := cut_ends(points, ends, first, last))]


def run_curves(run: str, snapshot: Snapshot, first: int, last: int, width: int) -> RunCurves:
    ends = snapshot.ends
    return RunCurves(
        run=run,
        seq=snapshot.seq,
        attempt=max(snapshot.attempt, 1),
        first_step=min((curve.first_step for curve in ends), default=None),
        last_step=max((curve.last_step for curve in ends), default=None),
        width=width,
        stages={stage: round(seconds, 6) for stage, seconds in snapshot.stages.items()},
        curves=[
            CurveOutline(
                node=curve.key[0],
                metric=curve.key[1],
                points=curve.points,
                first_step=curve.first_step,
                last_step=curve.last_step,
                last=curve.last if math.isfinite(curve.last) else None,
            )
            for curve in ends
        ],
        series=[
            series_of(key, points, snapshot, first, last, width)
            for key, points in snapshot.points.items()
            if key not in (SECONDS, TOKENS)
        ],
    )


def series_of(
    key: Key, points: Points, snapshot: Snapshot, first: int, last: int, width: int
) -> RunSeries:
    told = fold(points, first, last, width)
    return RunSeries(
        node=key[0],
        metric=key[1],
        **vars(told),
        seconds=values_at(snapshot.points.get(SECONDS), told.step),
        tokens=values_at(snapshot.points.get(TOKENS), told.step),
    )
