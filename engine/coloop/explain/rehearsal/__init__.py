"""The same loop at a small scale: tiny models, a few rows and steps, on a CPU."""

from coloop.explain.rehearsal.rehearse import STEPS, Rehearsal, rehearsed
from coloop.explain.rehearsal.report import RehearsalResult, summarize

__all__ = ["STEPS", "Rehearsal", "RehearsalResult", "rehearsed", "summarize"]
