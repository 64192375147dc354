"""The learning checks on literal readings: what is raised, when, once, and when it is over."""

import json
from collections.abc import Mapping, Sequence

import pytest

from coloop.runtime.health.checks import Finding, HealthChecks, Truth
from coloop.runtime.health.symptoms import SYMPTOMS

HEALTHY = {
    "loss": 0.02,
    "grad_norm": 0.7,
    "lr": 1e-3,
    "reward/mean": 0.4,
    "reward/std": 0.4,
    "group/zero_variance": 0.3,
    "advantage/std": 0.9,
    "entropy": 0.8,
    "kl": 0.01,
    "clip_fraction": 0.02,
    "ratio/max": 1.4,
    "mismatch_kl": 1e-7,
    "rollout/finished": 0.98,
    "rows/left_out": 0.0,
    "score/none": 0.0,
    "parse/none": 0.1,
    "rows/none": 0.2,
    "truth": 0.6,
    "false_positive_rate": 0.1,
    "false_negative_rate": 0.2,
    "agreement": 0.9,
    "calibration": 0.1,
    "swap/consistent": 0.9,
    "win_rate": 0.5,
    "win_rate.actor": 0.5,
    "tool/errors": 0.1,
    "tool/calls": 1.2,
    "explained_variance": 0.3,
}

SICK: dict[str, dict[str, float]] = {
    "learning.no_update": {"grad_norm": 0.0},
    "learning.no_rate": {"lr": 0.0},
    "learning.no_spread": {"group/zero_variance": 1.0, "advantage/std": 0.0},
    "learning.little_spread": {"group/zero_variance": 0.95},
    "learning.left_out": {"rows/left_out": 0.25},
    "learning.no_scores": {"score/none": 1.0},
    "learning.nothing_parsed": {"parse/none": 1.0},
    "learning.nothing_goes_on": {"rows/none": 1.0},
    "learning.entropy_collapse": {"entropy": 0.001},
    "learning.kl_runaway": {"kl": 2.0},
    "learning.clipped": {"clip_fraction": 0.7},
    "learning.far_ratio": {"ratio/max": 300.0},
    "learning.mismatch": {"mismatch_kl": 0.05},
    "learning.cut_texts": {"rollout/finished": 0.0},
    "learning.reward_hacking": {"reward/mean": 0.9, "truth": 0.3},
    "learning.false_positives": {"false_positive_rate": 0.5},
    "learning.false_negatives": {"false_negative_rate": 0.7},
    "learning.disagreement": {"agreement": 0.3},
    "learning.miscalibrated": {"calibration": 0.4},
    "learning.position_bias": {"swap/consistent": 0.4},
    "learning.dominating": {"win_rate": 0.98, "win_rate.actor": 0.98},
    "learning.failing_tool": {"tool/errors": 1.0},
    "learning.uncalled_tool": {"tool/calls": 0.0},
    "learning.blind_critic": {"explained_variance": -0.5},
}

LATER = dict.fromkeys(
    ("learning.entropy_collapse", "learning.kl_runaway", "learning.reward_hacking"), 2
)
LATER["learning.blind_critic"] = 2
"""Where the median of the last five readings counts: how many of them it takes."""


def play(
    readings: Sequence[Mapping[str, float]],
    checks: HealthChecks | None = None,
    *,
    phase: str = "rl",
) -> list[Finding]:
    """All findings of a run of one learner with these readings."""
    checks = checks or HealthChecks()
    found = []
    for step, metrics in enumerate(readings, 1):
        checks.hear("actor", metrics)
        found += checks.step_finished(step, phase)
    return found


def test_a_run_that_learns_is_told_nothing() -> None:
    checks = HealthChecks()

    assert play([HEALTHY] * 60, checks) == []
    assert checks.run_finished(60) == []


@pytest.mark.parametrize("code", SICK)
def test_each_symptom_is_raised_once_after_its_patience_and_cleared_when_over(code: str) -> None:
    sick = {**HEALTHY, **SICK[code]}
    patience = next(one.patience for one in SYMPTOMS if one.code == code)
    checks = HealthChecks()

    found = play([HEALTHY] * 10 + [sick] * 30, checks)

    [raised] = found
    assert raised.code == code
    assert raised.step == 10 + patience + LATER.get(code, 0)
    assert raised.metric in SICK[code]
    assert raised.message.startswith("actor: ")
    assert raised.hint
    assert checks.open == [raised]
    assert play([HEALTHY, sick] * 5, checks) == []  # a single reading clears nothing
    [cleared] = play([HEALTHY] * 30, checks)
    assert (cleared.code, cleared.cleared, checks.open) == (code, True, [])
    assert [one.code for one in play([sick] * 30, checks)] == [code]  # armed again


