"""How far measurements may be from an estimate: ranges of measured / estimated that hold nine of
ten published measurements each (`tests/bench/README.md` has the shares).

One definition for the command line, the API and the page.
"""

from coloop.plan.settings.survey import Survey

Band = tuple[float, float]

MEMORY: Band = (0.8, 1.3)
"""Peaks."""
LEARNING: Band = (0.7, 1.4)
"""Steps that only learn, on GPUs."""
GENERATION: Band = (0.5, 2.0)
"""Generation alone, on GPUs."""
STEP: Band = (0.4, 3.5)
"""Steps that generate and learn, on GPUs, with told lengths: frameworks swap weights, offload and
wait in ways of their own."""
STEP_ASSUMED: Band = (0.35, 4.0)
"""The same where the mean length of completions is assumed."""
SYNC: Band = (0.7, 1.5)
"""Weight sync between pools."""
PROCESSOR: Band = (0.4, 2.5)
"""Steps on a CPU."""


def time_band(survey: Survey) -> Band:
    """The range for a step of a loop."""
    if survey.machine.is_cpu:
        return PROCESSOR
    if not any(stage.endswith(".generate") for stage in survey.stages):
        return LEARNING
    return STEP_ASSUMED if survey.assumed_lengths else STEP
