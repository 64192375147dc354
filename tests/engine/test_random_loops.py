"""What holds for every loop: it is checked, planned, estimated, fitted and rehearsed, or refused by
diagnostics. Seeds are fixed; a thousand of them where time allows."""

import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engine.random_loops import LOOPS, random_loop

from coloop.cli.rehearse import rehearse
from coloop.explain.rehearsal import rehearsed
from coloop.plan.compile import compile_plan
from coloop.plan.cost import explain
from coloop.plan.cost.solving import fit
from coloop.plan.run_check import check_run
from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Severity
from coloop.spec.io import from_dict
from coloop.validate import validate

FEW = range(60)
MANY = range(1000)
BUDGETS = (1.0, 0.7, 0.45, 0.25)
RUNS = range(2000, 2030)
"""Seeds whose rehearsals are run to their end."""


def finite(value: object) -> bool:
    """Whether all numbers in a JSON value are finite and not negative."""
    match value:
        case dict():
            return all(finite(one) for one in value.values())
        case list():
            return all(finite(one) for one in value)
        case float() | int():
            return math.isfinite(value) and value >= 0
    return True


def outcome_of(seed: int) -> str:
    """What becomes of the loop of a seed: `unreadable`, `invalid`, `refused` or `runs`."""
    parsed = from_dict(random_loop(seed))
    if parsed.spec is None:
        assert parsed.diagnostics, seed
        return "unreadable"
    spec = parsed.spec
    unrolled = Unrolled(spec)
    told = explain(spec, unrolled, root=LOOPS)
    assert json.loads(json.dumps(told.model_dump(mode="json"), allow_nan=False))
    assert finite(told.estimate.model_dump(mode="json", exclude={"notes"})), seed
    report = validate(spec, root=LOOPS, estimate=told.estimate, unrolled=unrolled)
    if not report.ok:
        assert all(found.message for found in report.errors)
        return "invalid"
    plan = compile_plan(spec, unrolled)
    assert json.dumps(plan.model_dump(mode="json"), allow_nan=False)
    refusals = check_run(spec, unrolled, root=LOOPS).refusals
    found = fit(spec)
    assert found.refusals or not refusals or found.fits, seed
    if refusals:
        assert all(one.severity is Severity.ERROR and one.message for one in refusals)
        return "refused"
    small = rehearsed(spec, root=LOOPS).spec
    assert validate(small, root=LOOPS).ok, seed
    assert not check_run(small, root=LOOPS).refusals, seed
    return "runs"


def count_outcomes(seeds: range) -> Counter[str]:
    return Counter(map(outcome_of, seeds))


def test_sixty_loops_are_treated_or_refused():
    outcomes = count_outcomes(FEW)

    assert outcomes["runs"] >= 15
    assert outcomes["unreadable"] + outcomes["invalid"] <= 30


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_loops_are_treated_or_refused():
    outcomes = count_outcomes(MANY)

    assert outcomes["runs"] >= 300


def budgets_of(seed: int) -> int:
    """How many budgets the loop of a seed fits into; each is as fast as every smaller one."""
    spec = from_dict(random_loop(seed)).spec
    if spec is None or not validate(spec, root=LOOPS).ok:
        return 0
    found = [fit(spec, budget_fraction=budget) for budget in BUDGETS]
    for more, less in pairwise(found):
        assert more.fits or not less.fits, seed
        fast, slow = (one.after.estimate.step_seconds for one in (more, less))
        if more.fits and less.fits and fast is not None and slow is not None:
            assert fast <= slow * (1 + 1e-9), seed
    return sum(one.fits for one in found)


def test_no_budget_makes_a_loop_slower():
    assert sum(map(budgets_of, range(8))) > 4


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_budget_makes_any_of_a_thousand_loops_slower():
    assert sum(map(budgets_of, MANY)) > 1000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_rehearsals_of_drawn_loops_end():
    ended = 0
    for seed in RUNS:
        spec = from_dict(random_loop(seed)).spec
        if spec is None or not validate(spec, root=LOOPS).ok:
            continue
        if check_run(spec, root=LOOPS).refusals:
            continue
        result = rehearse(spec, rehearsed(spec, root=LOOPS), root=Path(LOOPS))
        assert result.ok, (seed, result.failures)
        ended += 1

    assert ended >= 3
