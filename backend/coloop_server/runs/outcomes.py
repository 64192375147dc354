"""The main metric of runs: which one it is, and its first, best and last reading."""

import math
from collections.abc import Sequence
from functools import lru_cache

from coloop.explain.experiment import about_metric, main_metric
from coloop.spec.io import parse
from coloop_server.runs import service
from coloop_server.runs.schemas import OutcomeReading, RunOutcome
from coloop_server.runs.supervisor import Supervisor


def read_outcomes(supervisor: Supervisor, run_ids: Sequence[str]) -> list[RunOutcome]:
    """No transaction is open while files are read."""
    with supervisor.sessions() as session:
        texts = {run_id: service.text_of(session, run_id) for run_id in dict.fromkeys(run_ids)}
    return [outcome_of(supervisor, run_id, text) for run_id, text in texts.items()]


def outcome_of(supervisor: Supervisor, run_id: str, text: str) -> RunOutcome:
    """The outcome of a run whose loop is `text`."""
    metric = metric_of_text(text)
    if metric is None:
        return RunOutcome(
            run=run_id, metric=None, title="", better="higher", start=None, best=None, end=None
        )
    readings = read_metric(supervisor, run_id, metric)
    title, better = about_metric(metric.partition(".")[2])
    pick = min if better == "lower" else max
    return RunOutcome(
        run=run_id,
        metric=metric,
        title=title,
        better=better,
        start=readings[0] if readings else None,
        best=pick(readings, key=lambda reading: reading.value, default=None),
        end=readings[-1] if readings else None,
    )


@lru_cache(maxsize=1024)
def metric_of_text(text: str) -> str | None:
    """The main metric of a loop; None if nothing measures it, or if it cannot be read."""
    spec = parse(text).spec
    return None if spec is None else main_metric(spec)


def read_metric(supervisor: Supervisor, run_id: str, metric: str) -> list[OutcomeReading]:
    """The finite readings of `node.metric`, by step."""
    node, _, name = metric.partition(".")
    points = supervisor.open(run_id).series.read([(node, name)]).get((node, name))
    if points is None:
        return []
    return [
        OutcomeReading(step=step, value=value)
        for step, value in zip(points.steps, points.values, strict=True)
        if math.isfinite(value)
    ]
