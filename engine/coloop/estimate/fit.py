"""Settings under which a loop stays within its memory.

Looks at the GPU that is furthest over, at the stage of its peak, and takes the next relaxation that
helps there, in the order of what it costs: fewer rows at once, gradient checkpointing, a chunked
loss, sharding, what rests in the host's memory, more GPUs for one copy. What a loop learns is never
changed: adapters in place of full training are for people to choose. When everything fits, the
values that were left open are written down.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any

from coloop.errors import SpecProblem
from coloop.estimate.estimator import explain
from coloop.estimate.report import DecisionEstimate, Explanation, GpuEstimate
from coloop.plan.unrolled import Unrolled
from coloop.sizing.machine import Machine, lay_out
from coloop.sizing.processor import processor_here
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of, weights_groups
from coloop.spec.paths import apply_overrides, get_value

GIB = 2**30
MOST_CHANGES = 64
LEAST_GAIN_BYTES = 2**20
PINNED = (
    "gradient_checkpointing",
    "loss_chunk",
    "max_num_seqs",
    "gpu_memory_utilization",
    "zero_stage",
)
"""Open settings that are written down once the loop fits; engines, backends and micro-batches by
tokens stay open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitChange:
    """One setting that was changed."""

    path: str
    old: Any
    new: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The outcome of fitting."""

    spec: LoopSpec
    changes: tuple[FitChange, ...]
    before: Explanation
    after: Explanation

    @property
    def fits(self) -> bool:
        """Whether every GPU fits now."""
        return self.after.estimate.fits

    @property
    def over_bytes(self) -> int:
        """By how much the worst GPU is over; 0 where only an engine finds no room for a cache."""
        return max((_over(gpu) for gpu in self.after.estimate.gpus), default=0)

    @property
    def binding(self) -> GpuEstimate | None:
        """The GPU that decides: the one over, else the fullest."""
        return _worst(self.after)


def fit(
    spec: LoopSpec,
    *,
    budget_gib: float | None = None,
    budget_fraction: float | None = None,
    root: Path | None = None,
) -> Fit:
    """Finds settings that fit into the budget: GiB or a share of each GPU, else the loop's own."""
    unrolled = Unrolled(spec)
    before = explain(spec, unrolled, root=root)
    changes: list[FitChange] = []
    machine = unrolled.settings(root).survey.machine
    fraction = _fraction(machine, budget_gib, budget_fraction)
    if fraction is not None and fraction != spec.hardware.memory_budget:
        change = FitChange(
            path="hardware.memory_budget",
            old=spec.hardware.memory_budget,
            new=fraction,
            reason="the budget that was asked for",
        )
        changes.append(change)
        spec = apply_overrides(spec, {change.path: change.new})
    spec, relaxed, after = _relax(spec, unrolled, root)
    changes += relaxed
    if after.estimate.fits:
        pins = _pins(spec, after)
        pinned = apply_overrides(spec, {pin.path: pin.new for pin in pins})
        checked = explain(pinned, unrolled.again(pinned), root=root)
        if checked.estimate.fits:
            spec, after, changes = pinned, checked, [*changes, *pins]
    return Fit(spec=spec, changes=tuple(_merged(changes)), before=before, after=after)


def _fraction(machine: Machine, gib: float | None, fraction: float | None) -> float | None:
    if fraction is not None:
        return fraction
    if gib is None:
        return None
    visible = min(machine.visible_bytes(pool) for pool in machine.pools.values())
    return min(max(floor(gib * GIB / visible * 1e4) / 1e4, 1e-4), 1.0)


def _relax(
    spec: LoopSpec, unrolled: Unrolled, root: Path | None
) -> tuple[LoopSpec, list[FitChange], Explanation]:
    """Takes one relaxation after the other until everything fits or none helps."""
    changes: list[FitChange] = []
    current = explain(spec, unrolled.again(spec), root=root)
    for _ in range(MOST_CHANGES):
        worst = _worst(current)
        if current.estimate.fits or worst is None:
            break
        for change in _relaxations(spec, current, worst):
            try:
                tried = apply_overrides(spec, {change.path: change.new})
            except SpecProblem:
                continue
            outcome = explain(tried, unrolled.again(tried), root=root)
            if _is_better(outcome, current, worst):
                spec, current = tried, outcome
                changes.append(change)
                break
        else:
            break
    return spec, changes, current


