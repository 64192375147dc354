"""Placement of a loop on its GPUs: the nodes and GPUs of each pool, and the backend of each
learner.

Estimates a limited number of placements with settings left to the compiler, and takes the fastest
one that fits and that a run accepts. References and snapshots stay beside the weights that they
follow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

from coloop.errors import ColoopError
from coloop.plan.cost.estimator import explain
from coloop.plan.cost.relaxing import FitChange, Prices, most_over, value_at
from coloop.plan.cost.report import Explanation
from coloop.plan.unrolled import Unrolled
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import (
    DEFAULT_POOL,
    WeightsGroup,
    holding_pool,
    rollout_of,
    weights_groups,
    writing_pools,
)
from coloop.spec.lean import record
from coloop.spec.model import SnapshotModel
from coloop.spec.nodes import model_of
from coloop.spec.paths import apply_overrides
from coloop.spec.training import Backend

MOST_TRIES = 160
MOST_POOLS = 3
LEAST_GAIN = 0.01
"""Share of a step that another placement must save to be suggested."""
ENGINES = "writing"
"""Name of the pool for engines that do not share one with their weights group."""


@record
class Home:
    pool: str
    gpus: int
    first: int
    """Its first GPU, counted over all pools."""
    nodes: tuple[str, ...]
    """Owners of the weights that are held there."""
    writers: tuple[str, ...]


@record
class Placement:
    homes: tuple[Home, ...]
    step_seconds: float | None
    """None: it does not fit, or a model is unknown."""
    verbs: dict[str, float]
    """Seconds of a step by verb: `generate`, `learn`, `sync`, ..."""
    fits: bool
    peak_bytes: int | None
    """Memory of the fullest GPU; None: a model is unknown."""
    over_bytes: int
    text: str


@record
class Placing:
    """The loop's own placement and the suggested one."""

    yours: Placement
    suggested: Placement | None
    """None if nothing faster was found."""
    changes: tuple[FitChange, ...]
    """Turns the loop into the suggestion; a `new` of None removes a value."""
    reason: str
    tried: int
    seconds: float


def place(
    spec: LoopSpec,
    *,
    root: Path | None = None,
    refusal: Callable[[LoopSpec], str | None] = lambda spec: None,
) -> Placing:
    """The fastest placement found. `refusal`: why a run would refuse a loop; called for the best
    ones in order."""
    start = perf_counter()
    unrolled = Unrolled(spec)
    now = explain(spec, unrolled, root=root)
    yours = _placement(spec, now)
    gpus = unrolled.settings(root).survey.machine.preset.gpus
    groups = tuple(weights_groups(spec).values())
    fitting: list[tuple[float, int, dict[str, Any]]] = []
    tried = 0
    for changes in islice(_candidates(spec, groups, gpus), MOST_TRIES):
        tried += 1
        try:
            other = apply_overrides(spec, changes)
            cost = explain(other, Unrolled(other, unrolled.lineages, unrolled.tables), root=root)
        except ColoopError:
            continue
        if cost.estimate.fits:
            fitting.append((cost.step_of_parts, tried, changes))
    suggested, taken, reason = None, dict[str, Any](), _why_none(now, gpus, tried)
    for _, _, changes in sorted(fitting, key=lambda candidate: candidate[:2]):
        other = apply_overrides(spec, changes)
        cost = explain(other, Unrolled(other, unrolled.lineages, unrolled.tables), root=root)
        gain = now.step_of_parts - cost.step_of_parts
        if yours.fits and gain < LEAST_GAIN * now.step_of_parts:
            break
        if refusal(other) is None:
            suggested, taken = _placement(other, cost), changes
            reason = _reason(yours, suggested)
            break
    return Placing(
        yours=yours,
        suggested=suggested,
        changes=tuple(as_changes(spec, taken)),
        reason=reason,
        tried=tried,
        seconds=perf_counter() - start,
    )


def _why_none(now: Explanation, gpus: int, tried: int) -> str:
    if now.estimate.unknown:
        return f"the model of {now.estimate.unknown[0].node} is not known"
    if not gpus:
        return "without GPUs the compiler chooses the processes itself"
    if not tried:
        return "there is only one way to place one set of weights on one GPU"
    if not now.estimate.fits:
        return "no placement that was tried fits with these settings"
    return "no other placement that was tried fits and is faster"


def _candidates(
    spec: LoopSpec, groups: Sequence[WeightsGroup], gpus: int
) -> Iterator[dict[str, Any]]:
    """Placements as changes of the loop: one shared pool first, then two pools, then more."""
    if gpus < 1 or not groups:
        return
    units = _units(spec, groups)
    yield _changes(spec, groups, {}, {})
    if gpus < 2:
        return
    writers = [group.name for group in groups if group.trainable and writing_pools(spec, group)]
    for count in range(2, min(MOST_POOLS, len(units), gpus) + 1):
        for blocks in _partitions(units, count):
            for sizes in _splits(gpus, count):
                yield _changes(spec, groups, _pools(blocks, sizes), {})
        if count == 2 and writers:
            yield from engines_apart(spec, groups, gpus)
    if len(units) == 1 and writers:
        yield from engines_apart(spec, groups, gpus)


