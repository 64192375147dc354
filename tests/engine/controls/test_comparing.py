"""Curves, means and spreads of arms, and who leads."""

from pathlib import Path

import pytest

from coloop.explain.controls import (
    Arm,
    Comparison,
    Curve,
    ablation_of,
    arm_of,
    arms_of_preset,
    curve_of,
    runs_of,
    seeded,
)
from coloop.spec import presets
from coloop.spec.io import content_hash, parse, require


def curve(seed: int, *values: float, begins_at: int = 0) -> Curve:
    steps = tuple(range(0, 10 * len(values), 10))
    return Curve(seed=seed, run=f"run-{seed}", steps=steps, values=values, begins_at=begins_at)


FULL = Arm(kind="full", curves=(curve(0, 0.2, 0.6), curve(1, 0.3, 0.7), curve(2, 0.1, 0.8)))


def test_mean_and_spread_over_seeds() -> None:
    assert FULL.start == pytest.approx(0.2)
    assert FULL.end == pytest.approx(0.7)
    assert FULL.spread == pytest.approx(0.1)  # deviations -0.1, 0, 0.1 over n - 1 = 2


@pytest.mark.parametrize(
    ("ends", "leads"),
    [((0.5, 0.55, 0.6), True), ((0.6, 0.7, 0.65), False), ((0.2, 0.9, 0.4), False)],
)
def test_a_loop_leads_by_more_than_the_larger_spread(ends: tuple[float, ...], leads: bool) -> None:
    control = Arm(kind="plain", curves=tuple(curve(n, 0.2, end) for n, end in enumerate(ends)))

    found = Comparison(full=FULL, control=control)

    assert found.difference == pytest.approx(0.7 - sum(ends) / 3)
    assert found.leads is leads


def test_one_seed_has_no_spread_and_gives_no_verdict() -> None:
    alone = Arm(kind="frozen", curves=(curve(0, 0.1, 0.2),))

    assert alone.spread is None
    assert Comparison(full=FULL, control=alone).leads is None
    assert Comparison(full=FULL, control=Arm(kind="plain", curves=())).difference is None


def event(kind: str, step: int, **fields: object) -> dict[str, object]:
    return {"type": kind, "step": step, **fields}


def test_a_curve_begins_before_its_phase_and_keeps_the_later_reading_of_a_repeated_step() -> None:
    events = [
        event("phase", 0, phase="warm-up", state="started"),
        event("metrics", 0, node="probe", metrics={"accuracy": 0.1, "score": 7.0}),
        event("metrics", 10, node="probe", metrics={"accuracy": 0.2}),
        event("phase", 12, phase="rl", state="started"),
        event("metrics", 20, node="probe", metrics={"accuracy": 0.5}),
        event("metrics", 30, node="probe", metrics={"accuracy": None}),
        event("phase", 32, phase="rl", state="started"),
        # resumed from step 15
        event("metrics", 20, node="probe", metrics={"accuracy": 0.4}),
        event("metrics", 20, node="other", metrics={"accuracy": 0.9}),
        event("metrics", 30, node="probe", metrics={"accuracy": 0.6}),
    ]

    found = curve_of(events, "probe.accuracy", begins="rl", seed=3, run="a")

    assert found.steps == (0, 10, 20, 30)
    assert found.values == (0.1, 0.2, 0.4, 0.6)
    assert (found.begins_at, found.start, found.end) == (12, 0.2, 0.6)


def test_arms_of_a_preset_are_loops_of_one_seed() -> None:
    arms = arms_of_preset("search-r1", ["shuffled", "no_tool"])

    assert list(arms) == ["full", "shuffled", "no_tool"]
    ablation = ablation_of(arms)
    assert ablation is not None
    assert ablation.kind == "no_tool"
    assert {arm.begins for arm in arms.values()} == {"rl"}
    spec = require(parse(seeded(arms["no_tool"], seed=4, of="search-r1-1")))
    assert spec.run.seed == 4
    assert spec.run.control is not None
    assert (spec.run.control.of, spec.run.control.kind) == ("search-r1-1", "no_tool")
    assert content_hash(spec) == content_hash(require(parse(seeded(arms["no_tool"], seed=4))))


def test_runs_of_a_control_are_found_by_their_loops(tmp_path: Path) -> None:
    text = presets.load_loop_text("grpo-arithmetic")
    for name, given in (
        ("a", seeded(arm_of(text, "full"), seed=0, of="first")),
        ("b", seeded(arm_of(text, "shuffled"), seed=1, of="first")),
        ("c", seeded(arm_of(text, "shuffled"), seed=1, of="second")),
        ("d", text),
        ("e", "not: [a loop"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.yaml").write_text(given, encoding="utf-8")

    found = [(one.run, one.kind, one.seed) for one in runs_of("first", tmp_path)]

    assert found == [("a", "full", 0), ("b", "shuffled", 1)]
