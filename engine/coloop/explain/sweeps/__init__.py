"""Sweeps: the same loop with other values of some settings, over seeds."""

from coloop.explain.sweeps.grid import (
    MOST_RUNS,
    Sweep,
    Variant,
    labels_of,
    sweep_of,
    values_of,
)
from coloop.explain.sweeps.ranking import Standing, Trial, stand, standing_at

__all__ = [
    "MOST_RUNS",
    "Standing",
    "Sweep",
    "Trial",
    "Variant",
    "labels_of",
    "stand",
    "standing_at",
    "sweep_of",
    "values_of",
]