def _is_better(outcome: Explanation, current: Explanation, worst: GpuEstimate) -> bool:
    if outcome.estimate.fits:
        return True
    return _distance(outcome, worst.pool) < _distance(current, worst.pool) - LEAST_GAIN_BYTES


def _distance(explanation: Explanation, pool: str) -> float:
    """How far a pool is from fitting: bytes over, and what a starved engine lacks."""
    gpus = [gpu for gpu in explanation.estimate.gpus if gpu.pool == pool]
    over = max((_over(gpu) for gpu in gpus), default=0)
    starved = any(not gpu.fits and _over(gpu) == 0 for gpu in gpus)
    caches = sum(rollout.kv_cache_tokens for rollout in explanation.estimate.rollout.values())
    return over + (10 * GIB / (1 + caches / 1000) if starved else 0.0)


def _worst(explanation: Explanation) -> GpuEstimate | None:
    gpus = explanation.estimate.gpus
    return max(
        gpus,
        key=lambda gpu: (not gpu.fits, gpu.peak_bytes / max(gpu.usable_bytes, 1)),
        default=None,
    )


def _over(gpu: GpuEstimate) -> int:
    return max(gpu.peak_bytes - gpu.usable_bytes, 0)


# Relaxations


def _relaxations(spec: LoopSpec, explanation: Explanation, gpu: GpuEstimate) -> Iterator[FitChange]:
    """What may help at the peak of a GPU, from cheap to dear."""
    node, _, verb = gpu.peak_stage.rpartition(".")
    decided = {decision.path: decision.value for decision in explanation.decisions}

    def change(path: str, new: Any, reason: str) -> Iterator[FitChange]:
        old = _value(spec, path)
        if new is not None and old != new:
            yield FitChange(path=path, old=old, new=new, reason=reason)

    if verb == "learn":
        yield from _smaller_updates(spec, node, decided, change)
    if verb in ("generate", "score", "evaluate", "sync") or not _over(gpu):
        yield from _smaller_engines(spec, explanation, gpu, decided, change)
    others = [n for n, g in weights_groups(spec).items() if g.trainable]
    for owner in sorted(others, key=lambda name: name != node):
        if _pool(spec, owner) == gpu.pool:
            yield from _lighter_states(spec, explanation, owner, change)


Change = Callable[[str, Any, str], Iterator[FitChange]]


