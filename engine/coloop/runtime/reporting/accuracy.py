"""Stores how far a run's predictions of times and lengths were off, for later predictions."""

from collections.abc import Iterator

from coloop.plan.cost import Explanation
from coloop.plan.settings.corrections import timed_as
from coloop.plan.settings.measured import Timed, add_measured, lengths_as
from coloop.plan.settings.survey import Survey
from coloop.runtime.reporting.pace import Pace
from coloop.spec.groups import reasons
from coloop.spec.table_sizes import mean_written

LEAST_STEPS = 10
"""Steps of a phase whose means say something: the first ones load and compile."""
MOST_APART = 1.5
"""Factor between predicted and measured tokens up to which the times of a stage are compared."""


def keep_measured(survey: Survey, explained: Explanation, pace: Pace) -> None:
    """Store the ratio of each stage of the phases with enough steps."""
    measured = survey.conditions.measured
    if measured is not None:
        add_measured(measured, (*_ratios(survey, explained, pace), *_lengths(survey, pace)))


def _lengths(survey: Survey, pace: Pace) -> Iterator[tuple[Timed, float]]:
    """Measured over assumed length of the completions of nodes that do not state it."""
    if survey.counts.is_characters:
        return
    for phase, times in pace.phases.items():
        stages = pace.stages_of(phase) if times.steps >= LEAST_STEPS else {}
        for name, node in survey.spec.nodes.items():
            rollout, stage = getattr(node, "rollout", None), stages.get(f"{name}.generate")
            if rollout is None or rollout.expected_tokens is not None or stage is None:
                continue
            if stage.tokens_per_second and stage.samples_per_second:
                mean = stage.tokens_per_second / stage.samples_per_second
                assumed = mean_written(rollout, reasons=reasons(survey.spec, name))
                timed = lengths_as(survey.spec.name, name, rollout.max_new_tokens)
                yield timed, mean / assumed


def _ratios(survey: Survey, explained: Explanation, pace: Pace) -> Iterator[tuple[Timed, float]]:
    factors = {one.stage: one.factor for one in explained.corrections}
    for phase, times in pace.phases.items():
        if times.steps < LEAST_STEPS:
            continue
        stages = pace.stages_of(phase)
        for planned in explained.stages_in.get(phase, ()):
            stage, timed = stages.get(planned.stage), timed_as(survey, planned.stage)
            if stage is None or timed is None or not planned.seconds or not stage.seconds:
                continue
            if planned.tokens_per_second and stage.tokens_per_second:
                said = planned.tokens_per_second * planned.seconds
                apart = stage.tokens_per_second * stage.seconds / said
                if not 1 / MOST_APART <= apart <= MOST_APART:
                    continue
            yield timed, stage.seconds / planned.seconds * factors.get(planned.stage, 1.0)
