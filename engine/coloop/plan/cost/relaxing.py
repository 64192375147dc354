"""Changes settings to save memory until a loop fits, cheapest first.

For the stage at the peak of the GPU that is most over its limit, takes the next relaxation that
helps: fewer rows at once, gradient checkpointing, a chunked loss, wider engines, sharding,
offloading. What a loop
learns never changes; adapters instead of full training are left to the user.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import Any

from coloop.errors import SpecProblem
from coloop.plan.cost.estimator import explain
from coloop.plan.cost.report import Explanation, GpuEstimate
from coloop.plan.run_check import check_run, refusals_of
from coloop.plan.settings.engines import engine_degrees
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.unrolled import Unrolled
from coloop.plan.unused import unused_by_backend
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import DEFAULT_POOL, owner_of, training_of, weights_groups
from coloop.spec.lean import record
from coloop.spec.paths import apply_overrides, get_value
from coloop.spec.presets import hardware_of

GIB = 2**30
MOST_CHANGES = 64
LEAST_GAIN_BYTES = 2**20
LITTLE = 0.05
"""Share of a step that a relaxation may cost before others are compared."""


@record
class FitChange:
    """One setting changed to fit a budget."""

    path: str
    old: Any
    new: Any
    """None: left to the compiler."""
    reason: str


class Prices:
    """Estimates of variants of a loop that differ only in execution settings."""

    def __init__(self, spec: LoopSpec, root: Path | None = None) -> None:
        self.unrolled = Unrolled(spec)
        self.root = root
        self.asked = 0
        self._variants: dict[int, Unrolled] = {id(spec): self.unrolled}
        """By the identity of a variant, which its entry keeps alive."""
        self._refusals: dict[int, tuple[Diagnostic, ...]] = {}

    def of(self, spec: LoopSpec) -> Explanation:
        self.asked += 1
        return explain(spec, self._unrolled(spec), root=self.root)

    def _unrolled(self, spec: LoopSpec) -> Unrolled:
        if id(spec) not in self._variants:
            self._variants[id(spec)] = self.unrolled.again(spec)
        return self._variants[id(spec)]

    def refusals(self, spec: LoopSpec) -> tuple[Diagnostic, ...]:
        """Why a run would refuse one variant."""
        unrolled = self._unrolled(spec)
        if id(spec) not in self._refusals:
            self._refusals[id(spec)] = (
                check_run(spec, unrolled, root=self.root).refusals
                if unrolled is self.unrolled
                else refusals_of(spec, unrolled, root=self.root)
            )
        return self._refusals[id(spec)]

    def refusals_of_answer(self, answer: LoopSpec) -> tuple[Diagnostic, ...]:
        """Why a run would refuse the answer: the refusals of the original loop, if it has any, or
        else its own."""
        refusals = self.refusals(answer)
        return (self.refusals(self.unrolled.spec) or refusals) if refusals else ()

    def runs_as_well(self, tried: LoopSpec, spec: LoopSpec) -> bool:
        """Whether a run accepts everything in `tried` that it accepts in `spec`."""
        before = {(refusal.node, refusal.field) for refusal in self.refusals(spec)}
        return all((refusal.node, refusal.field) in before for refusal in self.refusals(tried))


def relax(
    spec: LoopSpec, prices: Prices, locks: Collection[str] = ()
) -> tuple[LoopSpec, list[FitChange], Explanation]:
    """Apply relaxations one by one until the loop fits or none helps; locked settings stay."""
    spec, current, changes = _on_all_gpus(spec, prices.of(spec), prices, locks)
    for _ in range(MOST_CHANGES):
        worst = worst_of(current)
        if current.estimate.fits or current.estimate.unknown or worst is None:
            break
        relaxed = _next(spec, current, worst, prices, locks)
        if relaxed is None:
            break
        change, spec, current = relaxed
        changes.append(change)
    return spec, changes, current


def with_changes(spec: LoopSpec, changes: Collection[FitChange]) -> LoopSpec | None:
    """The loop with the changes; None if they are invalid."""
    if not changes:
        return spec
    try:
        return apply_overrides(spec, {change.path: change.new for change in changes})
    except SpecProblem:
        return None


def is_carried_out(spec: LoopSpec, change: FitChange, explanation: Explanation) -> bool:
    """Whether a run of `spec`, the loop with the change, reads the setting and accepts its value.
    `explanation` is that of the loop before."""
    _, node, section, name = change.path.split(".", 3)
    if section != "training" or change.new is None:
        return True
    training = training_of(spec, node)
    decided = explanation.decided.get(f"nodes.{node}.training.backend")
    backend = training.backend or decided or "single"
    if any(
        finding.field == f"training.{name}"
        for finding in unused_by_backend(node, training, backend)
    ):
        return False
    if name != "tensor_parallel":
        return True
    arch, _ = resolve_architecture(spec, node)
    return arch is not None and gcd(arch.heads, arch.kv_heads) % change.new == 0


def _on_all_gpus(
    spec: LoopSpec, current: Explanation, prices: Prices, locks: Collection[str]
) -> tuple[LoopSpec, Explanation, list[FitChange]]:
    """Let learners that are written to use one GPU of a pool, which a run refuses, use all of them
    where that is faster. Otherwise only a small budget would, and so be faster than a large one."""
    changes = []
    for owner, group in weights_groups(spec).items():
        path, pool = f"nodes.{owner}.training.backend", _pool(spec, owner)
        gpus = sum(gpu.pool == pool for gpu in current.estimate.gpus)
        if not group.trainable or gpus < 2 or path in locks or value_at(spec, path) != "single":
            continue
        change = _sharded(path, gpus)
        tried = with_changes(spec, [change])
        if tried is None or not is_carried_out(tried, change, current):
            continue
        outcome = prices.of(tried)
        is_faster = outcome.step_of_parts < current.step_of_parts
        if is_faster and prices.runs_as_well(tried, spec):
            spec, current = tried, outcome
            changes.append(change)
    return spec, current, changes


def _sharded(path: str, gpus: int) -> FitChange:
    reason = f"weights and states are sharded over {gpus} GPUs"
    return FitChange(path=path, old="single", new="fsdp2", reason=reason)


def _next(
    spec: LoopSpec,
    current: Explanation,
    worst: GpuEstimate,
    prices: Prices,
    locks: Collection[str],
) -> tuple[FitChange, LoopSpec, Explanation] | None:
    """The first relaxation that helps and costs little, or else the cheapest."""
    dear: list[tuple[FitChange, LoopSpec, Explanation]] = []
    for path, new, reason in _values(spec, current, worst):
        old = value_at(spec, path)
        if old == new or path in locks:
            continue
        change = FitChange(path=path, old=old, new=new, reason=reason)
        tried = with_changes(spec, [change])
        if tried is None or not is_carried_out(tried, change, current):
            continue
        outcome = prices.of(tried)
        if not _is_better(outcome, current, worst) or not prices.runs_as_well(tried, spec):
            continue
        relaxed = change, tried, outcome
        if outcome.step_of_parts <= (1 + LITTLE) * current.step_of_parts:
            return relaxed
        dear.append(relaxed)
    return min(dear, key=lambda candidate: candidate[2].step_of_parts, default=None)


def _is_better(outcome: Explanation, current: Explanation, worst: GpuEstimate) -> bool:
    if outcome.estimate.fits:
        return True
    return _distance(outcome, worst.pool) < _distance(current, worst.pool) - LEAST_GAIN_BYTES


def _distance(explanation: Explanation, pool: str) -> float:
    """How far a pool is from fitting: excess bytes plus what an engine's cache lacks."""
    gpus = [gpu for gpu in explanation.estimate.gpus if gpu.pool == pool]
    over = max((over_of(gpu) for gpu in gpus), default=0)
    starved = any(not gpu.fits and over_of(gpu) == 0 for gpu in gpus)
    caches = sum(explanation.caches_of_parts.values())
    return over + (10 * GIB / (1 + caches / 1000) if starved else 0.0)


