"""Finds the settings with which a loop runs fastest within a memory budget.

If the loop is over the budget, memory is saved by the cheapest relaxations (`relaxing`). If there
is room, settings are left to the compiler where that makes a step faster. The compiler decides open
settings again under every budget; what it decides differently is reported too. What a loop learns
never changes, nor do locked settings.

    budget ──> locks ──> relax while over ──> leave open while faster ──> cost of each change
"""

from collections.abc import Collection, Iterator
from math import floor
from pathlib import Path
from typing import Any

from coloop.plan.cost.relaxing import (
    GIB,
    BudgetResult,
    FitChange,
    Prices,
    merged,
    most_over,
    relax,
    value_at,
    with_changes,
)
from coloop.plan.cost.report import Explanation
from coloop.plan.settings.machine import Machine
from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.paths import apply_overrides
from coloop.spec.solvable import is_solvable, solvable_values

LEAST_GAIN = 0.002
"""Share of a step that must be saved by leaving a setting to the compiler."""
MOST_TRIES = 24
"""Variants priced while looking for faster ones."""
MOST_ROUNDS = 3
OPEN_AGAIN = "there is enough memory: if unset, the fastest value is chosen"


@record
class Solved(FitChange):
    """A change and its cost."""

    old_value: Any
    """The value used before: the loop's, or else the compiler's."""
    new_value: Any
    seconds: float | None
    """Seconds added to a step; None: counted with an earlier setting of the same stage."""
    is_written: bool
    """Whether it is written into the loop; otherwise the compiler decides it."""


@record
class Solution(BudgetResult):
    changes: tuple[Solved, ...]
    tried: int


def solve(
    spec: LoopSpec,
    *,
    budget_gib: float | None = None,
    budget_fraction: float | None = None,
    root: Path | None = None,
    locks: Collection[str] = (),
) -> Solution:
    """Settings within a budget: GiB or a share of each GPU, or else the loop's own. `locks`: paths
    of settings that keep their written or decided values."""
    prices = Prices(spec, root)
    before = prices.of(spec)
    budget = budget_change(spec, prices, budget_gib, budget_fraction)
    kept = list(_kept(spec, before, locks))
    start = _with(spec, [*([budget] if budget else []), *kept])
    answer, changes, after = relax(start, prices, locks)
    least = most_over(after)
    if after.estimate.fits:
        answer, taken, after = _take_back(answer, after, prices, locks)
        changes += taken
        changes = [*kept, *merged(changes)]
    else:  # no partial solution: the loop stays as it is
        answer, changes, after = start, kept, prices.of(start)
        least = min(least, most_over(after))
    written = [change for change in changes if value_at(spec, change.path) != change.new]
    return Solution(
        spec=answer,
        changes=tuple(_costed(spec, budget, written, before, after, prices)),
        before=before,
        after=after,
        tried=prices.asked,
        least_over_bytes=least,
        refusals=prices.refusals_of_answer(answer),
    )


def _with(spec: LoopSpec, changes: Collection[FitChange]) -> LoopSpec:
    return (
        apply_overrides(spec, {change.path: change.new for change in changes}) if changes else spec
    )


def _kept(spec: LoopSpec, explanation: Explanation, locks: Collection[str]) -> Iterator[FitChange]:
    """Locked open settings, fixed at their current values."""
    for path in dict.fromkeys(locks):
        value = explanation.decided.get(path)
        if not is_solvable(path) or value is None or value_at(spec, path) is not None:
            continue
        change = FitChange(path=path, old=None, new=value, reason="locked at this value")
        # Some decided values are invalid in a loop, such as tokens in place of rows.
        if with_changes(spec, [change]) is not None:
            yield change


def _take_back(
    spec: LoopSpec, current: Explanation, prices: Prices, locks: Collection[str]
) -> tuple[LoopSpec, list[FitChange], Explanation]:
    """Leave settings to the compiler, one by one, where the loop still fits and its step gets
    faster."""
    changes: list[FitChange] = []
    most = prices.asked + MOST_TRIES
    for _ in range(MOST_ROUNDS):
        count = len(changes)
        for path, value in solvable_values(spec).items():
            if path in locks or prices.asked >= most:
                continue
            change = FitChange(path=path, old=value, new=None, reason=OPEN_AGAIN)
            tried = with_changes(spec, [change])
            if tried is None:
                continue
            outcome = prices.of(tried)
            gain = current.step_of_parts - outcome.step_of_parts
            is_faster = gain > LEAST_GAIN * current.step_of_parts
            if outcome.estimate.fits and is_faster and prices.runs_as_well(tried, spec):
                spec, current = tried, outcome
                changes.append(change)
        if len(changes) == count:
            break
    return spec, changes, current


