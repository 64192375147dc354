"""Rows of every stage, who trains in an update, what a probe loads: numbers worked out by hand."""

from collections.abc import Callable
from typing import Any

from coloop.plan.types import Plan, StageRows

Compiled = Callable[..., Plan]

GRPO = [
    "problems.rows -> actor.prompts",
    "actor.rollouts -> exact.rollouts",
    "exact.scores -> actor.rewards",
]
PLAIN = {"algorithm": {"rewards": {"name": "grpo"}, "demonstrations": {"name": "sft"}}}
WRITER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
}


def rows(plan: Plan, phase: int = 0) -> dict[str, str]:
    return {one.stage: one.rows.text for one in plan.phases[phase].rows}


def stage(plan: Plan, name: str) -> StageRows:
    return next(one for one in plan.phases[0].rows if one.stage == name)


def test_every_stage_of_a_step_says_its_rows(compiled: Compiled) -> None:
    plan = compiled(GRPO, actor=PLAIN)

    assert rows(plan) == {
        "problems.load": "4",
        "actor.generate": "8",
        "exact.score": "8",
        "actor.credit": "8",
        "actor.learn": "8",
    }
    assert stage(plan, "actor.generate").rows.breakdown == "4 rows of `problems` x 2 completions"
    assert stage(plan, "exact.score").edges["actor.rollouts->exact.rollouts"].text == "8"


def test_a_plan_of_an_older_run_folder_is_read(compiled: Compiled) -> None:
    plan = compiled(GRPO, actor=PLAIN)
    older = plan.model_dump_json().replace('"breakdown":', '"ladder":')

    assert Plan.model_validate_json(older) == plan


def test_a_phase_counts_with_the_values_that_it_sets(compiled: Compiled) -> None:
    more = {"nodes.problems.rows_per_step": 6, "nodes.actor.rollout.completions_per_prompt": 3}
    phases = [
        {"name": "one", "steps": 1, "learn": ["actor.rewards"]},
        {"name": "two", "steps": 1, "learn": ["actor.rewards"], "set": more},
    ]
    plan = compiled(GRPO, {"phases": phases}, actor=PLAIN)

    assert rows(plan, 1)["actor.generate"] == "18"


def test_what_a_trigger_may_change_is_not_claimed_to_be_known(compiled: Compiled) -> None:
    when = {"metric": "actor.loss", "above": 0}
    trigger = {"when": when, "do": {"set": {"nodes.problems.rows_per_step": 2}}}
    plan = compiled(GRPO, {"steps": 3, "triggers": [trigger]}, actor=PLAIN)

    assert rows(plan)["actor.generate"] == "some"


def test_a_greedy_extra_is_written_and_scored_and_not_learned(compiled: Compiled) -> None:
    rollout = {"completions_per_prompt": 2, "max_new_tokens": 4, "greedy_extra": True}
    plan = compiled(GRPO, actor={**PLAIN, "rollout": rollout})

    assert rows(plan) == {
        "problems.load": "4",
        "actor.generate": "12",
        "exact.score": "12",
        "actor.credit": "8",
        "actor.learn": "8",
    }


