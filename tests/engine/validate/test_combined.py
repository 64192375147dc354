"""Scores that are put together: every one that comes in is read, and one of them counts."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.spec.diagnostics import Report

Check = Callable[..., Report]
WEIGHTS = "nodes.mix.source.weights"


def mixed(source: dict[str, Any], *, also: str | None = None) -> list[tuple[Any, ...]]:
    """The policy is paid by what a reward makes of two scores."""
    brief = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 9}}
    return [
        ("set", "nodes.brief", brief),
        ("set", "nodes.mix", {"kind": "reward", "source": {"type": "builtin", **source}}),
        ("cut", "exact.scores -> actor.rewards"),
        ("add", "actor.rollouts -> brief.rollouts"),
        ("add", "brief.scores -> mix.scores"),
        ("add", "exact.scores -> mix.scores"),
        ("add", "mix.scores -> actor.rewards"),
        *([("add", also)] if also else []),
    ]


def weighted(**weights: float) -> dict[str, Any]:
    return {"name": "weighted", "weights": weights}


@pytest.mark.parametrize(
    "source",
    [
        weighted(exact=1.0),
        {"name": "gate", "value": "exact", "by": "exact", "min": 0.5},
        {"name": "agreement", "columns": ["exact", "exact"]},
    ],
)
def test_a_scorer_that_is_not_named_is_told(source: dict[str, Any], check: Check) -> None:
    [found] = check("grpo", *mixed(source)).diagnostics

    assert found.code == "structure.unread_input"
    assert f"`brief.scores -> mix.scores` is not used: `{source['name']}`" in found.message


def test_scores_that_a_filter_brings_have_its_name(check: Check) -> None:
    kept = ("set", "nodes.kept", {"kind": "filter", "keep": [{"rule": "score", "min": 0.1}]})
    edges = [
        ("cut", "brief.scores -> mix.scores"),
        ("add", "brief.scores -> kept.scores"),
        ("add", "kept.scores -> mix.scores"),
    ]

    right = check("grpo", *mixed(weighted(exact=1.0, kept=0.5)), kept, *edges)
    [found] = check("grpo", *mixed(weighted(exact=1.0, brief=0.5)), kept, *edges).diagnostics

    assert right.diagnostics == ()
    assert (found.code, found.field) == ("structure.unknown_score", "source.weights.brief")


def test_a_scorer_that_a_phase_names_is_read(check: Check) -> None:
    later = ("set", "schedule.phases.1.set", {WEIGHTS: {"exact": 0.5, "brief": 0.5}})

    assert check("grpo", *mixed(weighted(exact=1.0)), later).diagnostics == ()


def test_scores_of_which_the_first_counts_are_all_read(check: Check) -> None:
    assert check("grpo", *mixed({"name": "first"})).diagnostics == ()


NOTHING = weighted(exact=0.0, brief=0.0)
SOME = weighted(exact=0.0, brief=-1.0)
ALSO = "exact.scores -> actor.rewards"


@pytest.mark.parametrize(
    ("source", "also", "changes", "where"),
    [
        (NOTHING, None, [], " is 0, so"),
        (NOTHING, ALSO, [], " is 0, so"),
        (SOME, None, [("set", "schedule.phases.1.set", {f"{WEIGHTS}.brief": 0})], " in phase `rl`"),
        (
            SOME,
            None,
            [("set", "schedule.phases.1.set", {WEIGHTS: {"exact": 0, "brief": 0}})],
            " in phase `rl`",
        ),
    ],
)
def test_a_sum_of_nothing_is_found(
    source: dict[str, Any],
    also: str | None,
    changes: list[tuple[Any, ...]],
    where: str,
    check: Check,
) -> None:
    [found] = check("grpo", *mixed(source, also=also), *changes).diagnostics

    assert (found.code, found.node) == ("learning.every_weight_zero", "mix")
    assert found.field == "source.weights"
    assert where in found.message


@pytest.mark.parametrize(
    ("source", "also", "changes"),
    [
        (SOME, None, []),
        (SOME, ALSO, [("set", "schedule.phases.1.set", {f"{WEIGHTS}.brief": 0})]),
        (NOTHING, None, [("set", "schedule.phases.1.set", {f"{WEIGHTS}.brief": 1.0})]),
        (
            NOTHING,
            None,
            [("set", "schedule.anneal", [{"path": f"{WEIGHTS}.exact", "from": 0, "to": 1}])],
        ),
        (
            NOTHING,
            None,
            [("set", "schedule.triggers.0.do", {"set": {WEIGHTS: {"exact": 1, "brief": 0}}})],
        ),
    ],
)
def test_a_sum_of_something_is_fine(
    source: dict[str, Any], also: str | None, changes: list[tuple[Any, ...]], check: Check
) -> None:
    assert check("grpo", *mixed(source, also=also), *changes).diagnostics == ()
