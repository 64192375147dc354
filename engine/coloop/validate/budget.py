"""What only a prediction tells: whether the loop fits into memory, and its texts into the models.
Warnings, which a person may overrule."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from coloop.plan.cost import Estimate
from coloop.plan.cost.missing import unknown_hint
from coloop.plan.cost.report import GpuEstimate, UnknownModel
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
"""A step that takes longer is taken for a mistake."""
LIKELY = 0.85
"""How alike two names are of which one is taken for a slip of the other."""


def memory_is_enough(
    unrolled: Unrolled, root: Path | None, prediction: Estimate
) -> Iterator[Diagnostic]:
    """No GPU needs more than the budget allows; one finding for each pool."""
    spec = unrolled.spec
    reported: set[str] = set()
    all_the_same = cache(lambda: _all_the_same(unrolled, root))
    for gpu in prediction.gpus:
        if gpu.fits is not False or gpu.pool in reported:
            continue
        reported.add(gpu.pool)
        if gpu.peak_bytes is None or gpu.peak_bytes <= gpu.usable_bytes:
            yield _starved(spec, gpu, all_the_same())
            continue
        largest = sorted(gpu.parts, key=lambda part: -part.bytes)
        resident = [part for part in largest if gpu.peak_stage in part.stages][:2]
        held = " and ".join(f"{part.part} of `{part.node}`" for part in resident)
        yield warning(
            "memory.over_budget",
            f"hardware.pools.{gpu.pool}" if gpu.pool in spec.hardware.pools else "hardware",
            f"the pool `{gpu.pool}` needs {_gib(gpu.peak_bytes)} of {_gib(gpu.usable_bytes)} in "
            f"`{gpu.peak_stage}`" + (f", most for {held}" if held else ""),
            f"smaller micro-batches, sharding, offload or more GPUs; {all_the_same()}",
        )


def _all_the_same(unrolled: Unrolled, root: Path | None) -> str:
    """What becomes of a run that is started over its budget."""
    refusals = check_run(unrolled.spec, unrolled, root=root).refusals
    return f"{refused_words(refusals)}, even if forced" if refusals else FORCED


def _starved(spec: LoopSpec, gpu: GpuEstimate, all_the_same: str) -> Diagnostic:
    """An engine that cannot start, though everything else has room."""
    return warning(
        "memory.over_budget",
        f"hardware.pools.{gpu.pool}" if gpu.pool in spec.hardware.pools else "hardware",
        f"in the pool `{gpu.pool}` {gpu.reason}",
        f"give the engine more memory, generate shorter texts, or use more GPUs; {all_the_same}",
    )


def models_are_known(root: Path | None, prediction: Estimate) -> Iterator[Diagnostic]:
    """The size of every model is known, so that memory and time can be predicted."""
    for one in prediction.unknown:
        if not one.found:  # no model is drawn yet: told as such
            continue
        if root is None and "/" not in one.found:  # a folder that nobody could look into
            continue
        others = [f"`{node}`" for node in one.nodes if node != one.node]
        also = f" and {', '.join(others)}" if others else ""
        yield warning(
            "memory.unknown",
            f"nodes.{one.node}.{one.field}",
            f"the size of the model of `{one.node}`{also} is not known, so neither are memory and "
            f"time of what uses it: {one.reason}",
            unknown_hint(one),
            *_instead(one),
        )
    for guess in prediction.guessed:
        yield notice(
            "memory.guessed",
            f"nodes.{guess.node}.{guess.field}",
            f"memory and time of `{guess.node}` are guessed: {guess.reason}",
            "measure the first steps before a long run",
        )


def _instead(unknown: UnknownModel) -> Iterator[Fix]:
    """The known model that was meant, where a letter or two differ."""
    if unknown.field != "model.path":
        return
    for name in unknown.suggestions[:1]:
        if likeness(unknown.found, name) >= LIKELY:
            path = f"nodes.{unknown.node}.{unknown.field}"
            yield Fix.set(f"Use {name}", path, name)


def prompts_leave_room(unrolled: Unrolled, root: Path | None) -> Iterator[Diagnostic]:
    """The longest prompt and what is written after it fit into the model's positions."""
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
            path, room = f"nodes.{node}.rollout.max_new_tokens", most - prompt
            yield warning(
                "numbers.too_long",
                f"nodes.{node}.rollout.max_new_tokens",
                f"a prompt of {prompt} tokens (the longest known) and `max_new_tokens: "
                f"{rollout.max_new_tokens}` exceed the context of {most} tokens of the model of "
                f"`{node}`",
                "lower `max_new_tokens`, use a model with a longer context, or remove long rows",
                *([Fix.set(f"Set it to {room}", path, room)] if room > 0 else []),
            )


def steps_have_a_size(
    unrolled: Unrolled, root: Path | None, prediction: Estimate
) -> Iterator[Diagnostic]:
    """A step takes no more rows than there are, and no working day."""
    spec = unrolled.spec
    for name, node in spec.nodes.items():
        if not isinstance(node, DatasetNode) or node.rows_per_step is None:
            continue
        rows = rows_of(node, root)
        if rows and node.rows_per_step > rows:
            path = f"nodes.{name}.rows_per_step"
            yield warning(
                "numbers.large_step",
                f"nodes.{name}.rows_per_step",
                f"a step takes {node.rows_per_step:,} rows, but `{name}` has {rows:,}: rows repeat "
                "within a step",
                "use at most as many rows as there are",
                Fix.set(f"Set it to {rows:,}", path, rows),
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