def test_siblings_of_one_place_are_one_row(compiled: Compiled) -> None:
    names = ("ann", "bea", "cid")
    edges = [
        *(f"problems.rows -> {name}.prompts" for name in names),
        *(f"{name}.rollouts -> ask.rows" for name in names),
        "ask.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]
    ask = {"kind": "template", "text": "{{ problems.prompt }}"}
    plan = compiled(edges, actor=PLAIN, ask=ask, **dict.fromkeys(names, WRITER))

    # 4 problems x 2 places under each, then 2 completions for each of the 8 joined rows
    assert rows(plan)["ask.prepare"] == "8"
    assert rows(plan)["actor.generate"] == "16"
    crossed = compiled(
        edges, actor=PLAIN, ask={**ask, "join": "cross"}, **dict.fromkeys(names, WRITER)
    )
    assert rows(crossed)["ask.prepare"] == "32"  # 4 x 2 x 2 x 2


def test_gathered_rows_are_as_many_as_what_gathers_them(compiled: Compiled) -> None:
    edges = [
        "problems.rows -> ann.prompts",
        "ann.rollouts -> ask.rows",
        "ask.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
    ]
    ask = {"kind": "template", "text": "all", "join": {"gather": "problems"}}
    plan = compiled(edges, actor=PLAIN, ask=ask, ann=WRITER)

    assert rows(plan)["ask.prepare"] == "4"
    assert rows(plan)["actor.generate"] == "8"


def test_what_a_filter_keeps_is_at_most_what_came(compiled: Compiled) -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> spread.scores",
        "spread.scores -> actor.rewards",
    ]
    spread = {"kind": "filter", "keep": [{"rule": "nonzero_variance"}]}
    plan = compiled(edges, actor=PLAIN, spread=spread)

    assert rows(plan)["spread.prepare"] == rows(plan)["actor.credit"] == "at most 8"
    assert stage(plan, "actor.credit").rows.least == 0


def test_a_refill_says_rows_of_a_pass_and_what_stands_after_it_sees_all_passes(
    compiled: Compiled,
) -> None:
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> start.rollouts",
        "exact.scores -> spread.scores",
        "spread.scores -> actor.rewards",
        "start.log_probs -> actor.reference",
    ]
    fill = {"groups": 4, "max_rounds": 3, "surplus": "drop"}
    spread = {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": fill}
    plan = compiled(edges, spread=spread)

    assert (stage(plan, "actor.generate").rows.text, stage(plan, "actor.generate").passes) == (
        "8",
        3,
    )
    assert rows(plan)["actor.learn"] == "at most 8"
    assert "actor.generate (8 a pass)" in "\n".join(plan.explain)


def test_slices_that_begin_alike_see_their_own_passes_and_readers_those_of_all(
    compiled: Compiled,
) -> None:
    edges: list[str] = []
    nodes: dict[str, Any] = {}
    for one in "ab":
        edges += [
            f"problems.rows -> {one}.prompts",
            f"{one}.rollouts -> mark_{one}.rollouts",
            f"mark_{one}.scores -> keep_{one}.scores",
            f"keep_{one}.scores -> {one}.rewards",
        ]
        fill = {"groups": 4, "max_rounds": 3}
        nodes[one] = {**WRITER, **PLAIN}
        nodes[f"mark_{one}"] = {
            "kind": "reward",
            "source": {"type": "builtin", "name": "exact_match"},
        }
        nodes[f"keep_{one}"] = {"kind": "filter", "keep": [], "fill": fill}
    edges += ["problems.rows -> a.demonstrations"]

    plan = compiled(edges, **nodes)

    assert stage(plan, "problems.load").passes == 5
    assert stage(plan, "b.generate").passes == 3
    assert stage(plan, "b.generate").edges["problems.rows->b.prompts"].text == "4"
    learn = stage(plan, "a.learn")
    assert learn.edges["problems.rows->a.demonstrations"].text == "at most 20"


def test_a_source_of_two_fills_runs_for_the_passes_of_both(compiled: Compiled) -> None:
    fill = {"groups": 4, "max_rounds": 3}
    kept = {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": fill}
    writer = {**WRITER, **PLAIN}
    edges = [
        edge
        for name in ("ann", "bea")
        for edge in (
            f"problems.rows -> {name}.prompts",
            f"{name}.rollouts -> of_{name}.rollouts",
            f"of_{name}.scores -> kept_{name}.scores",
            f"kept_{name}.scores -> {name}.rewards",
        )
    ]
    scorer = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}}
    plan = compiled(
        [*edges, "problems.rows -> third.demonstrations"],
        ann=writer,
        bea=writer,
        third=writer,
        of_ann=scorer,
        of_bea=scorer,
        kept_ann=kept,
        kept_bea=kept,
    )

    assert stage(plan, "problems.load").passes == 5  # once for both, then 2 more for each
    assert stage(plan, "ann.generate").rows.text == "8"
    assert stage(plan, "ann.generate").passes == 3
    assert rows(plan)["third.learn"] == "at most 20"  # 4 rows in each of the 5 passes