def _costed(
    spec: LoopSpec,
    budget: FitChange | None,
    written: list[FitChange],
    before: Explanation,
    after: Explanation,
    prices: Prices,
) -> Iterator[Solved]:
    """Every change with the seconds that it adds to a step, including those of the compiler under
    the new budget. Changes are applied one by one under the larger of both budgets, where every
    engine can start."""
    steps = [*written]
    if budget is not None:
        steps.insert(0 if budget.new > budget.old else len(steps), budget)
    seconds: dict[str, float] = {}
    was, current = before, spec
    around = {"from": before, "to": after}
    for index, change in enumerate(steps):
        current = _with(current, [change])
        now = after if index == len(steps) - 1 else prices.of(current)
        seconds[change.path] = now.step_of_parts - was.step_of_parts
        if change is budget:
            around = {"from": was, "to": now}
        was = now
    taken = {change.path for change in steps}
    rest = seconds.get(budget.path, 0.0) if budget is not None else 0.0
    decided = [change for change in _decided_otherwise(before, after) if change.path not in taken]
    shares = _shares(decided, rest, around["from"], around["to"])
    if budget is not None:
        yield solved(budget, before, after, 0.0 if any(shares.values()) else rest, is_written=True)
    for change in written:
        yield solved(change, before, after, seconds[change.path], is_written=True)
    for change in decided:
        yield solved(change, before, after, shares[change.path], is_written=False)


def _decided_otherwise(before: Explanation, after: Explanation) -> list[FitChange]:
    """Open settings that the compiler now decides differently; micro-batches, which cost least,
    last."""
    changes = [
        FitChange(path=decision.path, old=None, new=None, reason=decision.reason)
        for decision in after.decisions
        if is_solvable(decision.path)
        and before.decided.get(decision.path, decision.value) != decision.value
    ]
    return sorted(changes, key=lambda change: change.path.endswith(".micro_batch"))


def _shares(
    decided: list[FitChange], seconds: float, before: Explanation, after: Explanation
) -> dict[str, float | None]:
    """Divide the seconds among the newly decided settings by the time differences of their stages;
    settings of one stage are counted once."""
    was, now = before.stage_of_parts, after.stage_of_parts
    moved = {stage: now[stage] - was[stage] for stage in now if stage in was}
    shares: dict[str, float | None] = {}
    seen: dict[str, str] = {}
    for change in decided:
        _, node, section, _ = change.path.split(".", 3)
        stage = f"{node}.{'learn' if section == 'training' else 'generate'}"
        shares[change.path] = None if stage in seen else moved.get(stage, 0.0)
        seen.setdefault(stage, change.path)
    whole = sum(value for value in shares.values() if value is not None)
    if not whole:
        return {p: None if v is None else 0.0 for p, v in shares.items()}
    return {p: None if v is None else v * seconds / whole for p, v in shares.items()}


def solved(
    change: FitChange,
    before: Explanation,
    after: Explanation,
    seconds: float | None,
    *,
    is_written: bool,
) -> Solved:
    return Solved(
        path=change.path,
        old=change.old,
        new=change.new,
        old_value=before.decided.get(change.path) if change.old is None else change.old,
        new_value=after.decided.get(change.path) if change.new is None else change.new,
        reason=change.reason,
        seconds=seconds,
        is_written=is_written,
    )


# Settings with which a loop fits into memory, written into it.
#
# Relaxes settings (`relaxing`) until everything fits, then writes the values of open ones, so that
# the loop costs the same on every machine.

PINNED = (
    "gradient_checkpointing",
    "loss_chunk",
    "max_num_seqs",
    "zero_stage",
)
"""Open settings that are written into the loop once it fits, besides tensor-parallel degrees.
Engines, backends and micro-batches by tokens stay open."""


def fit(
    spec: LoopSpec,
    *,
    budget_gib: float | None = None,
    budget_fraction: float | None = None,
    root: Path | None = None,
    locks: Collection[str] = (),
) -> BudgetResult:
    """Find settings that fit the budget: GiB or a share of each GPU, or else the loop's own.
    `locks`: paths of settings that do not change."""
    prices = Prices(spec, root)
    before = prices.of(spec)
    budget = budget_change(spec, prices, budget_gib, budget_fraction)
    budgets = [] if budget is None else [budget]
    start = _with(spec, budgets)
    answer, changes, after = relax(start, prices, locks)
    least = most_over(after)
    if after.estimate.fits:
        pins = [pin for pin in _pins(answer, after, prices) if pin.path not in locks]
        pinned = _with(answer, pins)
        checked = prices.of(pinned)
        if checked.estimate.fits:
            answer, after, changes = pinned, checked, [*changes, *pins]
    else:
        answer, changes, after = start, [], prices.of(start)
        least = min(least, most_over(after))
    return BudgetResult(
        spec=answer,
        changes=tuple(merged([*budgets, *changes])),
        before=before,
        after=after,
        least_over_bytes=least,
        refusals=prices.refusals_of_answer(answer),
    )


def budget_change(
    spec: LoopSpec, prices: Prices, gib: float | None, fraction: float | None
) -> FitChange | None:
    """The change of `hardware.memory_budget`; None if it stays."""
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


def _pins(spec: LoopSpec, explanation: Explanation, prices: Prices) -> Iterator[FitChange]:
    """Compiled values that a run also accepts when they are written."""
    for decision in explanation.decisions:
        path, value = decision.path, decision.value
        name = path.rpartition(".")[2]
        if value is None or not (name in PINNED or (name == "tensor_parallel" and value > 1)):
            continue
        pin = FitChange(path=path, old=None, new=value, reason=decision.reason)
        written = with_changes(spec, [pin])
        if written is not None and prices.runs_as_well(written, spec):
            yield pin
