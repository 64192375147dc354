"""Settings of a loop for a budget: what changes, what it costs, and alternatives."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from coloop.plan.cost.placing import advise_backends, place
from coloop.plan.cost.solving import Solution, Solved, solve
from coloop.plan.cost.ways import Found, Way, look_for_ways
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
    RuledOut,
)
from coloop_server.checks.schemas import LoopInput, PredictedTime
from coloop_server.checks.service import parsed_of, refusal_of, root_of
from coloop_server.language import require_parsed
from coloop_server.paths import Roots

SHARES = ("memory_budget", "gpu_memory_utilization")
"""Settings shown as percent."""


def fit_loop(body: FitLoop, roots: Roots) -> FitResult:
    """Settings that fit the budget, and the edits for them."""
    spec = require_parsed(parsed_of(body))
    root = root_of(spec, roots)
    locks = locks_of(spec) if body.locks is None else tuple(body.locks)
    solution = solve(
        spec,
        root=root,
        budget_gib=body.budget_gib,
        budget_fraction=body.budget_fraction,
        locks=locks,
    )
    edits = edits_of(solution.changes)
    text = None if body.yaml is None else patched(body.yaml, edits)
    found = Found(ways=(), ruled_out=())
    if body.with_ways and not solution.fits:
        found = look_for_ways(spec, solution, locks, root, lambda other: refusal_of(other, root))
    return FitResult(
        fits=solution.fits,
        over_bytes=solution.over_bytes,
        verdict=verdict_of(solution, found.ways),
        refusal=refused_words(solution.refusals) if solution.refusals else None,
        changes=[_value(solution, change, locks) for change in solution.changes],
        edits=edits,
        ways=[_way(way, locks) for way in found.ways],
        ruled_out=[RuledOut.model_validate(other) for other in found.ruled_out],
        yaml=text,
        spec=None if text is None else parse(text).document,
        budget_fraction=solution.spec.hardware.memory_budget,
        before=solution.before.estimate,
        after=solution.after.estimate,
        before_time=PredictedTime.of(solution.before),
        after_time=PredictedTime.of(solution.after),
        tried=solution.tried,
    )


def edits_of(changes: Iterable[Any]) -> list[Change]:
    """Edits for changed values; those without a new value are removed."""
    return [
        Change(op="remove", path=change.path)
        if change.new is None
        else Change(op="set", path=change.path, value=change.new)
        for change in changes
        if getattr(change, "is_written", True) and change.old != change.new
    ]


def verdict_of(solution: Solution, ways: Collection[Way] = ()) -> str:
    """Whether it fits, or else the smallest budget that does; and whether a run accepts it."""
    told = _memory_of(solution)
    least = next((way.reason for way in ways if way.touches == "budget" and not way.unlocks), None)
    if least is not None:
        told += f" The smallest that fits is {least}."
    if solution.refusals:
        told += f" {refused_words(solution.refusals)}."
    return told


def _memory_of(solution: Solution) -> str:
    gpu = solution.binding
    if gpu is None:
        return "Nothing runs on a GPU."
    unknown = solution.after.estimate.unknown
    if unknown:
        return f"Not known: {unknown[0].reason}."
    if gpu.peak_bytes is None:
        return f"Not known: {gpu.reason}."
    room = gpu.usable_bytes - gpu.peak_bytes
    if solution.fits:
        return f"Fits: {size_text(room)} spare on {gpu.pool} in {gpu.peak_stage or 'no stage'}."
    if solution.over_bytes:
        least = solution.least_over_bytes
        still = "no allowed change takes less"
        if least < solution.over_bytes:
            still = f"with every allowed change still {size_text(least)}"
        return f"{size_text(solution.over_bytes)} over on {gpu.pool} in {gpu.peak_stage}; {still}."
    return f"Does not fit on {gpu.pool}: {gpu.reason}."


def size_text(count: int) -> str:
    """Bytes as on the page: three digits, in the largest unit that applies."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1024
        units.pop(0)
    digits = 0 if units[0] == "B" or size >= 100 else 1 if size >= 10 else 2
    return f"{size:.{digits}f} {units[0]}"


def _value(solution: Solution, change: Solved, locks: Collection[str]) -> FittedValue:
    head, _, rest = change.path.partition(".")
    name = change.path.rpartition(".")[2]
    return FittedValue(
        path=change.path,
        node=rest.partition(".")[0] if head == "nodes" else None,
        title=_title(solution.spec, change.path),
        old=change.old,
        new=change.new,
        old_text=shown(name, change.old_value),
        new_text=shown(name, change.new_value),
        reason=change.reason,
        seconds=change.seconds if solution.fits else None,
        is_written=change.is_written,
        is_locked=change.path in locks,
    )


def _title(spec: LoopSpec, path: str) -> str:
    """The form's title of the setting at a path, with its section if several have one."""
    *around, name = path.split(".")
    section: Any = spec
    for key in around:
        section = section.get(key) if isinstance(section, Mapping) else getattr(section, key, None)
    field = type(section).model_fields.get(name) if isinstance(section, BaseModel) else None
    return (field and field.title) or title_of(name)


def _way(way: Way, locks: Collection[str]) -> FitWay:
    left = [lock for lock in locks if lock not in way.unlocks]
    edits = edits_of(way.changes)
    if way.unlocks:
        edits.append(Change(op="set", path=f"layout.{LOCKS}", value=left))
    return FitWay(
        touches=way.touches,
        title=way.title,
        reason=way.reason,
        unlocks=list(way.unlocks),
        step_seconds=way.step_seconds,
        peak_bytes=way.peak_bytes,
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
    """A faster placement, if there is one, and recommended backends."""
    spec = require_parsed(parsed_of(body))
    root = root_of(spec, roots)

    def refusal(other: LoopSpec) -> str | None:
        return refusal_of(other, root)

    placement = place(spec, root=root, refusal=refusal)
    suggested = placement.suggested
    advice = advise_backends(spec, root=root, refusal=refusal)
    return PlaceResult(
        yours=Placed.model_validate(placement.yours),
        suggested=None if suggested is None else Placed.model_validate(suggested),
        edits=edits_of(placement.changes),
        reason=placement.reason,
        tried=placement.tried,
        seconds=placement.seconds,
        backends=[BackendOfLearner.model_validate(learner) for learner in advice],
    )
