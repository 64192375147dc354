"""Groups that are always of one: which filters they make useless, and which they do not."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.diagnostics import Diagnostic, Report

Check = Callable[..., Report]
COMPLETIONS = "nodes.generator.rollout.completions_per_prompt"
ONE = ("set", "schedule.phases.0.phases.1.set", {COMPLETIONS: 1})
BAND = {"rule": "accuracy_band"}


def through(rule: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What a verifier judges goes through a filter with a rule."""
    return [
        ("set", "nodes.mid", {"kind": "filter", "keep": [rule]}),
        ("cut", "generator.rollouts -> verifier.rollouts"),
        ("add", "generator.rollouts -> mid.rollouts"),
        ("add", "exact.scores -> mid.scores"),
        ("add", "mid.rollouts -> verifier.rollouts"),
        ("set", "nodes.generator.credit", {"missing": "skip_row"}),
    ]


def about(report: Report) -> list[Diagnostic]:
    return [one for one in report.diagnostics if one.code == "learning.group_of_one"]


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "nonzero_variance"},
        {"rule": "nonzero_variance", "by": "generator"},
        {**BAND, "min": 0.2, "max": 0.8},
        {**BAND, "open": True},
    ],
)
def test_a_rule_that_no_single_row_can_pass_is_found(rule: dict[str, Any], check: Check) -> None:
    [found] = about(check("judges", *through(rule), ONE))

    assert (found.node, found.field) == ("mid", "keep.0")
    assert f"`{rule['rule']}`" in found.message
    assert "phase `verify`" in found.message
    assert "`verifier.rewards`" in found.message


@pytest.mark.parametrize(
    "rule",
    [
        {**BAND, "min": 0.5},
        {**BAND, "max": 0.8},
        {"rule": "group_mean", "min": 0.5},
        {"rule": "nonzero_variance", "by": "problems"},
        {"rule": "score", "min": 0.5},
    ],
)
def test_a_rule_that_a_single_row_may_pass_is_fine(rule: dict[str, Any], check: Check) -> None:
    assert about(check("judges", *through(rule), ONE)) == []


def test_groups_of_several_are_fine(check: Check) -> None:
    assert about(check("judges", *through({"rule": "nonzero_variance"}))) == []


def test_a_phase_that_learns_from_what_is_not_filtered_is_fine(check: Check) -> None:
    only = ("set", "schedule.phases.0.phases.1.learn", ["generator.rewards"])
    many = ("set", "nodes.generator.algorithm.rewards.name", "reinforce")
    found = check("judges", *through({"rule": "nonzero_variance"}), ONE, only, many)

    assert about(found) == []


def test_a_bound_that_moves_is_not_sure(check: Check) -> None:
    rule = {**BAND, "min": 0.2, "max": 0.8}
    move = {"path": "nodes.mid.keep.0.min", "from": 0.2, "to": 0.0}

    found = check("judges", *through(rule), ONE, ("set", "schedule.anneal", [move]))

    assert about(found) == []


def test_rows_of_a_dataset_are_alone(check: Check) -> None:
    code = "def reward(prompts, **columns):\n    return [1.0 for _ in prompts]\n"
    report = check(
        "grpo",
        ("set", "nodes.easy", {"kind": "reward", "source": {"type": "python", "code": code}}),
        ("set", "nodes.kept", {"kind": "filter", "keep": [{"rule": "nonzero_variance"}]}),
        ("cut", "problems.rows -> actor.prompts"),
        ("add", "problems.rows -> easy.rows"),
        ("add", "problems.rows -> kept.rows"),
        ("add", "easy.scores -> kept.scores"),
        ("add", "kept.rows -> actor.prompts"),
    )

    [found] = about(report)
    assert (found.node, found.field) == ("kept", "keep.0")


@pytest.mark.parametrize(
    ("trigger", "is_found"),
    [
        ({"do": {"set": {"nodes.actor.rollout.completions_per_prompt": 1}}}, True),
        ({"do": {"set": {"nodes.actor.rollout.completions_per_prompt": 2}}}, False),
        ({"do": {"set": {"nodes.actor.rollout.max_new_tokens": 8}}}, False),
        (
            {
                "do": {"set": {"nodes.actor.rollout.completions_per_prompt": 1}, "stop": True},
            },
            False,
        ),
        (
            {
                "in": "rl",
                "do": {
                    "set": {"nodes.actor.rollout.completions_per_prompt": 1},
                    "next_phase": True,
                },
            },
            False,
        ),
    ],
)
def test_a_trigger_may_bring_groups_of_one(
    trigger: dict[str, Any], is_found: bool, check: Check
) -> None:
    when = {"metric": "probe.accuracy", "above": 0.5}

    report = check("grpo", ("set", "schedule.triggers", [{"when": when, **trigger}]))

    told = about(report)
    assert [one.node for one in told] == ["actor"] * is_found
    assert all("phase `rl` once trigger 0 has fired" in one.message for one in told)
    assert all(one.fixes == () for one in told)


def test_a_filter_after_a_trigger(check: Check) -> None:
    when = {"metric": "generator.kl", "above": 0.5}
    do = {"set": {COMPLETIONS: 1}}
    many = ("set", "nodes.generator.algorithm.rewards.name", "reinforce")
    trigger = ("set", "schedule.triggers", [{"when": when, "do": do}])

    found = about(check("judges", *through({"rule": "nonzero_variance"}), many, trigger))

    assert [one.node for one in found] == ["mid"]
