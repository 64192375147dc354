"""Settings under which a loop stays within its memory, written down.

Takes what saves memory (`relaxing`) until everything fits; then the values that were left open are
written down, so that the loop costs the same wherever it is read.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import floor
from pathlib import Path

from coloop.plan.cost.relaxing import (
    GIB,
    BudgetResult,
    FitChange,
    Prices,
    as_it_is,
    merged,
    most_over,
    relax,
    with_changes,
)
from coloop.plan.cost.report import DecisionEstimate, Explanation
from coloop.plan.settings.machine import Machine
from coloop.spec.graph import LoopSpec
from coloop.spec.paths import apply_overrides

PINNED = (
    "gradient_checkpointing",
    "loss_chunk",
    "max_num_seqs",
    "zero_stage",
)
"""Open settings that are written down once the loop fits; engines, backends and micro-batches by
tokens stay open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(BudgetResult):
    changes: tuple[FitChange, ...]
    """Nothing but the budget where nothing makes it fit."""


def fit(
    spec: LoopSpec,
    *,
    budget_gib: float | None = None,
    budget_fraction: float | None = None,
    root: Path | None = None,
    locks: Collection[str] = (),
) -> Fit:
    """Finds settings that fit into the budget: GiB or a share of each GPU, else the loop's own.

    Args:
        locks: paths of settings that stay as they are.
    """
    prices = Prices(spec, root)
    before = prices.of(spec)
    changes: list[FitChange] = []
    budget = budget_change(spec, prices, budget_gib, budget_fraction)
    if budget is not None:
        changes.append(budget)
        spec = apply_overrides(spec, {budget.path: budget.new})
    asked = spec
    spec, relaxed, after = relax(spec, prices, locks)
    least = most_over(after)
    changes += relaxed
    if not after.estimate.fits:
        spec, pins, after = as_it_is(asked, before, prices)
        changes = [*([budget] if budget is not None else []), *pins]
        least = min(least, most_over(after))
    else:
        pins = [
            pin for pin in _pins(after) if pin.path not in locks and _is_read(pin, spec, prices)
        ]
        pinned = apply_overrides(spec, {pin.path: pin.new for pin in pins})
        checked = prices.of(pinned)
        if checked.estimate.fits:
            spec, after, changes = pinned, checked, [*changes, *pins]
    return Fit(
        spec=spec,
        changes=tuple(merged(changes)),
        before=before,
        after=after,
        least_over_bytes=least,
        refusals=prices.refusals_of_answer(spec),
    )


def budget_change(
    spec: LoopSpec, prices: Prices, gib: float | None, fraction: float | None
) -> FitChange | None:
    """What a budget changes in the loop, if anything."""
    machine = prices.unrolled.settings(prices.root).survey.machine
    wanted = _fraction(machine, gib, fraction)
    if wanted is None or wanted == spec.hardware.memory_budget:
        return None
    return FitChange(
        path="hardware.memory_budget",
        old=spec.hardware.memory_budget,
        new=wanted,
        reason="the requested budget",
    )


def _fraction(machine: Machine, gib: float | None, fraction: float | None) -> float | None:
    if fraction is not None:
        return fraction
    if gib is None:
        return None
    visible = min(machine.visible_bytes(pool) for pool in machine.pools.values())
    return min(max(floor(gib * GIB / visible * 1e4) / 1e4, 1e-4), 1.0)


def _pins(explanation: Explanation) -> list[FitChange]:
    return [
        FitChange(path=decision.path, old=None, new=decision.value, reason=decision.reason)
        for decision in explanation.decisions
        if decision.value is not None and _is_pinned(decision)
    ]


def _is_read(pin: FitChange, spec: LoopSpec, prices: Prices) -> bool:
    """Whether a run takes what is decided also where the loop says it."""
    said = with_changes(spec, [pin])
    return said is not None and prices.runs_as_well(said, spec)


def _is_pinned(decision: DecisionEstimate) -> bool:
    name = decision.path.rpartition(".")[2]
    return name in PINNED or (name == "tensor_parallel" and decision.value > 1)
