"""The cheapest ways to make a loop fit or to relieve its bottleneck, in words."""

from collections.abc import Iterator

from coloop.plan.cost.report import Estimate, GpuEstimate, UnknownModel
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.memory import Memory, totals_of
from coloop.plan.settings.survey import Survey
from coloop.spec.presets import known_models

GIB = 2**30


def advise(survey: Survey, memory: Memory, estimate: Estimate) -> tuple[str, ...]:
    """A few sentences, the most useful first."""
    return tuple(dict.fromkeys((*_to_fit(estimate), *_to_be_faster(survey, memory, estimate))))


def _to_fit(estimate: Estimate) -> Iterator[str]:
    for gpu in estimate.gpus:
        if gpu.fits is not False or gpu.peak_bytes is None:
            continue
        over = (gpu.peak_bytes - gpu.usable_bytes) / GIB
        largest = _largest_part(gpu)
        if over <= 0:
            yield f"pool {gpu.pool}: {gpu.reason}"
        elif largest is not None:
            yield (
                f"pool {gpu.pool}: {gpu.peak_stage} needs {over:.1f} GiB too much; most of it is "
                f"{largest}"
            )


def _largest_part(gpu: GpuEstimate) -> str | None:
    there = [part for part in gpu.parts if gpu.peak_stage in part.stages]
    if not there:
        return None
    part = max(there, key=lambda p: p.bytes)
    return f"{part.part.replace('_', ' ')} of {part.node} ({part.bytes / GIB:.1f} GiB)"


def _to_be_faster(survey: Survey, memory: Memory, estimate: Estimate) -> Iterator[str]:
    if not estimate.bottleneck:
        return
    node, verb = estimate.bottleneck.rsplit(".", 1)
    stage = next(s for s in estimate.stages if s.stage == estimate.bottleneck)
    name = estimate.bottleneck
    if verb == "generate":
        engine = survey.engine_of(node)
        if stage.bound == "latency":
            yield (
                f"{name} waits for its longest completions: lower `max_new_tokens`, or use more "
                "rows a step"
            )
        elif engine is not None and engine.rows > engine.max_sequences * engine.copies:
            yield f"{name} generates in several waves: raise `rollout.max_num_seqs`"
        elif stage.bound == "bandwidth":
            yield f"{name} is bound by memory bandwidth: more rows at once cost little"
    if verb == "learn" and (update := memory.updates.get(node)) is not None:
        if stage.bound == "network":
            yield f"{name} waits for weights to be transferred: raise `training.micro_batch`"
        elif update.settings.gradient_checkpointing and not survey.machine.is_cpu:
            yield (
                f"{name} computes activations twice: it is faster without "
                "`gradient_checkpointing`, if that fits"
            )
        elif update.work.passes > 1:
            passes = f"{update.work.passes:g} times"
            yield f"{name} passes over its rows {passes}: use fewer `training.epochs`"
    if stage.bound == "service":
        yield f"{name} waits for a service: raise its concurrency"


# Stages that have no time, and pools that have no peak: because a model is not known, or because
# what would run does not fit.

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
