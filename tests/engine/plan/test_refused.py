"""Why a run refuses a valid loop: one finding for each cause."""

from typing import Any

from coloop.plan.run_check import check_drawn, check_run
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict

SCRATCH = {"type": "scratch", "architecture": "tiny-qwen3"}
PROBLEMS = {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}, "rows_per_step": 8}


def build(nodes: dict[str, Any], edges: list[str], **more: Any) -> LoopSpec:
    document = {
        "coloop": 1,
        "name": "loop",
        "nodes": {"problems": PROBLEMS, **nodes},
        "edges": edges,
        "schedule": {"steps": 1},
        **more,
    }
    parsed = from_dict(document)
    assert parsed.spec is not None, parsed.diagnostics
    return parsed.spec


def actor(name: str = "grpo", **more: Any) -> dict[str, Any]:
    rollout = {"completions_per_prompt": 4, **more}
    return {
        "kind": "actor",
        "model": SCRATCH,
        "rollout": rollout,
        "algorithm": {"rewards": {"name": name}},
    }


EXACT = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}


def test_a_loop_that_runs_has_a_plan_and_nothing_against_it() -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]

    run_check = check_run(build({"actor": actor(), "exact": EXACT}, edges))

    assert run_check.plan is not None
    assert run_check.refusals == ()
    assert run_check.sentence is None


def test_edges_of_a_node_that_does_not_run_are_no_cause_of_their_own() -> None:
    nodes = {
        "actor": actor(),
        "exact": EXACT,
        "tree": {"kind": "search", "method": "puct", "budget": {"tokens": 10}},
    }
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "problems.rows -> tree.rows",
        "actor.policy -> tree.policy",
    ]

    assert [one.field for one in check_run(build(nodes, edges)).refusals] == [
        "budget.searches_per_row"
    ]


def test_what_an_algorithm_never_reads_is_not_called_a_thing_for_later() -> None:
    own = {"algorithm": {"name": "grpo", "tau_positive": 1.2}}
    nodes = {"one": {**actor(), **own}, "exact": EXACT}
    edges = [
        "problems.rows -> one.prompts",
        "one.rollouts -> exact.rollouts",
        "exact.scores -> one.rewards",
    ]

    [refusal] = check_run(build(nodes, edges)).refusals

    assert refusal.message == (
        "no effect: `tau_positive: 1.2` with the loss `clipped`, which does not use it"
    )
    assert refusal.fixes[0].title == "Remove `algorithm.tau_positive`"


def test_the_same_of_several_nodes_is_told_once() -> None:
    shared = {"gpu_memory_utilization": 0.5}
    nodes = {"one": actor(**shared), "two": actor(**shared), "exact": EXACT}
    edges = [
        "problems.rows -> one.prompts",
        "problems.rows -> two.prompts",
        "one.rollouts -> exact.rollouts",
        "exact.scores -> one.rewards",
    ]

    run_check = check_run(build(nodes, edges))

    [refusal] = run_check.refusals
    assert refusal.message.endswith("which does not use it (`one`, `two`)")
    assert run_check.plan is not None
    assert run_check.sentence == (
        "valid, but `run` refuses it: `rollout.gpu_memory_utilization: 0.5` with the `torch`"
        " engine, which does not use it (`one`, `two`)"
    )


def test_a_curriculum_needs_the_scores_of_the_step_before() -> None:
    edges = [
        "problems.rows -> one.prompts",
        "one.rollouts -> exact.rollouts",
        "exact.scores -> one.rewards",
    ]
    drawn = {**PROBLEMS, "curriculum": {"by": "exact"}}
    nodes = {"problems": drawn, "one": actor(), "exact": EXACT}
    ahead = {"steps": 1, "max_staleness": 1}

    assert not check_drawn(build(nodes, edges))
    [refusal] = check_drawn(build(nodes, edges, schedule=ahead))

    assert refusal.path == "nodes.problems.curriculum"
    assert "a curriculum with `max_staleness` (node `problems`)" in refusal.message