BORDERS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "learning.no_update": ({"grad_norm": 1.1e-12}, {"grad_norm": 1e-12}),
    "learning.no_rate": ({"lr": 1e-30}, {"lr": 0.0}),
    "learning.no_spread": (
        {"group/zero_variance": 1.0, "advantage/std": 1.1e-12},
        {"group/zero_variance": 0.999, "advantage/std": 1e-12},
    ),
    "learning.little_spread": ({"group/zero_variance": 0.89}, {"group/zero_variance": 0.9}),
    "learning.left_out": ({"rows/left_out": 0.0}, {"rows/left_out": 0.001}),
    "learning.no_scores": ({"score/none": 0.998}, {"score/none": 0.999}),
    "learning.nothing_parsed": ({"parse/none": 0.998}, {"parse/none": 0.999}),
    "learning.nothing_goes_on": ({"rows/none": 0.998}, {"rows/none": 0.999}),
    # 5 % of 0.8, and a mean reward that has risen by 0.05
    "learning.entropy_collapse": (
        {"entropy": 0.0401, "reward/mean": 0.4},
        {"entropy": 0.0399, "reward/mean": 0.44},
    ),
    "learning.kl_runaway": ({"kl": 1.0, "reward/mean": 0.4}, {"kl": 1.02, "reward/mean": 0.44}),
    "learning.clipped": ({"clip_fraction": 0.5}, {"clip_fraction": 0.51}),
    "learning.far_ratio": ({"ratio/max": 100.0}, {"ratio/max": 101.0}),
    "learning.mismatch": ({"mismatch_kl": 0.01}, {"mismatch_kl": 0.011}),
    "learning.cut_texts": ({"rollout/finished": 0.1}, {"rollout/finished": 0.09}),
    # a truth 0.1 below its best of 0.6, and a reward half of the first spread of 0.4 above its 0.4
    "learning.reward_hacking": (
        {"truth": 0.501, "reward/mean": 0.9},
        {"truth": 0.499, "reward/mean": 0.601},
    ),
    "learning.false_positives": ({"false_positive_rate": 0.3}, {"false_positive_rate": 0.31}),
    "learning.false_negatives": ({"false_negative_rate": 0.5}, {"false_negative_rate": 0.51}),
    "learning.disagreement": ({"agreement": 0.5}, {"agreement": 0.49}),
    "learning.miscalibrated": ({"calibration": 0.25}, {"calibration": 0.26}),
    "learning.position_bias": ({"swap/consistent": 0.6}, {"swap/consistent": 0.59}),
    "learning.dominating": ({"win_rate.actor": 0.94}, {"win_rate.actor": 0.96}),
    "learning.failing_tool": ({"tool/errors": 0.89}, {"tool/errors": 0.9}),
    "learning.uncalled_tool": ({"tool/calls": 0.01}, {"tool/calls": 0.0}),
    "learning.blind_critic": ({"explained_variance": 0.0}, {"explained_variance": -0.01}),
}
"""By symptom what is just well, and what is just not, after ten healthy readings."""


@pytest.mark.parametrize("code", SICK)
def test_each_symptom_begins_at_its_border(code: str) -> None:
    well, ill = BORDERS[code]

    assert play([HEALTHY] * 10 + [{**HEALTHY, **well}] * 40) == []
    assert [one.code for one in play([HEALTHY] * 10 + [{**HEALTHY, **ill}] * 40)] == [code]


def test_every_symptom_has_its_case_here() -> None:
    assert [one.code for one in SYMPTOMS] == list(SICK)


def test_a_short_run_is_told_at_its_end_what_held_all_the_time() -> None:
    checks = HealthChecks()
    assert play([{**HEALTHY, "grad_norm": 0.0, "loss": 0.0}] * 2, checks) == []

    [found] = checks.run_finished(2)

    assert found.code == "learning.no_update"
    assert found.message == (
        "actor: its gradient is 0 (loss 0, reward/mean 0.4, reward/std 0.4): no weight changes "
        "(in 2 readings in a row)"
    )
    assert checks.open == [found]


def test_a_run_that_learned_at_first_is_not_told_of_its_last_step_alone() -> None:
    checks = HealthChecks()

    assert play([HEALTHY, {**HEALTHY, "grad_norm": 0.0}], checks) == []
    assert checks.run_finished(2) == []