def engines_apart(
    spec: LoopSpec, groups: Sequence[WeightsGroup], gpus: int
) -> Iterator[dict[str, Any]]:
    """Placements with all weights groups in one pool and all engines in another, as changes of a
    loop."""
    names = tuple(group.name for group in groups)
    for learning, writing in _splits(gpus, 2):
        yield _changes(spec, groups, {DEFAULT_POOL: (learning, names)}, {ENGINES: writing})


def _units(spec: LoopSpec, groups: Sequence[WeightsGroup]) -> list[tuple[str, ...]]:
    """Groups that move together: weights that follow another's stay beside them."""
    units: dict[str, list[str]] = {}
    for group in groups:
        model = model_of(spec.nodes[group.name])
        leader = model.of if isinstance(model, SnapshotModel) else group.name
        known = any(other.name == leader for other in groups)
        units.setdefault(leader if known else group.name, []).append(group.name)
    return [tuple(names) for names in units.values()]


def _partitions(
    units: Sequence[tuple[str, ...]], count: int
) -> Iterator[list[tuple[tuple[str, ...], ...]]]:
    """Ways to divide units into this many blocks."""
    if count == 1:
        yield [tuple(units)]
        return
    if len(units) < count:
        return
    first, rest = units[0], units[1:]
    for size in range(len(rest) - count + 2):
        for chosen in combinations(range(len(rest)), size):
            block = (first, *(rest[index] for index in chosen))
            others = [unit for index, unit in enumerate(rest) if index not in chosen]
            for more in _partitions(others, count - 1):
                yield [block, *more]


