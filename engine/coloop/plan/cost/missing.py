"""Stages that have no time, and pools that have no peak: because a model is not known, or because
what would run does not fit."""

from collections.abc import Iterator

from coloop.plan.cost.report import UnknownModel
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.memory import Memory, totals_of
from coloop.plan.settings.survey import Survey
from coloop.spec.presets import known_models

GIB = 2**30
KNOWN_EACH = 12
"""Of the known ids every so many are named as examples."""


def missing_times(survey: Survey, memory: Memory) -> Iterator[tuple[str, str]]:
    """Stages without a time, each with the reason in words."""
    over: dict[str, str] = {}
    for pool in memory.pools:
        usable = survey.machine.usable_bytes(pool.pool)
        for stage, size in totals_of(pool.claims, pool.stages, is_first=True).items():
            if size > usable:
                over[stage] = (
                    f"it does not fit: {size / GIB:.1f} of {usable / GIB:.1f} GiB of "
                    f"`{pool.pool.name}`"
                )
    for stage in survey.stages:
        group = survey.unknown_group(stage)
        if group is not None:
            yield stage, f"the model of `{group}` is not known"
        elif stage in over:
            yield stage, over[stage]
        else:
            for engine in survey.engines_in(stage):
                if is_starved(memory, engine):
                    yield stage, starved_words(memory, engine)
                    break


def starved_engines(survey: Survey, memory: Memory, pool: str) -> Iterator[Engine]:
    """Engines of a pool that cannot start."""
    for engine in survey.engines:
        if engine.pool.name == pool and is_starved(memory, engine):
            yield engine


def is_starved(memory: Memory, engine: Engine) -> bool:
    """Whether an engine's cache has no room for one text of full length: vLLM does not start."""
    serving = memory.servings.get(engine.writers[0])
    return serving is not None and serving.tokens < engine.length


def starved_words(memory: Memory, engine: Engine) -> str:
    """What an engine that cannot start lacks."""
    serving = memory.servings[engine.writers[0]]
    return (
        f"the engine of `{engine.writers[0]}` has a cache of {serving.tokens:,} tokens, and a text "
        f"may have {engine.length:,}"
    )


def unknown_in(survey: Survey, pool: str) -> tuple[str, ...]:
    """Groups of unknown models that are held in a pool, or write there."""
    found = [name for name in survey.unknown if pool in survey.pools_of_unknown(name)]
    return tuple(found)


def unknown_hint(unknown: UnknownModel) -> str:
    """How to make a model known."""
    if unknown.field == "model.architecture":
        near = " or ".join(unknown.suggestions)
        return f"did you mean {near}?" if near else "use one of the known architectures"
    if unknown.field == "model.run":
        return "the run's folder has it: estimates come with the first steps"
    give = "save the model's `config.json` in a folder and give that folder as `path`"
    if unknown.suggestions:
        return f"did you mean {' or '.join(unknown.suggestions)}? Otherwise {give}"
    some = ", ".join(known_models()[::KNOWN_EACH])
    return f"{give}, or use a known id, such as {some}"
