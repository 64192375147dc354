"""What would make a loop fit that does not: each way by itself, the least first.

Taking off a lock changes nothing of what is learned; more memory of the same GPUs nor do larger
ones; shorter texts and adapters do, and are only ever offered.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any, Literal

from coloop.errors import SpecProblem
from coloop.plan.cost.relaxing import LEAST_GAIN_BYTES, FitChange, value_at
from coloop.plan.cost.solving import Solution, Solved, solve
from coloop.spec import presets
from coloop.spec.base import title_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.paths import apply_overrides
from coloop.spec.solvable import SECTIONS, is_solvable

Touches = Literal["lock", "budget", "hardware", "learning"]
MOST_HARDWARE = 4
"""Hardware presets that are tried."""
HALVINGS = 3
MOST_CLOSER = 4
"""Ways that are named where none fits."""
ADAPTER = "changes what is learned: its weights are frozen, and two small matrices a layer learn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to make a loop fit."""

    touches: Touches
    """What it asks of a person."""
    title: str
    reason: str
    unlocks: tuple[str, ...]
    """Locks that go."""
    changes: tuple[Solved, ...]
    """Everything that changes in the loop, from what it says now."""
    step_seconds: float | None
    """None: it does not fit yet."""
    over_bytes: int = 0
    """By how much the worst GPU is still over with it; 0: it fits."""
    refusal: str | None = None
    """Why a run would not take what it leads to; None: it would."""


Refusal = Callable[[LoopSpec], str | None]
"""Why a run would not take a loop; None: it would."""


def ways_of(
    spec: LoopSpec,
    failed: Solution,
    locks: Collection[str],
    root: Path | None = None,
    refusal: Refusal = lambda spec: None,
) -> tuple[Way, ...]:
    """Ways to make a loop fit, where solving failed; where none does, those that come closer, the
    closest first.

    Args:
        refusal: a way that leads to a loop that a run does not take is none, where it takes this
            one or what another way leads to; else the way says so.
    """
    if failed.after.estimate.unknown:
        return ()
    tried: list[tuple[Way, Solution]] = [
        *_without_locks(spec, failed, locks, root),
        *_with_more(spec, failed, locks, root),
        *_on_other_hardware(spec, failed, locks, root),
        *_learning_otherwise(spec, failed, locks, root),
    ]
    if not any(solution.fits for _, solution in tried):
        tried += _both(spec, failed, locks, root)
    tried = [(replace(way, refusal=refusal(found.spec)), found) for way, found in tried]
    taken = [(way, solution) for way, solution in tried if way.refusal is None]
    if any(solution.fits for _, solution in taken) or refusal(spec) is None:
        tried = taken
    fitting = [way for way, solution in tried if solution.fits]
    if fitting:
        return tuple(fitting)
    closer = [
        way for way, _ in tried if way.over_bytes < failed.least_over_bytes - LEAST_GAIN_BYTES
    ]
    return tuple(sorted(closer, key=lambda way: way.over_bytes)[:MOST_CLOSER])


def _budget(failed: Solution) -> float:
    return failed.spec.hardware.memory_budget


def _way(
    touches: Touches,
    title: str,
    reason: str,
    solution: Solution,
    asked: Collection[FitChange] = (),
    unlocks: tuple[str, ...] = (),
) -> tuple[Way, Solution]:
    wanted = tuple(
        Solved(
            path=one.path,
            old=one.old,
            new=one.new,
            old_value=one.old,
            new_value=one.new,
            reason=one.reason,
            seconds=None,
            is_written=True,
        )
        for one in asked
    )
    taken = {one.path for one in wanted}
    changes = tuple(one for one in solution.changes if one.path not in taken)
    return Way(
        touches=touches,
        title=title,
        reason=reason,
        unlocks=unlocks,
        changes=(*wanted, *changes),
        step_seconds=solution.after.estimate.step_seconds,
        over_bytes=0 if solution.fits else solution.least_over_bytes,
    ), solution


def _without_locks(
    spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
) -> Iterator[tuple[Way, Solution]]:
    """One lock fewer; where no one is enough, none at all."""
    held = [path for path in dict.fromkeys(locks) if is_solvable(path)]
    found = False
    for path in held:
        rest = [one for one in held if one != path]
        solution = solve(spec, budget_fraction=_budget(failed), root=root, locks=rest)
        if solution.fits:
            found = True
            yield _way(
                "lock",
                f"Unlock {_short(path)}",
                _changed(solution, path),
                solution,
                unlocks=(path,),
            )
    if len(held) > 1 and not found:
        solution = solve(spec, budget_fraction=_budget(failed), root=root)
        if solution.fits:
            title = f"Remove all {len(held)} locks"
            yield _way("lock", title, _changed(solution), solution, unlocks=tuple(held))


def _with_more(
    spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
) -> Iterator[tuple[Way, Solution]]:
    """The least budget that fits, in percent: less memory never fits where more does not."""
    found: Solution | None = None
    too_little, enough = floor(_budget(failed) * 100), 101
    while enough - too_little > 1:
        percent = 100 if found is None else (too_little + enough) // 2
        solution = solve(spec, budget_fraction=percent / 100, root=root, locks=locks)
        if solution.fits:
            found, enough = solution, percent
        elif found is None:
            return
        else:
            too_little = percent
    if found is not None:
        size = max(gpu.usable_bytes for gpu in found.after.estimate.gpus)
        reason = f"{enough}% of each GPU, {size / 2**30:.0f} GiB"
        yield _way("budget", f"Allow {enough}% of the memory", reason, found)