def worst_of(explanation: Explanation) -> GpuEstimate | None:
    """The GPU that decides: the one most over its limit, or else the fullest."""
    gpus = explanation.estimate.gpus
    return max(
        gpus,
        key=lambda gpu: (not gpu.fits, (gpu.peak_bytes or 0) / max(gpu.usable_bytes, 1)),
        default=None,
    )


def over_of(gpu: GpuEstimate) -> int:
    """Excess bytes on a GPU; 0 if its peak is unknown."""
    return max((gpu.peak_bytes or 0) - gpu.usable_bytes, 0)


def most_over(explanation: Explanation) -> int:
    return max((over_of(gpu) for gpu in explanation.estimate.gpus), default=0)


@record
class BudgetResult:
    """Settings found for a budget."""

    spec: LoopSpec
    changes: tuple[FitChange, ...]
    """Without relaxations if nothing makes the loop fit."""
    before: Explanation
    after: Explanation
    least_over_bytes: int
    """Excess bytes on the worst GPU with all relaxations; 0 if it fits."""
    refusals: tuple[Diagnostic, ...]
    """Why a run would refuse the result, apart from memory."""

    @property
    def fits(self) -> bool:
        return self.after.estimate.fits

    @property
    def over_bytes(self) -> int:
        """Excess bytes on the worst GPU; 0 if only an engine's cache does not fit."""
        return most_over(self.after)

    @property
    def binding(self) -> GpuEstimate | None:
        return worst_of(self.after)