def test_a_short_run_whose_every_call_of_a_tool_failed_is_told_at_its_end() -> None:
    checks, other = HealthChecks(), HealthChecks()
    broken = {**HEALTHY, "tool/errors": 1.0}
    assert play([broken] * 2, checks) == []
    assert play([broken, HEALTHY], other) == []

    [found] = checks.run_finished(2)

    assert (found.code, found.node) == ("learning.failing_tool", "actor")
    assert found.message == "actor: 100% of its calls end in an error (in 2 readings in a row)"
    assert other.run_finished(2) == []


def test_a_node_that_knows_why_has_it_said_with_what_it_shows() -> None:
    """The reason of the reading that counts: a round that left none out takes it back."""
    checks, reasons = HealthChecks(), {"rows/left_out": "2 have no values", "loss": "another"}
    for step in range(3):
        checks.hear("actor", {"rows/left_out": 0.5}, reasons)
        found = checks.step_finished(step, "rl")
    checks.hear("other", {"rows/left_out": 0.5}, reasons)
    checks.hear("other", {"rows/left_out": 0.25})
    checks.step_finished(3, "rl")

    assert [one.message for one in [*found, *checks.run_finished(3)]] == [
        "actor: 50% of its rows are dropped from the update, because scores of its "
        "reference or critic are missing: 2 have no values (in 3 readings in a row)",
        "other: 25% of its rows are dropped from the update, because scores of its "
        "reference or critic are missing (in one reading)",
    ]


@pytest.mark.parametrize(("rounds", "told"), [((1.0, 1.0), 1), ((0.0, 1.0), 0), ((1.0, 0.0), 0)])
def test_rows_that_end_in_one_round_of_several_are_well(
    rounds: tuple[float, ...], told: int
) -> None:
    checks = HealthChecks()
    for step in range(3):
        for share in rounds:
            checks.hear("again", {"rows/none": share})
        found = checks.step_finished(step, "rl")

    assert [one.code for one in found] == ["learning.nothing_goes_on"] * told


def test_a_reward_that_rises_with_the_truth_is_not_gamed() -> None:
    both = {**HEALTHY, "reward/mean": 0.9, "truth": 0.9}
    neither = {**HEALTHY, "reward/mean": 0.1, "truth": 0.3}

    assert play([HEALTHY] * 10 + [both] * 30) == []
    assert play([HEALTHY] * 10 + [neither] * 30) == []


def test_a_truth_is_compared_with_its_best_and_not_with_its_beginning() -> None:
    """Learned at first, then gamed: from 0.2 over 0.8 to 0.4, which is more than at the start."""
    start = {**HEALTHY, "truth": 0.2}
    learned = {**HEALTHY, "reward/mean": 0.7, "truth": 0.8}
    gamed = {**HEALTHY, "reward/mean": 0.95, "truth": 0.4}

    [found] = play([start] * 10 + [learned] * 10 + [gamed] * 30)

    assert (found.code, found.metric) == ("learning.reward_hacking", "reward/mean")
    assert "its reward rose from 0.4 to 0.95 while the true score fell from 0.8 to 0.4" in (
        found.message
    )


def test_the_truth_of_a_learner_comes_from_an_evaluation() -> None:
    """Read at every second step; between two readings nothing is said of the truth."""
    checks = HealthChecks({"actor": Truth(node="probe", metric="exact.accuracy")})
    healthy = {name: value for name, value in HEALTHY.items() if name != "truth"}
    found = []
    for step in range(1, 61):
        is_gamed = step > 20
        checks.hear("actor", {**healthy, "reward/mean": 0.9 if is_gamed else 0.4})
        checks.hear("other", healthy)
        found += checks.step_finished(step, "rl")
        if step % 2 == 0:
            read = {"exact.accuracy": 0.2 if is_gamed else 0.7, "length.score": 1.0}
            found += checks.evaluated("probe", read, step, "rl")
        checks.load_state(json.loads(json.dumps(checks.state())))

    # five readings of the fallen truth: three make the median, three medians the patience
    assert [(one.code, one.node, one.step) for one in found] == [
        ("learning.reward_hacking", "actor", 31)
    ]


def test_of_several_scorers_of_an_evaluation_each_is_looked_at_for_itself() -> None:
    checks = HealthChecks()
    read = {"judge.false_positive_rate": 0.6, "rule.false_positive_rate": 0.0, "win_rate.a": 0.5}

    found = [one for step in range(5) for one in checks.evaluated("trust", read, step, "rl")]

    assert [(one.code, one.node) for one in found] == [("learning.false_positives", "trust")]
    assert found[0].message.startswith("trust.judge: it accepts 60% of the wrong texts")