def _on_other_hardware(
    spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
) -> Iterator[tuple[Way, Solution]]:
    """The smallest hardware that has enough: larger GPUs, or more of the same."""
    name = spec.hardware.preset_name
    if name is None:
        return
    budget, here = _budget(failed), presets.hardware(name)
    for other in _larger(here, fixed=bool(spec.hardware.pools))[:MOST_HARDWARE]:
        asked = _other_hardware(name, other)
        tried = apply_overrides(spec, {asked.path: asked.new})
        solution = solve(tried, budget_fraction=budget, root=root, locks=locks)
        yield _way("hardware", f"Run on {other.name}", _memory_of(other), solution, [asked])
        if solution.fits:
            return


def _other_hardware(name: str, other: presets.HardwarePreset) -> FitChange:
    return FitChange(
        path="hardware.preset", old=name, new=other.name, reason="more memory for the loop"
    )


def _memory_of(other: presets.HardwarePreset) -> str:
    return f"{other.title}: {other.usable_bytes / 2**30:.0f} GiB on each"


def _larger(here: presets.HardwarePreset, *, fixed: bool) -> list[presets.HardwarePreset]:
    """Presets with more memory, the least first: on each GPU, or where pools leave the number of
    GPUs open also in all."""
    found = []
    for name in presets.list_hardware():
        other = presets.hardware(name)
        is_alike = other.gpus == here.gpus
        if not fixed:
            is_alike = other.gpus * other.usable_bytes > here.gpus * here.usable_bytes
        is_larger = is_alike and other.usable_bytes > here.usable_bytes
        is_more = other.gpu == here.gpu and other.gpus > here.gpus and not fixed
        if other.gpus and (is_larger or is_more):
            found.append(other)
    return sorted(found, key=lambda one: (one.gpus * one.usable_bytes, one.gpus))


def _learning_otherwise(
    spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
) -> Iterator[tuple[Way, Solution]]:
    """What a person may decide to learn otherwise."""
    budget = _budget(failed)
    for writer in failed.after.estimate.rollout:
        path = f"nodes.{writer}.rollout.max_new_tokens"
        tokens = value_at(spec, path)
        for power in range(1, HALVINGS + 1):
            fewer = tokens // 2**power if isinstance(tokens, int) else 0
            if fewer < 1:
                break
            asked = FitChange(path=path, old=tokens, new=fewer, reason="shorter texts")
            solution = _tried(spec, [asked], budget, locks, root)
            if solution is not None and solution.fits:
                yield _way(
                    "learning",
                    f"Generate at most {fewer:,} tokens",
                    f"changes what is learned: texts of {writer} are cut off earlier",
                    solution,
                    [asked],
                )
                break
    for asked in _adapters(spec, failed):
        name = asked.path.split(".")[1]
        solution = _tried(spec, [asked], budget, locks, root)
        if solution is not None:
            yield _way("learning", f"Train an adapter of {name}", ADAPTER, solution, [asked])


def _both(
    spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
) -> Iterator[tuple[Way, Solution]]:
    """Adapters of all that learn, on other hardware: where neither is enough by itself."""
    adapters, name = list(_adapters(spec, failed)), spec.hardware.preset_name
    if not adapters or name is None:
        return
    names = " and ".join(one.path.split(".")[1] for one in adapters)
    here, budget = presets.hardware(name), _budget(failed)
    for other in _larger(here, fixed=bool(spec.hardware.pools))[:MOST_HARDWARE]:
        asked = [*adapters, _other_hardware(name, other)]
        solution = _tried(spec, asked, budget, locks, root)
        if solution is not None:
            title = f"Train an adapter of {names}, on {other.name}"
            yield _way("learning", title, ADAPTER, solution, asked)
            if solution.fits:
                return


def _adapters(spec: LoopSpec, failed: Solution) -> Iterator[FitChange]:
    """An adapter for each group that learns all its weights in the pool that is over."""
    binding = failed.binding
    there = set() if binding is None else {part.node for part in binding.parts}
    for name, group in weights_groups(spec).items():
        model = getattr(spec.nodes[name], "model", None)
        if group.trainable and name in there and getattr(model, "type", None) == "pretrained":
            path = f"nodes.{name}.model.lora"
            if value_at(spec, path) is None:
                yield FitChange(
                    path=path, old=None, new={"rank": 16}, reason="an adapter is trained"
                )


def _tried(
    spec: LoopSpec,
    asked: list[FitChange],
    budget: float,
    locks: Collection[str],
    root: Path | None,
) -> Solution | None:
    changes: dict[str, Any] = {one.path: one.new for one in asked}
    try:
        tried = apply_overrides(spec, changes)
    except SpecProblem:
        return None
    return solve(tried, budget_fraction=budget, root=root, locks=locks)


def _short(path: str) -> str:
    """`micro batch of actor` of `nodes.actor.training.micro_batch`; what several sections of a node
    have says in which it is: `tensor parallel, training, of actor`."""
    _, node, section, name = path.split(".", 3)
    field = SECTIONS[section].model_fields.get(name) if section in SECTIONS else None
    title = (field and field.title) or title_of(name)
    title = title.lower() if title[1:].islower() else title
    return f"{title}, of {node}" if "," in title else f"{title} of {node}"


def _changed(solution: Solution, path: str | None = None) -> str:
    """What a solution writes at a path, else the first of what it writes."""
    moved = [
        one
        for one in solution.changes
        if one.path.startswith("nodes.") and one.is_written and one.old_value != one.new_value
    ]
    first = next((one for one in moved if one.path == path), moved[0] if moved else None)
    if first is None:
        return "everything else stays as it is"
    return f"{_short(first.path)}: {first.old_value} → {first.new_value}"