Value = tuple[str, Any, str]
"""Path, value to try, and why it helps."""


def _values(spec: LoopSpec, explanation: Explanation, gpu: GpuEstimate) -> Iterator[Value]:
    """Changes that may lower the peak of a GPU, cheapest first."""
    node, _, verb = gpu.peak_stage.rpartition(".")
    decided = explanation.decided
    if verb == "learn":
        yield from _smaller_updates(spec, f"nodes.{node}.training", decided)
    if verb in ("generate", "score", "evaluate", "sync") or not over_of(gpu):
        yield from _smaller_engines(spec, explanation, gpu, decided)
    others = [n for n, g in weights_groups(spec).items() if g.trainable]
    for owner in sorted(others, key=lambda name: name != node):
        pool = _pool(spec, owner)
        if pool == gpu.pool:
            gpus = sum(gpu.pool == pool for gpu in explanation.estimate.gpus)
            yield from _lighter_states(spec, f"nodes.{owner}.training", gpus)


def _smaller_updates(spec: LoopSpec, path: str, decided: dict[str, Any]) -> Iterator[Value]:
    rows = value_at(spec, f"{path}.micro_batch")
    if isinstance(rows, int) and rows > 1:
        yield f"{path}.micro_batch", rows // 2, "fewer rows at once, more passes"
    if value_at(spec, f"{path}.gradient_checkpointing") in (False, "selective"):
        reason = "activations are recomputed, about 10% slower"
        yield f"{path}.gradient_checkpointing", True, reason
    chunk = value_at(spec, f"{path}.loss_chunk") or decided.get(f"{path}.loss_chunk")
    for fewer in (4096, 1024):
        if not isinstance(chunk, int) or chunk > fewer:
            yield f"{path}.loss_chunk", fewer, f"logits of {fewer} tokens at a time"
    if value_at(spec, f"{path}.reshard_after_forward") is False:
        reason = "gathered weights are freed after each layer"
        yield f"{path}.reshard_after_forward", True, reason