def _splits(gpus: int, count: int) -> Iterator[tuple[int, ...]]:
    """Ways to divide GPUs, in eighths of the total if there are many; the most even first."""
    step = max(gpus // 8, 1)
    splits = [
        (*(b - a for a, b in zip((0, *cuts), cuts, strict=False)), gpus - cuts[-1])
        for cuts in combinations(range(step, gpus, step), count - 1)
    ]
    yield from sorted(splits, key=lambda sizes: (max(sizes) - min(sizes), sizes))


def _pools(
    blocks: Sequence[tuple[tuple[str, ...], ...]], sizes: Sequence[int]
) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {
        block[0][0]: (size, tuple(name for unit in block for name in unit))
        for block, size in zip(blocks, sizes, strict=True)
    }


def _changes(
    spec: LoopSpec,
    groups: Sequence[WeightsGroup],
    pools: Mapping[str, tuple[int, tuple[str, ...]]],
    engines: Mapping[str, int],
) -> dict[str, Any]:
    """Changes that give the loop this placement; without pools all take turns on all GPUs."""
    sizes = {name: {"gpus": size} for name, (size, _) in pools.items()}
    sizes |= {name: {"gpus": size} for name, size in engines.items()}
    changes: dict[str, Any] = {"hardware.pools": sizes}
    home = {name: pool for pool, (_, names) in pools.items() for name in names}
    writing = next(iter(engines), None)
    for group in groups:
        for member in group.members:
            changes[f"nodes.{member}.pool"] = home.get(group.name)
            if rollout_of(spec, member) is not None:
                changes[f"nodes.{member}.rollout.pool"] = writing
    return changes


def as_changes(spec: LoopSpec, changes: Mapping[str, Any]) -> Iterator[FitChange]:
    """What a placement changes in a loop."""
    old_pools = {
        name: {"gpus": pool.gpus} if pool.gpus else {"workers": pool.workers}
        for name, pool in spec.hardware.pools.items()
    }
    for path, new in changes.items():
        old = old_pools if path == "hardware.pools" else value_at(spec, path)
        if old != new:
            yield FitChange(path=path, old=old or None, new=new or None, reason="")


def _peak(cost: Explanation) -> int | None:
    peaks = [gpu.peak_bytes for gpu in cost.estimate.gpus if gpu.peak_bytes is not None]
    return max(peaks) if peaks and len(peaks) == len(cost.estimate.gpus) else None


def _placement(spec: LoopSpec, cost: Explanation) -> Placement:
    sizes: dict[str, int] = {}
    for gpu in cost.estimate.gpus:
        sizes[gpu.pool] = sizes.get(gpu.pool, 0) + 1
    groups = weights_groups(spec).values()
    main = next(iter(sizes), DEFAULT_POOL)
    homes, first = [], 0
    for pool, size in sizes.items():
        homes.append(
            Home(
                pool=pool,
                gpus=size,
                first=first,
                nodes=tuple(
                    group.name
                    for group in groups
                    if _known(holding_pool(spec, group), sizes, main) == pool
                ),
                writers=tuple(
                    writer
                    for group in groups
                    for where, writers in writing_pools(spec, group).items()
                    if _known(where, sizes, main) == pool
                    for writer in writers
                ),
            )
        )
        first += size
    estimate = cost.estimate
    return Placement(
        homes=tuple(homes),
        step_seconds=estimate.step_seconds,
        verbs=_verbs(cost),
        fits=estimate.fits,
        peak_bytes=_peak(cost),
        over_bytes=most_over(cost),
        text=_text(homes),
    )


def _known(pool: str, sizes: Mapping[str, int], main: str) -> str:
    return pool if pool in sizes else main


def _verbs(cost: Explanation) -> dict[str, float]:
    phase = next((estimated for estimated in cost.phases if estimated.name == cost.main), None)
    seconds: dict[str, float] = {}
    for stage in phase.stages if phase is not None else ():
        verb = stage.rpartition(".")[2]
        seconds[verb] = seconds.get(verb, 0.0) + cost.stage_of_parts.get(stage, 0.0)
    return seconds


def _text(homes: Sequence[Home]) -> str:
    if len(homes) == 1:
        size = homes[0].gpus
        return f"all take turns on {size} GPUs" if size > 1 else "all take turns"
    return ", ".join(f"{_who(home)} on {_range(home)}" for home in homes)


def _who(home: Home) -> str:
    if home.nodes:
        return " and ".join(home.nodes)
    return f"generation of {' and '.join(home.writers)}" if home.writers else "nobody"


def _range(home: Home) -> str:
    last = home.first + home.gpus - 1
    return f"GPU {home.first}" if home.gpus == 1 else f"GPU {home.first}-{last}"


def _reason(yours: Placement, suggested: Placement) -> str:
    """What becomes faster and what becomes slower."""
    moved = {
        verb: suggested.verbs.get(verb, 0.0) - yours.verbs.get(verb, 0.0)
        for verb in dict.fromkeys((*yours.verbs, *suggested.verbs))
    }
    gains = [
        f"{verb} {'+' if gain > 0 else '−'}{abs(gain):.1f} s"
        for verb, gain in sorted(moved.items(), key=lambda item: item[1])
        if abs(gain) >= 0.05
    ]
    shown = f": {', '.join(gains)}" if gains else ""
    if len(suggested.homes) > 1 and yours.text != suggested.text:
        return f"{suggested.text} work side by side{shown}"
    return f"{suggested.text}{shown}"


# The recommended backend of a learner, and what the others would cost.
#
# The recommendation is the compiler's choice for an open backend. All others have the same kind of
# estimate, and those that a run would refuse have the reason.


@record
class BackendOption:
    backend: Backend
    step_seconds: float | None
    """None if a run would refuse it, or without an estimate."""
    fits: bool
    problem: str | None
    """Why a run would refuse it; None: it would not."""


@record
class BackendAdvice:
    """A learner's backend and the recommended one."""

    node: str
    backend: Backend
    """As in the loop, or else as compiled."""
    is_said: bool
    advised: Backend
    reason: str
    options: tuple[BackendOption, ...]


def advise_backends(
    spec: LoopSpec,
    *,
    root: Path | None = None,
    refusal: Callable[[LoopSpec], str | None] = lambda spec: None,
) -> tuple[BackendAdvice, ...]:
    """Advice for every learner. `refusal`: why a run would refuse a loop."""
    prices = Prices(spec, root)
    groups = [group.name for group in weights_groups(spec).values() if group.trainable]
    return tuple(_advice(spec, group, prices, refusal) for group in groups)


def _advice(
    spec: LoopSpec, group: str, prices: Prices, refusal: Callable[[LoopSpec], str | None]
) -> BackendAdvice:
    path = f"nodes.{group}.training.backend"
    written = value_at(spec, path)
    left_open = spec if written is None else apply_overrides(spec, {path: None})
    chosen = prices.of(left_open)
    decision = next((choice for choice in chosen.decisions if choice.path == path), None)
    advised: Backend = decision.value if decision is not None else "single"
    reason = decision.reason if decision is not None else "nothing else is needed"
    size = chosen.estimate.parameters.get(group)
    weights = (
        f"{(f'{size / 1e9:.1f} B' if size >= 1e9 else f'{size / 1e6:.1f} M')} weights; "
        if size
        else ""
    )
    return BackendAdvice(
        node=group,
        backend=written or advised,
        is_said=written is not None,
        advised=advised,
        reason=f"{weights}{reason}",
        options=tuple(_options(spec, path, prices, refusal)),
    )


def _options(
    spec: LoopSpec, path: str, prices: Prices, refusal: Callable[[LoopSpec], str | None]
) -> Iterator[BackendOption]:
    for backend in get_args(Backend):
        try:
            tried = apply_overrides(spec, {path: backend})
            cost = prices.of(tried).estimate
        except ColoopError as error:
            yield BackendOption(backend=backend, step_seconds=None, fits=False, problem=str(error))
            continue
        problem = refusal(tried)
        seconds = cost.step_seconds if problem is None else None
        yield BackendOption(backend=backend, step_seconds=seconds, fits=cost.fits, problem=problem)
