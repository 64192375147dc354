"""Settings of a loop under a budget: what changes, what it costs, and what else would help."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from coloop.plan.cost.placing import advise_backends, place
from coloop.plan.cost.solving import Solution, Solved, solve
from coloop.plan.cost.ways import Way, ways_of
from coloop.plan.run_check import refused_because, refused_words
from coloop.spec.base import title_of
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.presets import patched
from coloop.spec.solvable import LOCKS, locks_of
from coloop_server.checks.fitting_schemas import (
    BackendOfLearner,
    FitLoop,
    FitResult,
    FittedValue,
    FitWay,
    Placed,
    PlaceResult,
)
from coloop_server.checks.schemas import LoopInput, PredictedTime
from coloop_server.checks.service import parsed_of, refusal_of, root_of
from coloop_server.language import require_parsed
from coloop_server.paths import Roots

SHARES = ("memory_budget", "gpu_memory_utilization")
"""Settings that are shares, shown as percent."""


def fit_loop(body: FitLoop, roots: Roots) -> FitResult:
    """Settings under which the loop stays within the budget, and the edits that make them."""
    spec = require_parsed(parsed_of(body))
    root = root_of(spec, roots)
    locks = locks_of(spec) if body.locks is None else tuple(body.locks)
    found = solve(
        spec,
        root=root,
        budget_gib=body.budget_gib,
        budget_fraction=body.budget_fraction,
        locks=locks,
    )
    edits = edits_of(found.changes)
    text = None if body.yaml is None else patched(body.yaml, edits)
    ways: tuple[Way, ...] = ()
    if body.with_ways and not found.fits:
        ways = ways_of(spec, found, locks, root, lambda other: refusal_of(other, root))
    return FitResult(
        fits=found.fits,
        over_bytes=found.over_bytes,
        verdict=verdict_of(found, ways),
        refusal=refused_words(found.refusals) if found.refusals else None,
        changes=[_value(found, change, locks) for change in found.changes],
        edits=edits,
        ways=[_way(way, locks) for way in ways],
        yaml=text,
        spec=None if text is None else parse(text).document,
        budget_fraction=found.spec.hardware.memory_budget,
        before=found.before.estimate,
        after=found.after.estimate,
        before_time=PredictedTime.of(found.before),
        after_time=PredictedTime.of(found.after),
        tried=found.tried,
    )


def edits_of(changes: Iterable[Any]) -> list[Change]:
    """What makes changed values of a loop: those without a new value go."""
    return [
        Change(op="remove", path=one.path)
        if one.new is None
        else Change(op="set", path=one.path, value=one.new)
        for one in changes
        if getattr(one, "is_written", True) and one.old != one.new
    ]


def verdict_of(found: Solution, ways: Collection[Way] = ()) -> str:
    """Whether it fits, and where not the least that would; whether a run takes it."""
    told = _memory_of(found)
    least = next((way.reason for way in ways if way.touches == "budget" and not way.unlocks), None)
    if least is not None:
        told += f" The smallest that fits is {least}."
    if found.refusals:
        told += f" {refused_words(found.refusals)}."
    return told


def _memory_of(found: Solution) -> str:
    gpu = found.binding
    if gpu is None:
        return "Nothing runs on a GPU."
    unknown = found.after.estimate.unknown
    if unknown:
        return f"Not known: {unknown[0].reason}."
    if gpu.peak_bytes is None:
        return f"Not known: {gpu.reason}."
    room = gpu.usable_bytes - gpu.peak_bytes
    if found.fits:
        return f"Fits: {size_text(room)} spare on {gpu.pool} in {gpu.peak_stage or 'no stage'}."
    if found.over_bytes:
        least = found.least_over_bytes
        still = "no allowed change takes less"
        if least < found.over_bytes:
            still = f"with every allowed change still {size_text(least)}"
        return f"{size_text(found.over_bytes)} over on {gpu.pool} in {gpu.peak_stage}; {still}."
    return f"Does not fit on {gpu.pool}: {gpu.reason}."


def size_text(count: int) -> str:
    """Bytes as the page writes them: three digits, in the largest unit of which there is one."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1024
        units.pop(0)
    digits = 0 if units[0] == "B" or size >= 100 else 1 if size >= 10 else 2
    return f"{size:.{digits}f} {units[0]}"


def _value(found: Solution, change: Solved, locks: Collection[str]) -> FittedValue:
    head, _, rest = change.path.partition(".")
    name = change.path.rpartition(".")[2]
    return FittedValue(
        path=change.path,
        node=rest.partition(".")[0] if head == "nodes" else None,
        title=_title(found.spec, change.path),
        old=change.old,
        new=change.new,
        old_text=shown(name, change.old_value),
        new_text=shown(name, change.new_value),
        reason=change.reason,
        seconds=change.seconds if found.fits else None,
        is_written=change.is_written,
        is_locked=change.path in locks,
    )


def _title(spec: LoopSpec, path: str) -> str:
    """What forms call the setting at a path: several sections have one of the same name."""
    *around, name = path.split(".")
    place: Any = spec
    for key in around:
        place = place.get(key) if isinstance(place, Mapping) else getattr(place, key, None)
    field = type(place).model_fields.get(name) if isinstance(place, BaseModel) else None
    return (field and field.title) or title_of(name)


def _way(way: Way, locks: Collection[str]) -> FitWay:
    left = [one for one in locks if one not in way.unlocks]
    edits = edits_of(way.changes)
    if way.unlocks:
        edits.append(Change(op="set", path=f"layout.{LOCKS}", value=left))
    return FitWay(
        touches=way.touches,
        title=way.title,
        reason=way.reason,
        unlocks=list(way.unlocks),
        step_seconds=way.step_seconds,
        over_bytes=way.over_bytes,
        refusal=None if way.refusal is None else refused_because(way.refusal),
        edits=edits,
    )


def shown(name: str, value: Any) -> str:
    if value is None:
        return "off" if name != "loss_chunk" else "whole"
    if isinstance(value, bool):
        return "on" if value else "off"
    if name in SHARES and isinstance(value, float):
        return f"{value:.0%}"
    if name == "loss_chunk":
        return f"{value:,} tokens"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def place_loop(body: LoopInput, roots: Roots) -> PlaceResult:
    """A placement beside the loop's own, and which backends its learners are advised to use."""
    spec = require_parsed(parsed_of(body))
    root = root_of(spec, roots)

    def refusal(other: LoopSpec) -> str | None:
        return refusal_of(other, root)

    found = place(spec, root=root, refusal=refusal)
    advice = advise_backends(spec, root=root, refusal=refusal)
    return PlaceResult(
        yours=Placed.model_validate(found.yours),
        suggested=None if found.suggested is None else Placed.model_validate(found.suggested),
        edits=edits_of(found.changes),
        reason=found.reason,
        tried=found.tried,
        seconds=found.seconds,
        backends=[BackendOfLearner.model_validate(learner) for learner in advice],
    )