def _smaller_engines(
    spec: LoopSpec, explanation: Explanation, gpu: GpuEstimate, decided: dict[str, Any]
) -> Iterator[Value]:
    for node in explanation.caches_of_parts:
        path = f"nodes.{node}.rollout"
        if pool_of_writer(spec, node) != gpu.pool:
            continue
        share = value_at(spec, f"{path}.gpu_memory_utilization")
        sequences = value_at(spec, f"{path}.max_num_seqs") or decided.get(f"{path}.max_num_seqs")
        if isinstance(share, float) and share > 0.15 and over_of(gpu):
            less = max(round(share - max(over_of(gpu) / gpu.capacity_bytes, 0.02) - 0.005, 2), 0.1)
            reason = "a smaller cache next to everything else in memory"
            yield f"{path}.gpu_memory_utilization", less, reason
        if isinstance(sequences, int) and sequences > 8:
            yield f"{path}.max_num_seqs", sequences // 2, "fewer sequences at once"
        yield from _wider_engines(spec, explanation, node, gpu.pool)


def _wider_engines(
    spec: LoopSpec, explanation: Explanation, node: str, pool: str
) -> Iterator[Value]:
    path = f"nodes.{node}.rollout.tensor_parallel"
    degree = value_at(spec, path) or explanation.decided.get(path, 1)
    gpus = sum(gpu.pool == pool for gpu in explanation.estimate.gpus)
    wider = [other for other in degrees_of(spec, node, gpus) if other > degree]
    if wider:
        yield path, wider[0], "a part of the engine's weights on each of its GPUs"


def pool_of_writer(spec: LoopSpec, node: str) -> str:
    """The pool of a node's rollout engine."""
    named: str | None = value_at(spec, f"nodes.{node}.rollout.pool")
    return named or _pool(spec, node)


def degrees_of(spec: LoopSpec, node: str, gpus: int) -> list[int]:
    """Numbers of GPUs over which the vLLM engine of a node can be spread, in a pool of `gpus`."""
    arch, _ = resolve_architecture(spec, owner_of(spec, node) or node)
    each = hardware_of(spec.hardware).gpus_per_node
    return [] if arch is None or not each else engine_degrees(arch, gpus, each)


def _lighter_states(spec: LoopSpec, path: str, gpus: int) -> Iterator[Value]:
    backend = value_at(spec, f"{path}.backend")
    if backend == "single" and gpus > 1:
        change = _sharded(f"{path}.backend", gpus)
        yield change.path, change.new, change.reason
    if backend == "deepspeed" and value_at(spec, f"{path}.zero_stage") in (0, 1, 2):
        yield f"{path}.zero_stage", 3, "weights are sharded too"
    offload = value_at(spec, f"{path}.offload") or "none"
    if offload == "none":
        yield f"{path}.offload", "optimizer", "optimizer states are offloaded to host memory"
    if offload in ("none", "optimizer"):
        yield f"{path}.offload", "all", "weights are offloaded to host memory as well"
    tensor = value_at(spec, f"{path}.tensor_parallel") or 1
    if isinstance(tensor, int) and tensor * 2 <= min(gpus, 8):
        reason = "each layer is split over GPUs: more communication"
        yield f"{path}.tensor_parallel", tensor * 2, reason


def _pool(spec: LoopSpec, node: str) -> str:
    """The pool of a node's weights; the first pool if the named one does not exist."""
    pools, section = list(spec.hardware.pools), spec.nodes.get(owner_of(spec, node) or node)
    named = section.pool if section is not None else None
    return named if named in pools else next(iter(pools), DEFAULT_POOL)


def value_at(spec: LoopSpec, path: str) -> Any:
    try:
        return get_value(spec, path)
    except SpecProblem:
        return None


def merged(changes: list[FitChange]) -> Iterator[FitChange]:
    """Several changes of one path merged, from the first old value to the last new one."""
    first: dict[str, FitChange] = {}
    for change in changes:
        if change.path in first:
            change = replace(change, old=first[change.path].old)
        first[change.path] = change
    yield from (change for change in first.values() if change.old != change.new)
