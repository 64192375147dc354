"""Ways to make a loop fit that does not, each by itself, smallest change first.

Removing locks, more memory, engines on their own GPUs, larger or more GPUs do not change what is
learned. Shorter texts, adapters and fewer bits do, and are only suggested. Of the usual ways, those
that are no help here are listed too, with the reason.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import islice
from math import floor
from pathlib import Path
from typing import Literal

from coloop.plan.cost.placing import as_changes, engines_apart
from coloop.plan.cost.relaxing import (
    LEAST_GAIN_BYTES,
    FitChange,
    degrees_of,
    pool_of_writer,
    value_at,
    with_changes,
)
from coloop.plan.cost.solving import Solution, Solved, solve, solved
from coloop.spec import presets
from coloop.spec.base import title_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import WeightsGroup, weights_groups, writing_pools
from coloop.spec.lean import record
from coloop.spec.model import PretrainedModel
from coloop.spec.solvable import SECTIONS, is_solvable

Touches = Literal["lock", "budget", "hardware", "learning"]
Usual = Literal["bits", "adapter", "offload", "pools", "engines", "gpus"]
USUAL: dict[Usual, str] = {
    "bits": "fp8 or 4-bit weights",
    "adapter": "Train an adapter",
    "offload": "Offload optimizer states to host memory",
    "pools": "Generate and learn on different GPUs",
    "engines": "Spread each engine over several GPUs",
    "gpus": "Larger or more GPUs",
}
"""Ways that people ask for first, smallest change of the loop first."""
MOST_HARDWARE = 6
WORTH_TRYING = 0.7
"""Share of the lacking memory that larger GPUs must add to be tried."""
GPUS_PER_NODE = 8
"""GPUs of one machine before more machines are tried."""
HALVINGS = 3
MOST_SPLITS = 3
"""Divisions of the GPUs into two pools that are tried."""
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
    usual: Usual | None = None
    """Which of the usual ways it is."""
    refusal: str | None = None
    """Why a run would refuse the resulting loop; None: it would not."""

    @property
    def peak_bytes(self) -> int | None:
        """Memory of the fullest GPU; None: not known."""
        gpu = self.solution.binding
        return None if gpu is None else gpu.peak_bytes

    @property
    def step_seconds(self) -> float | None:
        """None: it does not fit yet."""
        return self.solution.after.estimate.step_seconds

    @property
    def over_bytes(self) -> int:
        """Bytes by which the worst GPU is still over its limit; 0: it fits."""
        return 0 if self.solution.fits else self.solution.least_over_bytes


@record
class RuledOut:
    """One of the usual ways, where it does not make the loop fit."""

    usual: Usual
    title: str
    reason: str


Refusal = Callable[[LoopSpec], str | None]
"""Returns why a run would refuse a loop, or None."""


@record
class Found:
    ways: tuple[Way, ...]
    ruled_out: tuple[RuledOut, ...]


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
    return look_for_ways(spec, failed, locks, root, refusal).ways


def look_for_ways(
    spec: LoopSpec,
    failed: Solution,
    locks: Collection[str],
    root: Path | None = None,
    refusal: Refusal = lambda spec: None,
) -> Found:
    """`ways_of`, and the usual ways that are not among them."""
    if failed.after.estimate.unknown:
        return Found(ways=(), ruled_out=())
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
    every = [*tried, *search.unfit]
    taken = [way for way in tried if way.refusal is None]
    if any(way.solution.fits for way in taken) or refusal(spec) is None:
        tried = taken
    ways = [way for way in tried if way.solution.fits]
    if not ways:
        least = failed.least_over_bytes - LEAST_GAIN_BYTES
        closer = [way for way in tried if way.over_bytes < least]
        ways = sorted(closer, key=lambda way: way.over_bytes)[:MOST_CLOSER]
    there = {way.usual for way in ways}
    held = {"adapter"} if search.has_adapters else set()
    missing = [usual for usual in USUAL if usual not in there | held]
    return Found(
        ways=tuple(ways),
        ruled_out=tuple(_ruled_out(usual, every, search.impossible(usual)) for usual in missing),
    )


def _ruled_out(usual: Usual, every: Collection[Way], impossible: str | None) -> RuledOut:
    """Why one of the usual ways is not among the ways."""
    tried = [way for way in every if way.usual == usual]
    title = USUAL[usual]
    if impossible is not None or not tried:
        return RuledOut(usual=usual, title=title, reason=impossible or "nothing to change here")
    best = min(tried, key=lambda way: (way.over_bytes, way.refusal is not None))
    reason = f"still {best.over_bytes / 2**30:.1f} GiB over"
    if best.over_bytes == 0:
        reason = best.refusal or f"{best.title.lower()}: an engine has no room for a whole text"
    return RuledOut(usual=usual, title=best.title, reason=reason)


def _way(
    touches: Touches,
    title: str,
    reason: str,
    solution: Solution,
    asked: Collection[FitChange] = (),
    unlocks: tuple[str, ...] = (),
    usual: Usual | None = None,
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
        usual=usual,
    )


class _Ways:
    """Ways to make one loop fit, with their solutions."""

    def __init__(
        self, spec: LoopSpec, failed: Solution, locks: Collection[str], root: Path | None
    ) -> None:
        self._spec, self._failed, self._locks, self._root = spec, failed, locks, root
        self._budget = failed.spec.hardware.memory_budget
        self.unfit: list[Way] = []
        """Ways that were tried and do not fit, beside those that are returned."""

    @property
    def has_adapters(self) -> bool:
        """Whether all that learns there are adapters."""
        models = [getattr(self._spec.nodes[name], "model", None) for name in self._groups_there()]
        return bool(models) and all(getattr(model, "lora", None) is not None for model in models)

    def impossible(self, usual: Usual) -> str | None:
        """Why there is nothing to try; None: there is, or it was not looked for."""
        gpus = presets.hardware_of(self._spec.hardware).gpus
        learners = [self._spec.nodes[name] for name in self._groups_there()]
        models = [getattr(node, "model", None) for node in learners]
        pretrained = [model for model in models if isinstance(model, PretrainedModel)]
        match usual:
            case "bits" if not pretrained:
                return "its models are trained from scratch"
            case "bits" if all(model.quantization is not None for model in pretrained):
                return "the weights are quantized already"
            case "adapter" if not pretrained:
                return "its models are trained from scratch"
            case "offload" if not learners:
                return "nothing learns on the GPUs that are too small"
            case "offload" if not gpus:
                return "without GPUs all memory is host memory"
            case "pools" if self._spec.hardware.pools:
                return "the loop has pools of its own"
            case "pools" | "engines" if gpus < 2:
                return "there is one GPU" if gpus else "there are no GPUs"
            case "pools" | "engines" if not self._failed.after.caches_of_parts:
                return "nothing is generated on a GPU"
            case "gpus" if self._spec.hardware.figures is not None and not self._spec.hardware.gpu:
                return "the figures are those of this GPU"
            case "gpus" if self._spec.hardware.gpu and self._spec.hardware.pools:
                return "the pools name the number of GPUs"
        return None

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
                yield _way("learning", title, ADAPTER, solution, [*adapters, *moved], usual="gpus")
            else:
                title = f"Run on {other.name}"
                reason = f"{other.title}: {other.usable_bytes / 2**30:.0f} GiB on each"
                yield _way("hardware", title, reason, solution, moved, usual="gpus")
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
            if solution is None:
                continue
            sizes = [pool["gpus"] for pool in split["hardware.pools"].values()]
            title = f"Generate on {sizes[1]} of the {gpus} GPUs, learn on the others"
            reason = "two pools: weights that learn and engines are not on the same GPUs"
            way = _way("hardware", title, reason, solution, asked, usual="pools")
            if solution.fits:
                yield way
                return
            self.unfit.append(way)

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
        if solution is not None:
            title, reason = USUAL["offload"], "a slower optimizer step"
            way = _way("hardware", title, reason, solution, asked, usual="offload")
            if solution.fits:
                yield way
                return
            self.unfit.append(way)
        if asked:
            yield from self.with_wider_engines(asked)

    def with_wider_engines(self, offloaded: list[FitChange]) -> Iterator[Way]:
        """Engines over several GPUs, each with a part of the weights; together with `offloaded`
        optimizer states."""
        writers = list(self._failed.after.caches_of_parts)
        for degree in self._shared_degrees(writers):
            asked = [
                FitChange(
                    path=f"nodes.{writer}.rollout.tensor_parallel",
                    old=value_at(self._spec, f"nodes.{writer}.rollout.tensor_parallel"),
                    new=degree,
                    reason="a part of the weights on each GPU",
                )
                for writer in writers
            ]
            solution = self._solve([*asked, *offloaded])
            if solution is None:
                continue
            title = f"Spread each engine over {degree} GPUs"
            title += ", optimizer states in host memory" if offloaded else ""
            reason, wanted = "tensor parallelism of generation", [*asked, *offloaded]
            way = _way("hardware", title, reason, solution, wanted, usual="engines")
            if solution.fits:
                yield way
                return
            self.unfit.append(way)

    def _shared_degrees(self, writers: Collection[str]) -> list[int]:
        """Numbers of GPUs over which the engines of all these nodes can be spread."""
        pools = Counter(gpu.pool for gpu in self._failed.after.estimate.gpus)
        each = [
            set(degrees_of(self._spec, writer, pools[pool_of_writer(self._spec, writer)]))
            for writer in writers
        ]
        return sorted(set.intersection(*each) - {1}) if each else []

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
                named = f"{title} of {name}"
                yield _way("learning", named, BITS, solution, [asked], usual="bits")

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
                yield _way("learning", title, ADAPTER, solution, [asked], usual="adapter")

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