def test_roles_that_share_weights_are_one_joint_update_or_take_turns(compiled: Compiled) -> None:
    edges = [
        "problems.rows -> actor.demonstrations",
        "problems.rows -> twin.demonstrations",
        "held_out.rows -> twin.demonstrations",
    ]
    twin = {
        "kind": "actor",
        "model": {"type": "shared", "with": "actor"},
        "rollout": {"max_new_tokens": 4},
        "algorithm": {"demonstrations": {"name": "sft"}},
    }
    rule = {"twin": {"every": 2, "after": 3}}

    joint = compiled(edges, {"steps": 3, "learn": rule}, actor=PLAIN, twin=twin)
    turns = compiled(edges, {"steps": 3, "order": ["twin", "actor"]}, actor=PLAIN, twin=twin)

    assert joint.phases[0].updates[0].is_joint
    assert (
        "  actor.learn: one joint update of actor (demonstrations; 4 rows) and "
        "twin (demonstrations; 8 rows; every 2 steps; after 3 steps)"
    ) in joint.explain
    assert (
        "  actor.learn: twin (demonstrations; 8 rows), then actor (demonstrations; 4 rows)"
    ) in turns.explain


def test_an_input_that_rests_in_a_phase_brings_no_rows(compiled: Compiled) -> None:
    pairs = {"columns": {"chosen": "target", "rejected": "prompt"}}
    edges = [
        "problems.pairs -> actor.pairs",
        "problems.pairs -> start.pairs",
        "held_out.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
        "held_out.pairs -> fit.pairs",
    ]
    fit = {"kind": "evaluate", "of": ["actor.pairs"], "metrics": ["loss"]}
    plan = compiled(edges, problems=pairs, held_out=pairs, fit=fit)

    assert rows(plan) == {"problems.load": "4", "start.score": "4", "actor.learn": "4"}


def probing(node: dict[str, Any], compiled: Compiled, size: int | None = None) -> Plan:
    source = {"type": "task", "task": "arithmetic", "split": "test", "size": size}
    probe = {"kind": "evaluate", "instead_of": "problems", **node}
    edges = [*GRPO, "held_out.rows -> probe.rows", "exact.scores -> probe.scores"]
    return compiled(edges, actor=PLAIN, held_out={"source": source}, probe=probe)


def test_a_probe_says_what_it_loads_and_how_its_writers_write(compiled: Compiled) -> None:
    plan = probing({"greedy": True, "metrics": ["accuracy", "pass@8"]}, compiled, size=3)

    [probe] = plan.probes
    assert (probe.greedy, probe.samples, probe.writers) == (True, 8, ("actor",))
    assert {one.stage: one.rows.text for one in probe.rows} == {
        "held_out.load": "3",  # 4 rows a step, but a reading takes none of the 3 twice
        "actor.generate": "3",
        "exact.score": "3",
    }
    assert (
        "probe probe, every 20 steps; loads 3 rows of held_out instead of problems; "
        "actor generates greedily, and 8 texts a row for metrics at k"
    ) in plan.explain


def test_a_probe_at_every_step_reads_so(compiled: Compiled) -> None:
    plan = probing({"every": 1, "metrics": ["accuracy"]}, compiled, size=3)

    assert any(line.startswith("probe probe, every step; loads") for line in plan.explain)


def test_a_probe_of_samples_counts_them(compiled: Compiled) -> None:
    [probe] = probing({"samples": 5, "metrics": ["score"]}, compiled, size=64).probes

    assert {one.stage: one.rows.text for one in probe.rows} == {
        "held_out.load": "4",
        "actor.generate": "20",
        "exact.score": "20",
    }
