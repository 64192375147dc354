"""Ways to make a loop fit that does not, each by itself, smallest change first.

Removing locks, more memory, engines on their own GPUs, larger or more GPUs do not change what is
learned. Shorter texts, adapters and fewer bits do, and are only suggested.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import islice
from math import floor
from pathlib import Path
from typing import Literal

from coloop.plan.cost.placing import as_changes, engines_apart
from coloop.plan.cost.relaxing import LEAST_GAIN_BYTES, FitChange, value_at, with_changes
from coloop.plan.cost.solving import Solution, Solved, solve, solved
from coloop.spec import presets
from coloop.spec.base import title_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, weights_groups, writing_pools
from coloop.spec.lean import record
from coloop.spec.model import PretrainedModel
from coloop.spec.solvable import SECTIONS, is_solvable

Touches = Literal["lock", "budget", "hardware", "learning"]
MOST_HARDWARE = 6
WORTH_TRYING = 0.7
"""Share of the lacking memory that larger GPUs must add to be tried."""
GPUS_PER_NODE = 8
"""GPUs of one machine before more machines are tried."""
HALVINGS = 3
MOST_SPLITS = 3
"""Divisions of the GPUs into two pools that are tried."""
DEGREES = (2, 4, 8)
"""GPUs over which an engine is tried."""
MOST_CLOSER = 4
"""How many ways are listed if none fits."""
BITS = "changes what is computed: weights are rounded to fewer bits"
ADAPTER = "changes what is learned: its weights are frozen, and two small matrices a layer learn"


@record
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
        *search.on_two_pools(),
        *search.with_wider_engines([]),
        *search.in_host_memory(),
        *search.on_other_hardware([]),
        *search.learning_otherwise(),
        *search.in_fewer_bits(),
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
        names = " and ".join(adapter.path.split(".")[1] for adapter in adapters)
        for moved, other in self._hardware():
            solution = self._solve([*adapters, *moved])
            if solution is None:
                continue
            if adapters:
                title = f"Train an adapter of {names}, on {other.name}"
                yield _way("learning", title, ADAPTER, solution, [*adapters, *moved])
            else:
                title = f"Run on {other.name}"
                reason = f"{other.title}: {other.usable_bytes / 2**30:.0f} GiB on each"
                yield _way("hardware", title, reason, solution, moved)
            if solution.fits:
                return

    def _hardware(self) -> Iterator[tuple[list[FitChange], presets.HardwarePreset]]:
        """Changes to hardware with more memory; of a loop with its own GPUs, to more of them."""
        hardware, reason = self._spec.hardware, "more memory for the loop"
        if hardware.figures is not None and hardware.gpu is None:
            return  # the figures are those of this GPU
        if (name := hardware.preset_name) is not None:
            here = presets.hardware(name)
            larger = _larger(here, fixed=bool(hardware.pools))
            lacking = self._failed.least_over_bytes * WORTH_TRYING
            for other in [preset for preset in larger if _adds(here, preset, lacking)][
                :MOST_HARDWARE
            ]:
                change = FitChange(path="hardware.preset", old=name, new=other.name, reason=reason)
                yield [change], other
        elif hardware.gpu is not None and not hardware.pools:
            nodes, each = hardware.nodes or 1, hardware.gpus_per_node or 1
            for _ in range(MOST_HARDWARE):
                nodes, each = (nodes, each * 2) if each * 2 <= GPUS_PER_NODE else (nodes * 2, each)
                wanted = {"nodes": nodes, "gpus_per_node": each}
                changes = [
                    FitChange(
                        path=f"hardware.{key}", old=getattr(hardware, key), new=new, reason=reason
                    )
                    for key, new in wanted.items()
                    if getattr(hardware, key) != new
                ]
                moved = hardware.model_copy(update=wanted)
                yield changes, presets.hardware_of(moved)

    def on_two_pools(self) -> Iterator[Way]:
        """Engines on GPUs of their own, where nothing else takes turns with them."""
        spec = self._spec
        gpus = presets.hardware_of(spec.hardware).gpus
        groups = tuple(weights_groups(spec).values())
        if spec.hardware.pools or gpus < 2 or not self._writers(groups):
            return
        for split in islice(engines_apart(spec, groups, gpus), MOST_SPLITS):
            asked = list(as_changes(spec, split))
            solution = self._solve(asked)
            if solution is not None and solution.fits:
                sizes = [pool["gpus"] for pool in split["hardware.pools"].values()]
                title = f"Generate on {sizes[1]} of the {gpus} GPUs, learn on the others"
                reason = "two pools: weights that learn and engines are not on the same GPUs"
                yield _way("hardware", title, reason, solution, asked)
                return

    def _writers(self, groups: Collection[WeightsGroup]) -> list[str]:
        """Nodes that generate with weights that learn."""
        return [
            writer
            for group in groups
            if group.trainable
            for writers in writing_pools(self._spec, group).values()
            for writer in writers
        ]

    def in_host_memory(self) -> Iterator[Way]:
        """Optimizer states in host memory, if that is not enough with engines over several GPUs."""
        asked = [
            FitChange(
                path=f"nodes.{name}.training.offload",
                old=value_at(self._spec, f"nodes.{name}.training.offload"),
                new="optimizer",
                reason="optimizer states are offloaded to host memory",
            )
            for name in self._groups_there()
        ]
        solution = self._solve(asked) if asked else None
        if solution is not None and solution.fits:
            title, reason = "Offload optimizer states to host memory", "a slower optimizer step"
            yield _way("hardware", title, reason, solution, asked)
        elif asked:
            yield from self.with_wider_engines(asked)

    def with_wider_engines(self, offloaded: list[FitChange]) -> Iterator[Way]:
        """Engines over several GPUs, each with a part of the weights; together with `offloaded`
        optimizer states."""
        each = presets.hardware_of(self._spec.hardware).gpus_per_node
        writers = list(self._failed.after.caches_of_parts)
        for degree in DEGREES:
            asked = [
                FitChange(
                    path=f"nodes.{writer}.rollout.tensor_parallel",
                    old=value_at(self._spec, f"nodes.{writer}.rollout.tensor_parallel"),
                    new=degree,
                    reason="a part of the weights on each GPU",
                )
                for writer in writers
            ]
            solution = self._solve([*asked, *offloaded]) if asked and degree <= each else None
            if solution is not None and solution.fits:
                title = f"Spread each engine over {degree} GPUs"
                title += ", optimizer states in host memory" if offloaded else ""
                reason = "tensor parallelism of generation"
                yield _way("hardware", title, reason, solution, [*asked, *offloaded])
                return

    def in_fewer_bits(self) -> Iterator[Way]:
        """Base weights of adapters in 4 bits; of full training, products and the engine's copy in
        fp8."""
        for name in self._groups_there():
            model = getattr(self._spec.nodes[name], "model", None)
            if not isinstance(model, PretrainedModel) or model.quantization is not None:
                continue
            if model.lora is not None:
                path, new, title = f"nodes.{name}.model.quantization", "nf4", "4-bit base weights"
            else:
                path, new, title = f"nodes.{name}.training.dtype", "fp8", "fp8 products and engine"
            old = value_at(self._spec, path)
            if old == new:
                continue
            asked = FitChange(path=path, old=old, new=new, reason="fewer bits")
            solution = self._solve([asked])
            if solution is not None:
                yield _way("learning", f"{title} of {name}", BITS, solution, [asked])

    def learning_otherwise(self) -> Iterator[Way]:
        """Changes of what is learned, which a person must choose."""
        for writer in self._failed.after.caches_of_parts:
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
        for name in self._groups_there():
            model, path = getattr(self._spec.nodes[name], "model", None), f"nodes.{name}.model.lora"
            if isinstance(model, PretrainedModel) and model.lora is None:
                reason = "an adapter is trained"
                yield FitChange(path=path, old=None, new={"rank": 16}, reason=reason)

    def _groups_there(self) -> list[str]:
        """Groups that learn in the pool that does not fit."""
        binding = self._failed.binding
        there = set() if binding is None else {part.node for part in binding.parts}
        groups = weights_groups(self._spec).items()
        return [name for name, group in groups if group.trainable and name in there]


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


def _adds(here: presets.HardwarePreset, other: presets.HardwarePreset, lacking: float) -> bool:
    """Whether hardware with as many GPUs has so much more memory on each; others may always do."""
    is_alike = other.gpus == here.gpus
    return not is_alike or other.usable_bytes - here.usable_bytes >= lacking


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
