"""The cheapest ways to make a loop fit or to relieve its bottleneck, in words."""

from collections.abc import Iterator

from coloop.plan.cost.report import Estimate, GpuEstimate
from coloop.plan.settings.memory import Memory
from coloop.plan.settings.survey import Survey

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
        elif update.settings.checkpointing and not survey.machine.is_cpu:
            yield (
                f"{name} computes activations twice: it is faster without "
                "`gradient_checkpointing`, if that fits"
            )
        elif update.work.passes > 1:
            passes = f"{update.work.passes:g} times"
            yield f"{name} passes over its rows {passes}: use fewer `training.epochs`"
    if stage.bound == "service":
        yield f"{name} waits for a service: raise its concurrency"
