"""The report of a run as an experiment: what was tried, what came of it, how sure that is, and what
to do next."""

from coloop.explain.experiment.markdown import markdown_of
from coloop.explain.experiment.record import RunRecord, record_of
from coloop.explain.experiment.report import (
    Experiment,
    SeedRun,
    about_metric,
    experiment_of,
    main_metric,
)

__all__ = [
    "Experiment",
    "RunRecord",
    "SeedRun",
    "about_metric",
    "experiment_of",
    "main_metric",
    "markdown_of",
    "record_of",
]
