"""Groups that are always of one: which filters they make useless, and which they do not."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.spec import presets
from coloop.spec.diagnostics import Change, Diagnostic, Report, Severity
from coloop.spec.io import parse, patch
from coloop.validate import validate

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


def about(report: Report, code: str = "learning.group_of_one") -> list[Diagnostic]:
    return [one for one in report.diagnostics if one.code == code]


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


def test_spare_rows_pass_by_the_rules(check: Check) -> None:
    spare = ("add", "generator.rollouts -> mid.spare")
    full = ("set", "nodes.mid.up_to", 16)

    assert about(check("judges", *through({"rule": "nonzero_variance"}), spare, full, ONE)) == []


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


@pytest.mark.parametrize(
    ("others", "severity"),
    [
        ([1], Severity.ERROR),
        ([8], Severity.WARNING),
        ([1, 8], Severity.WARNING),
        ([], Severity.ERROR),
    ],
)
def test_what_another_trigger_may_set_right_is_a_warning(
    others: list[int], severity: Severity, check: Check
) -> None:
    when = {"metric": "probe.accuracy", "above": 0.5}
    path = "nodes.actor.rollout.completions_per_prompt"
    triggers = [{"when": when, "do": {"set": {path: count}}} for count in [1, *others]]

    report = check("grpo", ("set", "schedule.triggers", triggers))

    [found] = about(report)
    assert (found.node, found.severity) == ("actor", severity)


def test_what_is_sure_is_told_before_what_is_not(check: Check) -> None:
    when = {"metric": "generator.kl", "above": 0.5}
    verifier = COMPLETIONS.replace("generator", "verifier")
    sets = [{COMPLETIONS: 1}, {COMPLETIONS: 4}, {verifier: 1}]
    triggers = [{"when": when, "do": {"set": one}} for one in sets]

    found = about(check("judges", ("set", "schedule.triggers", triggers)))

    told = {one.node: one.severity for one in found}
    assert told == {"generator": Severity.WARNING, "verifier": Severity.ERROR}


def test_a_filter_after_a_trigger(check: Check) -> None:
    when = {"metric": "generator.kl", "above": 0.5}
    do = {"set": {COMPLETIONS: 1}}
    many = ("set", "nodes.generator.algorithm.rewards.name", "reinforce")
    trigger = ("set", "schedule.triggers", [{"when": when, "do": do}])

    found = about(check("judges", *through({"rule": "nonzero_variance"}), many, trigger))

    assert [one.node for one in found] == ["mid"]


def taught(*edges: str, turns: dict[str, Any], completions: int = 1) -> list[tuple[Any, ...]]:
    """The policy behind the tool of `tools` learns from rewards."""
    rollout = {"max_new_tokens": 24, "completions_per_prompt": completions}
    return [
        ("set", "nodes.policy.rollout.turns", turns),
        ("set", "nodes.reader.rollout", rollout),
        ("set", "nodes.reader.algorithm", {"rewards": {"name": "grpo"}}),
        ("set", "schedule.phases.2.learn", ["policy.rewards", "reader.rewards"]),
        *(("add", edge) for edge in edges),
    ]


OWN = ["reader.rollouts -> short.rollouts", "short.scores -> reader.rewards"]
SHORT = (
    "set",
    "nodes.short",
    {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 9}},
)


@pytest.mark.parametrize("completions", [1, 3])
def test_what_a_policy_behind_a_tool_wrote_is_not_told_apart_by_its_callers_score(
    completions: int, check: Check
) -> None:
    changes = taught("exact.scores -> reader.rewards", turns={"max": 4}, completions=completions)
    wider = ("set", "nodes.reader.credit", {"group_by": ["questions"]})

    report = check("tools", *changes)

    [found] = report.diagnostics
    assert (found.code, found.node, found.field) == ("learning.equal_scores", "reader", "rewards")
    assert "phase `rl`" in found.message
    assert "`exact.scores -> reader.rewards` scores rows of `policy`" in found.message
    assert "`credit: {group_by: [questions]}`" in (found.hint or "")
    assert check("tools", *changes, wider).diagnostics == ()


def test_a_score_of_its_own_tells_them_apart(check: Check) -> None:
    shared = "exact.scores -> reader.rewards"

    assert check("tools", SHORT, *taught(shared, *OWN, turns={"max": 4})).diagnostics == ()


@pytest.mark.parametrize(
    ("turns", "completions", "is_alone"),
    [
        ({"max": 1}, 1, True),
        ({"max": 2, "last": "cut"}, 1, True),
        ({"max": 1}, 2, False),
        ({"max": 2}, 1, False),
    ],
)
def test_a_policy_that_is_asked_once_is_alone(
    turns: dict[str, Any], completions: int, is_alone: bool, check: Check
) -> None:
    report = check("tools", SHORT, *taught(*OWN, turns=turns, completions=completions))

    assert [one.node for one in about(report)] == ["reader"] * is_alone
    assert len(report.diagnostics) == is_alone


def test_several_parts_of_an_answer_are_one_group(check: Check) -> None:
    packed = ("set", "nodes.condense.pack", {"rule": "first_fit_decreasing", "tokens": 64})

    assert about(check("tools", SHORT, packed, *taught(*OWN, turns={"max": 1}))) == []


def test_a_verifier_that_is_paid_for_what_it_reads_learns_nothing(check: Check) -> None:
    given = (
        ("cut", "agrees.scores -> verifier.rewards"),
        ("add", "exact.scores -> verifier.rewards"),
    )

    [found] = about(check("judges", *given), "learning.equal_scores")

    assert found.node == "verifier"
    free = ("set", "nodes.verifier.algorithm.rewards.name", "reinforce")
    assert about(check("judges", *given, free), "learning.equal_scores") == []


def test_a_score_that_goes_up_and_down_again_is_one_for_all(check: Check) -> None:
    sideways = {"from": "exact.scores", "to": "rival.rewards", "aggregate": "mean"}
    rival = {
        "kind": "actor",
        "model": {"type": "pretrained", "path": "x"},
        "rollout": {"completions_per_prompt": 4},
        "algorithm": {"name": "grpo"},
    }

    [found] = about(
        check(
            "judges",
            ("set", "nodes.rival", rival),
            ("add", "problems.rows -> rival.prompts"),
            ("add", sideways),
            ("set", "schedule.phases.0.phases.0.learn", ["generator.rewards", "rival.rewards"]),
        ),
        "learning.equal_scores",
    )

    assert found.node == "rival"


def test_rows_of_others_give_filtered_rows_no_second_reward() -> None:
    text = presets.load_loop_text("critique-grpo")
    twice = patch(
        text, [Change(op="add_edge", path="edges", value="exact.scores -> policy.rewards")]
    )

    alone, around = (parse(one).spec for one in (text, twice))

    assert alone is not None
    assert around is not None
    assert not validate(alone).diagnostics
    assert "learning.cut_rows" in {found.code for found in validate(around).diagnostics}