def test_entropy_and_kl_that_bought_reward_are_no_collapse() -> None:
    better = {**HEALTHY, "entropy": 0.001, "kl": 3.0, "reward/mean": 0.95, "truth": 0.9}

    assert play([HEALTHY] * 10 + [better] * 30) == []


def test_what_learns_without_scores_is_meant_to_grow_certain_and_to_leave_its_reference() -> None:
    """Imitation and preferences: neither has a reward that could pay for it."""
    start = {"entropy": 5.5, "kl": 0.0, "loss": 5.5, "grad_norm": 0.7}
    learned = {"entropy": 0.01, "kl": 20.0, "loss": 0.02, "grad_norm": 0.1}

    assert play([start] * 10 + [learned] * 30) == []
    scored = [{**one, "reward/mean": 0.4} for one in [start] * 10 + [learned] * 30]
    assert {one.code for one in play(scored)} == {
        "learning.entropy_collapse",
        "learning.kl_runaway",
    }


def test_no_reward_pays_for_a_policy_that_the_reference_would_never_be() -> None:
    gamed = {**HEALTHY, "kl": 30.0, "reward/mean": 0.95}

    assert [one.code for one in play([HEALTHY] * 10 + [gamed] * 30)] == ["learning.kl_runaway"]


def test_a_policy_that_begins_far_from_its_reference_has_not_run_away() -> None:
    """As after a warm-up: the reference is what the run began with, the phase is not to blame."""
    far = [{**HEALTHY, "kl": 3.0 + 0.02 * step} for step in range(40)]
    further = [{**HEALTHY, "kl": 3.0 + 0.04 * step} for step in range(40)]

    assert play(far) == []
    [found] = play(further)
    assert found.message.startswith(
        "actor: its distance from the reference grew from 3 to 4.12 nats"
    )
    assert "the reward did not rise" in found.message


def test_a_policy_that_runs_away_in_its_first_step_is_told() -> None:
    """Five readings make the reward's beginning; from the sixth on three in a row are told."""
    [found] = play([{**HEALTHY, "kl": 0.0}] + [{**HEALTHY, "kl": 20.0}] * 30)

    assert (found.code, found.step) == ("learning.kl_runaway", 8)


def test_each_phase_has_its_own_beginning_and_its_own_streaks() -> None:
    checks = HealthChecks()
    narrow = {**HEALTHY, "entropy": 0.01, "kl": 4.0}
    flat = {**HEALTHY, "grad_norm": 0.0}

    assert play([HEALTHY] * 10, checks, phase="warm-up") == []
    assert play([narrow] * 20, checks, phase="rl") == []
    assert play([flat] * 2, checks, phase="warm-up") == []
    assert play([flat] * 2, checks, phase="rl") == []


def test_one_step_far_out_is_no_runaway() -> None:
    spike = {**HEALTHY, "kl": 8.0, "ratio/max": 1e3, "clip_fraction": 1.0}

    assert play(([HEALTHY] * 9 + [spike]) * 5) == []


def test_groups_of_one_that_learn_without_a_baseline_are_no_lack_of_spread() -> None:
    assert play([{**HEALTHY, "group/zero_variance": 1.0}] * 30) == []


def test_a_learner_that_pauses_keeps_its_streak() -> None:
    flat = {**HEALTHY, "grad_norm": 0.0}

    found = play([flat, {}, flat, {}, flat])

    assert [(one.code, one.step) for one in found] == [("learning.no_update", 5)]


def test_a_resume_neither_forgets_nor_repeats() -> None:
    flat = {**HEALTHY, "grad_norm": 0.0}
    first, second, third = HealthChecks(), HealthChecks(), HealthChecks()
    assert play([flat] * 2, first) == []

    second.load_state(json.loads(json.dumps(first.state())))

    assert len(play([flat], second)) == 1
    third.load_state(json.loads(json.dumps(second.state())))
    assert play([flat] * 5, third) == []
    assert third.open == second.open


def test_a_resume_compares_with_the_same_readings() -> None:
    """Two of the last five are ill before the resume: the third after it makes the median."""
    ill = {**HEALTHY, "kl": 2.0}
    first, second = HealthChecks(), HealthChecks()
    assert play([HEALTHY] * 10 + [ill] * 2, first) == []

    second.load_state(json.loads(json.dumps(first.state())))

    assert [one.step for one in play([ill] * 10, second)] == [3]