def _smaller_updates(
    spec: LoopSpec, owner: str, decided: dict[str, Any], change: Change
) -> Iterator[FitChange]:
    path = f"nodes.{owner}.training"
    rows = _value(spec, f"{path}.micro_batch")
    if isinstance(rows, int) and rows > 1:
        yield from change(f"{path}.micro_batch", rows // 2, "fewer rows at once, more passes")
    if _value(spec, f"{path}.gradient_checkpointing") in (False, "selective"):
        yield from change(
            f"{path}.gradient_checkpointing",
            True,
            "activations are computed again, about a tenth slower",
        )
    chunk = _value(spec, f"{path}.loss_chunk") or decided.get(f"{path}.loss_chunk")
    for fewer in (4096, 1024):
        if not isinstance(chunk, int) or chunk > fewer:
            reason = f"logits of {fewer} tokens at a time"
            yield from change(f"{path}.loss_chunk", fewer, reason)
    if _value(spec, f"{path}.reshard_after_forward") is False:
        yield from change(
            f"{path}.reshard_after_forward", True, "gathered weights are freed after each layer"
        )


def _smaller_engines(
    spec: LoopSpec,
    explanation: Explanation,
    gpu: GpuEstimate,
    decided: dict[str, Any],
    change: Change,
) -> Iterator[FitChange]:
    for node in explanation.estimate.rollout:
        owner = owner_of(spec, node)
        pool = _value(spec, f"nodes.{node}.rollout.pool") or _pool(spec, owner or node)
        if pool != gpu.pool:
            continue
        path = f"nodes.{node}.rollout"
        share = _value(spec, f"{path}.gpu_memory_utilization")
        sequences = _value(spec, f"{path}.max_num_seqs") or decided.get(f"{path}.max_num_seqs")
        if isinstance(share, float) and share > 0.15 and _over(gpu):
            less = max(round(share - max(_over(gpu) / gpu.capacity_bytes, 0.02) - 0.005, 2), 0.1)
            yield from change(
                f"{path}.gpu_memory_utilization", less, "a smaller cache beside what else is there"
            )
        if isinstance(sequences, int) and sequences > 8:
            yield from change(f"{path}.max_num_seqs", sequences // 2, "fewer sequences at once")
        tensor = _value(spec, f"{path}.tensor_parallel") or decided.get(f"{path}.tensor_parallel")
        most = _gpus_of(explanation, gpu.pool)
        if isinstance(tensor, int) and tensor * 2 <= min(most, 8):
            yield from change(
                f"{path}.tensor_parallel", tensor * 2, "more GPUs share one copy of the weights"
            )


def _lighter_states(
    spec: LoopSpec, explanation: Explanation, owner: str, change: Change
) -> Iterator[FitChange]:
    path = f"nodes.{owner}.training"
    gpus = _gpus_of(explanation, _pool(spec, owner) or "")
    backend = _value(spec, f"{path}.backend")
    if backend == "single" and gpus > 1:
        yield from change(f"{path}.backend", "fsdp2", f"{gpus} GPUs share weights and states")
    if backend == "deepspeed" and _value(spec, f"{path}.zero_stage") in (0, 1, 2):
        yield from change(f"{path}.zero_stage", 3, "weights are sharded too")
    offload = _value(spec, f"{path}.offload") or "none"
    if offload == "none":
        yield from change(
            f"{path}.offload", "optimizer", "optimizer states rest in the host's memory"
        )
    if offload in ("none", "optimizer"):
        yield from change(f"{path}.offload", "all", "weights rest in the host's memory as well")
    tensor = _value(spec, f"{path}.tensor_parallel") or 1
    if isinstance(tensor, int) and tensor * 2 <= min(gpus, 8):
        yield from change(
            f"{path}.tensor_parallel", tensor * 2, "GPUs share one layer: more talk between them"
        )


def _pins(spec: LoopSpec, explanation: Explanation) -> list[FitChange]:
    """Open settings as they were decided."""
    return [
        FitChange(path=decision.path, old=None, new=decision.value, reason=decision.reason)
        for decision in explanation.decisions
        if decision.value is not None and _is_pinned(decision)
    ]


def _is_pinned(decision: DecisionEstimate) -> bool:
    name = decision.path.rpartition(".")[2]
    return name in PINNED or (name == "tensor_parallel" and decision.value > 1)


def _merged(changes: list[FitChange]) -> Iterator[FitChange]:
    """Several changes of one path as one, from the first value to the last."""
    first: dict[str, FitChange] = {}
    for change in changes:
        if change.path in first:
            change = replace(change, old=first[change.path].old)
        first[change.path] = change
    yield from (change for change in first.values() if change.old != change.new)


def _pool(spec: LoopSpec, node: str) -> str | None:
    machine, _ = lay_out(spec, processor_here())
    section = spec.nodes.get(owner_of(spec, node) or node)
    return machine.pool(section.pool if section is not None else None).name


def _gpus_of(explanation: Explanation, pool: str) -> int:
    return sum(gpu.pool == pool for gpu in explanation.estimate.gpus)


def _value(spec: LoopSpec, path: str) -> Any:
    try:
        return get_value(spec, path)
    except SpecProblem:
        return None
