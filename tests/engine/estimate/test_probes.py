"""How long evaluations take: every stage that they run on rows of their own, and losses."""

import pytest
from tests.engine.estimate.conftest import build, stage_of

from coloop.plan.cost import estimate, explain
from coloop.plan.settings.throughput import STAGE_SECONDS

MODEL = {"type": "pretrained", "path": "Qwen/Qwen2.5-7B-Instruct"}
JUDGE = {
    "kind": "verifier",
    "method": "generative",
    "model": MODEL,
    "template": {"text": "Is {{ completion }} right?"},
    "read": {"verdict": "(right|wrong)", "values": {"right": 1, "wrong": 0}},
    "rollout": {"max_new_tokens": 64, "expected_tokens": 32, "max_num_seqs": 64},
}
REWARD_MODEL = {"kind": "verifier", "method": "discriminative", "model": MODEL}
AT_ONCE = {"rollout": {"max_num_seqs": 64}}
EDGES = [
    "problems.rows -> actor.prompts",
    "actor.rollouts -> judge.rollouts",
    "judge.scores -> actor.rewards",
]


def held_out(rows):
    source = {"type": "task", "task": "arithmetic", "split": "test"}
    return {"kind": "dataset", "source": source, "rows_per_step": rows}


def with_probe(judge, *, rows, **probe):
    """GRPO with a model that scores, measured on `rows` held-out rows."""
    asked = {"kind": "evaluate", "instead_of": "problems", "every": 20, "metrics": ["score"]}
    nodes = {"judge": judge, "held_out": held_out(rows), "probe": asked | probe, "actor": AT_ONCE}
    edges = [*EDGES, "held_out.rows -> probe.rows", "judge.scores -> probe.scores"]
    return build(nodes=nodes | {"start": None, "exact": None}, edges=edges)


def with_step(judge, *, rows, completions):
    """The same loop with a step of as many rows as the evaluation has."""
    nodes = {
        "judge": judge,
        "problems": {"rows_per_step": rows},
        "actor": {"rollout": AT_ONCE["rollout"] | {"completions_per_prompt": completions}},
        "start": None,
        "exact": None,
    }
    return build(nodes=nodes, edges=EDGES)


@pytest.mark.parametrize("judge", [JUDGE, REWARD_MODEL], ids=["generative", "discriminative"])
@pytest.mark.parametrize(
    ("probe", "completions"), [({"greedy": True}, 1), ({"samples": 4}, 4), ({}, 8)]
)
def test_a_model_that_scores_reads_what_the_evaluation_generates(judge, probe, completions):
    found = estimate(with_probe(judge, rows=256, **probe))
    step = estimate(with_step(judge, rows=256, completions=completions))

    evaluated = stage_of(found, "probe.evaluate")
    parts = [stage_of(step, name).seconds for name in ("actor.generate", "judge.score")]
    assert evaluated.seconds == pytest.approx(sum(parts) + STAGE_SECONDS, rel=1e-6)
    assert evaluated.samples_per_second * evaluated.seconds == pytest.approx(256 * completions)


def test_metrics_of_k_samples_need_a_second_pass_beside_the_greedy_one():
    both = with_probe(REWARD_MODEL, rows=64, greedy=True, metrics=["score", "pass@4"])
    alone = [
        stage_of(estimate(with_probe(REWARD_MODEL, rows=64, **part)), "probe.evaluate").seconds
        for part in ({"greedy": True}, {"samples": 4})
    ]

    found = stage_of(estimate(both), "probe.evaluate").seconds
    assert found == pytest.approx(sum(alone) - STAGE_SECONDS)


def test_rows_of_rules_are_counted_as_they_are_in_a_step():
    """512 completions at 20 us each and 1 ms for the stage: 0.01124 s beside the generation."""
    nodes = {
        "start": None,
        "held_out": held_out(512),
        "probe": {"kind": "evaluate", "instead_of": "problems", "greedy": True},
    }
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "held_out.rows -> probe.rows",
    ]
    judged = estimate(build(nodes=nodes, edges=[*edges, "exact.scores -> probe.scores"]))
    written = estimate(build(nodes=nodes, edges=[*edges, "actor.rollouts -> probe.rollouts"]))

    more = stage_of(judged, "probe.evaluate").seconds - stage_of(written, "probe.evaluate").seconds
    assert more == pytest.approx(512 * 2e-5 + 1e-3)


def test_a_loss_on_held_out_pairs_reads_both_texts_with_policy_and_reference():
    """96 pairs are 192 texts for each of two models: twice what a reference reads of 192 texts."""
    source = {"type": "task", "task": "preference"}
    nodes = {
        "pairs": {"kind": "dataset", "source": source, "rows_per_step": 96},
        "others": {"kind": "dataset", "source": source | {"split": "test"}, "rows_per_step": 96},
        "fit": {"kind": "evaluate", "of": ["actor.pairs"], "metrics": ["loss"]},
        "actor": {"algorithm": {"rewards": None, "pairs": {"name": "dpo"}}, "rollout": None},
        "problems": None,
        "exact": None,
    }
    edges = [
        "pairs.pairs -> actor.pairs",
        "pairs.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
        "others.pairs -> fit.pairs",
    ]
    found = estimate(build(nodes=nodes, edges=edges))

    read = stage_of(found, "start.score").seconds
    assert stage_of(found, "fit.evaluate").seconds == pytest.approx(2 * read + STAGE_SECONDS)


def test_a_phase_that_evaluates_more_rarely_spends_less_on_it():
    spec = with_probe(REWARD_MODEL, rows=256, greedy=True)
    learn = ["actor.rewards"]
    phases = [
        {"name": "often", "steps": 10, "learn": learn},
        {"name": "rarely", "steps": 10, "learn": learn, "set": {"nodes.probe.every": 200}},
    ]
    spec = spec.model_copy(
        update={"schedule": type(spec.schedule).model_validate({"phases": phases})}
    )
    found = explain(spec)

    each = stage_of(found.estimate, "probe.evaluate").seconds
    often, rarely = (phase.step_seconds for phase in found.phases)
    assert often - rarely == pytest.approx(each / 20 - each / 200)


def test_a_model_that_only_an_evaluation_runs_takes_memory_there():
    """8 GPUs share 4,096 rows, 512 each, of which 8,192 tokens are read at once: what a layer of
    Qwen2.5-7B makes of a token, and two layers that are gathered."""
    nodes = {"judge": REWARD_MODEL, "held_out": held_out(512), "start": None}
    probe = {"kind": "evaluate", "instead_of": "problems", "metrics": ["score"]}
    edges = [
        "problems.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "actor.rollouts -> judge.rollouts",
        "held_out.rows -> probe.rows",
        "judge.scores -> probe.scores",
    ]
    found = explain(build(nodes=nodes | {"probe": probe}, edges=edges))
    step = explain(build(nodes=nodes, edges=[*edges[:4], "judge.scores -> actor.rewards"]))

    assert "judge.score" not in found.phases[0].stages
    only, always = (
        {
            part.part: part.bytes
            for part in one.estimate.gpus[0].parts
            if part.node == "judge" and part.stages == ("judge.score",)
        }
        for one in (found, step)
    )
    assert only["activations"] == always["activations"] > 8192 * 3584 * 2
