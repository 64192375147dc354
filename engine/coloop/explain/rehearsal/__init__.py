"""Rehearsals: dry runs of a loop with tiny models, few rows and few steps, on a CPU."""

from coloop.explain.rehearsal.rehearse import STEPS, Rehearsal, rehearsed
from coloop.explain.rehearsal.report import RehearsalResult, summarize

__all__ = ["STEPS", "Rehearsal", "RehearsalResult", "rehearsed", "summarize"]
