"""Warnings from the prediction: whether the loop fits into memory, and its texts into the models'
contexts. None of them stops a run that is forced."""

from collections.abc import Iterator
from pathlib import Path

from coloop.plan.cost import Estimate, estimate
from coloop.plan.cost.report import GpuEstimate
from coloop.plan.run_check import check_run, refused_words
from coloop.plan.settings.rows import rows_of
from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Diagnostic, Fix, likeness, notice, warning
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import observed_tokens, turns_of
from coloop.spec.nodes import DatasetNode

GIB = 2**30
FORCED = "a run must be forced"
LONGEST_STEP_SECONDS = 6 * 3600.0
"""A longer step is considered a mistake."""
LIKELY = 0.85
"""Minimum similarity of two names to consider one a typo of the other."""


def costs_are_fine(
    unrolled: Unrolled, root: Path | None, prediction: Estimate | None
) -> Iterator[Diagnostic]:
    """Findings from the prediction of a loop without errors; made here if the caller has none."""
    if prediction is None:
        prediction = estimate(unrolled.spec, unrolled, root=root)
    yield from _models_are_known(prediction, root)
    yield from _memory_is_enough(unrolled, root, prediction)
    yield from _prompts_leave_room(unrolled, root)
    yield from _steps_have_a_size(unrolled.spec, root, prediction)


def _memory_is_enough(
    unrolled: Unrolled, root: Path | None, prediction: Estimate
) -> Iterator[Diagnostic]:
    """No GPU needs more than its memory budget; one finding per pool."""
    over: dict[str, GpuEstimate] = {}
    for gpu in prediction.gpus:
        if gpu.fits is False:
            over.setdefault(gpu.pool, gpu)
    if not over:
        return
    refusals = check_run(unrolled.spec, unrolled, root=root).refusals
    end = f"{refused_words(refusals)}, even if forced" if refusals else FORCED
    for gpu in over.values():
        message, hint = f"in the pool `{gpu.pool}` {gpu.reason}", "give the engine more memory, "
        hint += "generate shorter texts, or use more GPUs"
        if gpu.peak_bytes is not None and gpu.peak_bytes > gpu.usable_bytes:
            largest = sorted(gpu.parts, key=lambda part: -part.bytes)
            resident = [part for part in largest if gpu.peak_stage in part.stages][:2]
            held = " and ".join(f"{part.part} of `{part.node}`" for part in resident)
            message = (
                f"the pool `{gpu.pool}` needs {_gib(gpu.peak_bytes)} of {_gib(gpu.usable_bytes)} "
                f"in `{gpu.peak_stage}`" + (f", most for {held}" if held else "")
            )
            hint = "smaller micro-batches, sharding, offload or more GPUs"
        is_named = gpu.pool in unrolled.spec.hardware.pools
        at = f"hardware.pools.{gpu.pool}" if is_named else "hardware"
        yield warning("memory.over_budget", at, message, f"{hint}; {end}")


def _models_are_known(prediction: Estimate, root: Path | None) -> Iterator[Diagnostic]:
    """The size of every model is known, so that memory and time can be predicted."""
    for model in prediction.unknown:
        if not model.found:  # no model is drawn yet: told as such
            continue
        if root is None and "/" not in model.found:  # a folder that nobody could look into
            continue
        others = [f"`{node}`" for node in model.nodes if node != model.node]
        also = f" and {', '.join(others)}" if others else ""
        at = f"nodes.{model.node}.{model.field}"
        meant = [
            name
            for name in model.suggestions[:1]
            if model.field == "model.path" and likeness(model.found, name) >= LIKELY
        ]
        yield warning(
            "memory.unknown",
            at,
            f"the size of the model of `{model.node}`{also} is not known, so neither are memory "
            f"and time of what uses it: {model.reason}",
            model.hint,
            *(Fix.set(f"Use {name}", at, name) for name in meant),
        )
    for guess in prediction.guessed:
        yield notice(
            "memory.guessed",
            f"nodes.{guess.node}.{guess.field}",
            f"memory and time of `{guess.node}` are guessed: {guess.reason}",
            "measure the first steps before a long run",
        )


def _prompts_leave_room(unrolled: Unrolled, root: Path | None) -> Iterator[Diagnostic]:
    """The longest prompt and the tokens generated after it fit into the model's context."""
    spec = unrolled.spec
    for engine in unrolled.settings(root).survey.engines:
        most = engine.weights.arch.max_positions
        for node in engine.writers:
            rollout = getattr(spec.nodes[node], "rollout", None)
            turns, observed = turns_of(spec, node), round(observed_tokens(spec, node))
            is_said = turns is not None and turns.observation_tokens is not None
            length = engine.length if is_said else engine.length - observed
            if rollout is None or length <= most:
                continue
            prompt = engine.length - observed - rollout.max_new_tokens
            at, room = f"nodes.{node}.rollout.max_new_tokens", most - prompt
            yield warning(
                "numbers.too_long",
                at,
                f"a prompt of {prompt} tokens (the longest known) and `max_new_tokens: "
                f"{rollout.max_new_tokens}` exceed the context of {most} tokens of the model of "
                f"`{node}`",
                "lower `max_new_tokens`, use a model with a longer context, or remove long rows",
                *([Fix.set(f"Set it to {room}", at, room)] if room > 0 else []),
            )


def _steps_have_a_size(
    spec: LoopSpec, root: Path | None, prediction: Estimate
) -> Iterator[Diagnostic]:
    """A step takes no more rows than the dataset has, and at most `LONGEST_STEP_SECONDS`."""
    for name, node in spec.nodes.items():
        if not isinstance(node, DatasetNode) or node.rows_per_step is None:
            continue
        rows, at = rows_of(node, root), f"nodes.{name}.rows_per_step"
        if rows and node.rows_per_step > rows:
            yield warning(
                "numbers.large_step",
                at,
                f"a step takes {node.rows_per_step:,} rows, but `{name}` has {rows:,}: rows repeat "
                "within a step",
                "use at most as many rows as there are",
                Fix.set(f"Set it to {rows:,}", at, rows),
            )
    if prediction.step_seconds is not None and prediction.step_seconds > LONGEST_STEP_SECONDS:
        longest = prediction.bottleneck.rpartition(".")[0]
        yield warning(
            "numbers.large_step",
            f"nodes.{longest}" if longest in spec.nodes else None,
            f"a step is predicted to take {prediction.step_seconds / 3600:,.0f} hours, most of it "
            f"in `{prediction.bottleneck}`",
            "nothing is learned, shown or saved within a step: use fewer rows, or shorter texts",
        )


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
