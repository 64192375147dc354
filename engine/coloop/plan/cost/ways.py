"""Ways to make a loop fit that does not, each by itself, smallest change first.

Removing locks, more memory or larger GPUs do not change what is learned. Shorter texts and adapters
do, and are only suggested.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Literal

from coloop.plan.cost.relaxing import LEAST_GAIN_BYTES, FitChange, value_at, with_changes
from coloop.plan.cost.solving import Solution, Solved, solve, solved
from coloop.spec import presets
from coloop.spec.base import title_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import weights_groups
from coloop.spec.model import PretrainedModel
from coloop.spec.solvable import SECTIONS, is_solvable

Touches = Literal["lock", "budget", "hardware", "learning"]
MOST_HARDWARE = 4
HALVINGS = 3
MOST_CLOSER = 4
"""How many ways are listed if none fits."""
ADAPTER = "changes what is learned: its weights are frozen, and two small matrices a layer learn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    touches: Touches
    """What a person has to agree to change."""
    title: str
    reason: str
    unlocks: tuple[str, ...]
    changes: tuple[Solved, ...]
    """All changes from the original loop."""
    solution: Solution
    refusal: str | None = None
    """Why a run would refuse the resulting loop; None: it would not."""

    @property
    def step_seconds(self) -> float | None:
        """None: it does not fit yet."""
        return self.solution.after.estimate.step_seconds

    @property
    def over_bytes(self) -> int:
        """Bytes by which the worst GPU is still over its limit; 0: it fits."""
        return 0 if self.solution.fits else self.solution.least_over_bytes


Refusal = Callable[[LoopSpec], str | None]
"""Returns why a run would refuse a loop, or None."""


def ways_of(
    spec: LoopSpec,
    failed: Solution,
    locks: Collection[str],
    root: Path | None = None,
    refusal: Refusal = lambda spec: None,
) -> tuple[Way, ...]:
    """Ways to make a loop fit after solving failed; if none fits, those that come closest. A way
    whose loop a run would refuse is dropped if a run accepts the original loop or another way that
    fits. Otherwise it is returned with its `refusal`."""
    if failed.after.estimate.unknown:
        return ()
    search = _Ways(spec, failed, locks, root)
    tried = [
        *search.without_locks(),
        *search.with_more_memory(),
        *search.on_other_hardware([]),
        *search.learning_otherwise(),
    ]
    adapters = list(search.adapters())
    if adapters and not any(way.solution.fits for way in tried):
        tried += search.on_other_hardware(adapters)
    tried = [replace(way, refusal=refusal(way.solution.spec)) for way in tried]
    taken = [way for way in tried if way.refusal is None]
    if any(way.solution.fits for way in taken) or refusal(spec) is None:
        tried = taken
    fitting = [way for way in tried if way.solution.fits]
    if fitting:
        return tuple(fitting)
    least = failed.least_over_bytes - LEAST_GAIN_BYTES
    closer = [way for way in tried if way.over_bytes < least]
    return tuple(sorted(closer, key=lambda way: way.over_bytes)[:MOST_CLOSER])


def _way(
    touches: Touches,
    title: str,
    reason: str,
    solution: Solution,
    asked: Collection[FitChange] = (),
    unlocks: tuple[str, ...] = (),
) -> Way:
    before, after = solution.before, solution.after
    wanted = [solved(change, before, after, None, is_written=True) for change in asked]
    paths = {change.path for change in wanted}
    others = [change for change in solution.changes if change.path not in paths]
    return Way(
        touches=touches,
        title=title,
        reason=reason,
        unlocks=unlocks,
        changes=(*wanted, *others),
        solution=solution,
    )


class _Ways:
    """Ways to make one loop fit, with their solutions."""

    def __init__(
        self, spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
    ) -> None:
        self._spec, self._failed, self._locks, self._root = spec, failed, locks, root
        self._budget = failed.spec.hardware.memory_budget

    def _solve(
        self,
        asked: Collection[FitChange] = (),
        *,
        budget: float | None = None,
        locks: Collection[str] | None = None,
    ) -> Solution | None:
        """Solve the loop with these changes; None if they are invalid."""
        tried = with_changes(self._spec, asked)
        if tried is None:
            return None
        return solve(
            tried,
            budget_fraction=budget or self._budget,
            root=self._root,
            locks=self._locks if locks is None else locks,
        )

    def without_locks(self) -> Iterator[Way]:
        """Remove one lock; if no single one suffices, remove all."""
        held = [path for path in dict.fromkeys(self._locks) if is_solvable(path)]
        is_enough = False
        for path in held:
            solution = self._solve(locks=[lock for lock in held if lock != path])
            if solution is not None and solution.fits:
                is_enough = True
                title, reason = f"Unlock {_short(path)}", _changed(solution, path)
                yield _way("lock", title, reason, solution, unlocks=(path,))
        if len(held) > 1 and not is_enough:
            solution = self._solve(locks=())
            if solution is not None and solution.fits:
                title = f"Remove all {len(held)} locks"
                yield _way("lock", title, _changed(solution), solution, unlocks=tuple(held))

    def with_more_memory(self) -> Iterator[Way]:
        """The smallest budget that fits, in percent: a smaller one never fits where a larger one
        does not."""
        best: Solution | None = None
        too_little, enough = floor(self._budget * 100), 101
        while enough - too_little > 1:
            percent = 100 if best is None else (too_little + enough) // 2
            solution = self._solve(budget=percent / 100)
            if solution is not None and solution.fits:
                best, enough = solution, percent
            elif best is None:
                return
            else:
                too_little = percent
        if best is not None:
            size = max(gpu.usable_bytes for gpu in best.after.estimate.gpus)
            reason = f"{enough}% of each GPU, {size / 2**30:.0f} GiB"
            yield _way("budget", f"Allow {enough}% of the memory", reason, best)

    def on_other_hardware(self, adapters: list[FitChange]) -> Iterator[Way]:
        """The smallest hardware that is enough: larger GPUs, or more of the same; together with
        `adapters` if neither is enough alone."""
        hardware = self._spec.hardware
        name = hardware.preset_name
        if name is None:
            return
        names = " and ".join(adapter.path.split(".")[1] for adapter in adapters)
        here = presets.hardware(name)
        for other in _larger(here, fixed=bool(hardware.pools))[:MOST_HARDWARE]:
            reason = "more memory for the loop"
            moved = FitChange(path="hardware.preset", old=name, new=other.name, reason=reason)
            solution = self._solve([*adapters, moved])
            if solution is None:
                continue
            if adapters:
                title = f"Train an adapter of {names}, on {other.name}"
                yield _way("learning", title, ADAPTER, solution, [*adapters, moved])
            else:
                title = f"Run on {other.name}"
                reason = f"{other.title}: {other.usable_bytes / 2**30:.0f} GiB on each"
                yield _way("hardware", title, reason, solution, [moved])
            if solution.fits:
                return

    def learning_otherwise(self) -> Iterator[Way]:
        """Changes of what is learned, which a person must choose."""
        for writer in self._failed.after.estimate.rollout:
            path = f"nodes.{writer}.rollout.max_new_tokens"
            tokens = value_at(self._spec, path)
            for power in range(1, HALVINGS + 1):
                fewer = tokens // 2**power if isinstance(tokens, int) else 0
                if fewer < 1:
                    break
                asked = FitChange(path=path, old=tokens, new=fewer, reason="shorter texts")
                solution = self._solve([asked])
                if solution is not None and solution.fits:
                    title = f"Generate at most {fewer:,} tokens"
                    reason = f"changes what is learned: texts of {writer} are cut off earlier"
                    yield _way("learning", title, reason, solution, [asked])
                    break
        for asked in self.adapters():
            solution = self._solve([asked])
            if solution is not None:
                title = f"Train an adapter of {asked.path.split('.')[1]}"
                yield _way("learning", title, ADAPTER, solution, [asked])

    def adapters(self) -> Iterator[FitChange]:
        """An adapter for each fully trained group in the pool that does not fit."""
        binding = self._failed.binding
        there = set() if binding is None else {part.node for part in binding.parts}
        for name, group in weights_groups(self._spec).items():
            model, path = getattr(self._spec.nodes[name], "model", None), f"nodes.{name}.model.lora"
            is_whole = isinstance(model, PretrainedModel) and model.lora is None
            if group.trainable and name in there and is_whole:
                reason = "an adapter is trained"
                yield FitChange(path=path, old=None, new={"rank": 16}, reason=reason)


def _larger(here: presets.HardwarePreset, *, fixed: bool) -> list[presets.HardwarePreset]:
    """Presets with more memory, smallest total first. `fixed`: only larger GPUs of the same number.
    Otherwise also more of the same GPU, or larger GPUs with more memory in total."""
    larger = []
    for name in presets.list_hardware():
        other = presets.hardware(name)
        is_alike = other.gpus == here.gpus
        if not fixed:
            is_alike = other.gpus * other.usable_bytes > here.gpus * here.usable_bytes
        is_larger = is_alike and other.usable_bytes > here.usable_bytes
        is_more = other.gpu == here.gpu and other.gpus > here.gpus and not fixed
        if other.gpus and (is_larger or is_more):
            larger.append(other)
    return sorted(larger, key=lambda preset: (preset.gpus * preset.usable_bytes, preset.gpus))


def _short(path: str) -> str:
    """`micro batch of actor` for `nodes.actor.training.micro_batch`; a field that several sections
    have also names its section: `tensor parallel, training, of actor`."""
    _, node, section, name = path.split(".", 3)
    field = SECTIONS[section].model_fields.get(name) if section in SECTIONS else None
    title = (field and field.title) or title_of(name)
    title = title.lower() if title[1:].islower() else title
    return f"{title}, of {node}" if "," in title else f"{title} of {node}"


def _changed(solution: Solution, path: str | None = None) -> str:
    """The new value at a path, or the first new value."""
    moved = [
        change
        for change in solution.changes
        if change.path.startswith("nodes.")
        and change.is_written
        and change.old_value != change.new_value
    ]
    first = next((change for change in moved if change.path == path), moved[0] if moved else None)
    if first is None:
        return "everything else stays as it is"
    return f"{_short(first.path)}: {first.old_value} → {first.new_value}"
