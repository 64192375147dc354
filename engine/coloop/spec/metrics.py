"""What each metric means and what it should look like: the texts are in `metrics.yaml`."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import Any, Literal

from coloop.spec.base import load_yaml
from coloop.spec.lean import record
from coloop.spec.nodes import NODE_CLASSES

Better = Literal["higher", "lower", "steady", "none"]


@record
class Metric:
    """Help for one metric of a run."""

    title: str
    help: str
    expect: str
    better: Better = "none"
    unit: str | None = None


_TEXTS: dict[str, Any] = load_yaml(Path(__file__).with_suffix(".yaml"))
_ADVICE = ("otherwise", "otherwise_without_scores")


def _metrics(reported_by: str) -> dict[str, Metric]:
    return {
        name: Metric(**{key: text for key, text in texts.items() if key not in _ADVICE})
        for name, texts in _TEXTS[reported_by].items()
    }


def _advice(key: str) -> dict[str, str]:
    return {name: texts[key] for name, texts in _TEXTS["metrics"].items() if key in texts}


METRICS: dict[str, Metric] = _metrics("metrics")
"""What nodes and steps report; `<scorer>` and `<value>` stand for names."""
PROBE_METRICS: dict[str, Metric] = _metrics("probe_metrics")
"""What evaluations report; `@k` stands for a number of samples."""
OTHERWISE: dict[str, str] = _advice("otherwise")
"""What to do if a curve looks different, beyond what the health checks say."""
OTHERWISE_WITHOUT_SCORES: dict[str, str] = _advice("otherwise_without_scores")
"""The same for learners without scores, where it differs."""

OF_KIND: dict[str, tuple[str, ...]] = {
    kind: tuple(name for pattern in node.about.metrics for name in fnmatch.filter(METRICS, pattern))
    for kind, node in NODE_CLASSES.items()
    if node.about.metrics
}
"""Metrics of node kinds that do not learn."""

CHART_ORDER: tuple[str, ...] = tuple(_TEXTS["chart_order"])
"""The most telling metrics first; the others follow by name."""

_PLACEHOLDER = re.compile(r"<[a-z]+>")
_AT_K = re.compile(r"@[1-9][0-9]{0,5}$")


def described(name: str) -> Metric | None:
    """The metric of a node that a name means: `reward/exact` is `reward/<scorer>`."""
    if name in METRICS:
        return METRICS[name]
    family = name.partition("/")[0]
    return next(
        (
            metric
            for key, metric in METRICS.items()
            if _PLACEHOLDER.search(key) and key.partition("/")[0] == family
        ),
        None,
    )


def metric_of(name: str) -> Metric | None:
    """The probe metric that a name in `metrics` means: `pass@8` is `pass@k`."""
    return PROBE_METRICS.get(_AT_K.sub("@k", name.partition(".")[0] if "@" not in name else name))


def samples_of(name: str) -> int | None:
    """k of `pass@k`; None for other metrics."""
    match = _AT_K.search(name)
    return int(match[0][1:]) if match else None
