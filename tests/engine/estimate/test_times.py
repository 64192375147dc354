"""How long stages and steps take."""

import pytest
from tests.engine.estimate.conftest import stage_of

from coloop.plan.cost import estimate
from coloop.plan.settings.throughput import STAGE_SECONDS
from coloop.plan.unrolled import Unrolled


def test_rates_and_seconds_belong_together(grpo):
    stage = stage_of(estimate(grpo()), "actor.generate")

    assert stage.seconds * stage.samples_per_second == pytest.approx(128 * 8)


def test_the_bottleneck_is_the_longest_stage(grpo):
    found = estimate(grpo())

    longest = max(found.stages, key=lambda stage: stage.seconds)
    assert found.bottleneck == longest.stage


def test_long_answers_make_writing_the_bottleneck(grpo):
    rollout = {"max_new_tokens": 16_384}
    spec = grpo(nodes={"actor": {"rollout": rollout}, "problems": {"rows_per_step": 8}})

    assert estimate(spec).bottleneck == "actor.generate"


def test_a_slow_processor_with_fast_memory_is_held_back_by_learning(grpo):
    def share(preset):
        found = estimate(grpo(hardware={"preset": preset}))
        learn, generate = (stage_of(found, f"actor.{verb}") for verb in ("learn", "generate"))
        return learn.seconds / generate.seconds

    assert share("8xH20") > 1.3 * share("8xH100")


def test_pools_side_by_side_overlap_with_staleness(grpo):
    pools = {
        "nodes": {
            "actor": {"pool": "train", "rollout": {"pool": "write"}},
            "start": {"pool": "train"},
        },
        "hardware": {"pools": {"train": {"gpus": 4}, "write": {"gpus": 4}}},
    }
    synchronous = estimate(grpo(**pools))
    stale = estimate(grpo(**pools, schedule={"steps": 100, "max_staleness": 1}))

    assert stale.step_seconds < synchronous.step_seconds
    assert stale.step_seconds >= max(stage.seconds for stage in stale.stages)


def test_twice_the_rows_take_longer(grpo):
    small = estimate(grpo(nodes={"problems": {"rows_per_step": 128}}))
    large = estimate(grpo(nodes={"problems": {"rows_per_step": 512}}))

    assert large.step_seconds > 2 * small.step_seconds


def test_epochs_repeat_the_update_but_not_the_old_log_probs(grpo):
    """The rows have the log-probs of the old policy measured once, which takes as long as a
    reference."""
    found = estimate(grpo())
    once, measured = (stage_of(found, name).seconds for name in ("actor.learn", "start.score"))
    twice = stage_of(
        estimate(grpo(nodes={"actor": {"training": {"epochs": 2}}})), "actor.learn"
    ).seconds

    assert twice == pytest.approx(2 * once - measured, rel=0.02)


@pytest.mark.parametrize(
    ("learn", "rows", "passes", "steps"),
    [
        ({}, 2 * 128, 2, 2 * 2 * 128 / 64),
        ({"second": {"updates": 3}}, 2 * 128, 2 * 3, 2 * 3 * 2 * 128 / 64),
        ({"actor": {"updates": 3}}, 2 * 128, 2 * 3, 2 * 3 * 2 * 128 / 64),
        ({"second": {"rows": 512}}, 128 + 512, 2, 2 * 640 / 64),
    ],
)
def test_an_update_of_two_learners_counts_the_rules_of_both(grpo, learn, rows, passes, steps):
    """16 problems x 8 texts of each writer, learned twice in mini-batches of 64."""
    spec = grpo(
        nodes={
            "problems": {"rows_per_step": 16},
            "actor": {
                "training": {"mini_batch": 64, "epochs": 2},
                "algorithm": {"rewards": {"name": "grpo", "kl": None}},
            },
            "start": None,
            "second": {
                "kind": "actor",
                "model": {"type": "shared", "with": "actor"},
                "rollout": {"completions_per_prompt": 8, "max_new_tokens": 64},
                "algorithm": {"rewards": {"name": "grpo"}},
            },
            "also": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        },
        edges=[
            "problems.rows -> actor.prompts",
            "problems.rows -> second.prompts",
            "actor.rollouts -> exact.rollouts",
            "second.rollouts -> also.rollouts",
            "exact.scores -> actor.rewards",
            "also.scores -> second.rewards",
        ],
        schedule={"learn": learn},
    )
    update = Unrolled(spec).settings().memory.updates["actor"].work

    assert (update.sequences, update.passes, update.mini_batches) == (rows, passes, steps)


def test_a_large_7b_step_takes_seconds_not_hours(grpo):
    assert 5 < estimate(grpo()).step_seconds < 120


def _pairs(grpo, name):
    return grpo(
        nodes={
            "problems": {
                "source": {"type": "hub", "path": "pairs", "task": None},
                "tokens": {"mean": 1000, "max": 2000},
            },
            "actor": {
                "algorithm": {"name": name, "rewards": None},
                "rollout": None,
            },
            "exact": None,
        },
        edges=[
            "problems.pairs -> actor.pairs",
            "problems.pairs -> start.pairs",
            "start.log_probs -> actor.reference",
        ],
    )


def test_kto_measures_each_answer_under_another_prompt_too(grpo):
    """A pass of the reference twice as long, and one of the policy over both before it learns."""
    plain, measuring = (estimate(_pairs(grpo, name)) for name in ("dpo", "kto"))

    def seconds(found, stage):
        return stage_of(found, stage).seconds - STAGE_SECONDS

    score, measured = (seconds(one, "start.score") for one in (plain, measuring))
    assert measured == pytest.approx(2 * score, rel=0.01)
    added = seconds(measuring, "actor.learn") - seconds(plain, "actor.learn")
    assert added == pytest.approx(measured, rel=0.01)


def test_a_filter_takes_time_for_the_rows_that_it_drops_as_well(grpo):
    """128 prompts with 8 completions are 1,024 rows, of which 2 a prompt are kept: 1,024 times
    30 us and 1 ms for the stage."""
    nodes = {"few": {"kind": "filter", "per_group": {"max": 2, "pick": "first"}}}
    found = estimate(
        grpo(
            nodes={**nodes, "start": None},
            edges=[
                "problems.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "actor.rollouts -> few.rollouts",
                "exact.scores -> few.scores",
                "few.scores -> actor.rewards",
            ],
        )
    )

    assert stage_of(found, "few.prepare").seconds == pytest.approx(1024 * 3e-5 + 1e-3)


@pytest.mark.parametrize(
    ("template", "each"),
    [
        ({"text": "{{ prompt }}"}, 5e-5),
        ({"text": "{{ prompt }}", "target": "{{ answer }}"}, 10e-5),
        ({"text": "{{ prompt }}", "columns": {"a": "{{ answer }}", "b": "{{ prompt }}"}}, 15e-5),
        ({"code": "def write(prompt, **columns):\n    return {'prompt': prompt}"}, 8e-5),
    ],
)
def test_a_template_takes_time_for_each_text_of_a_row(grpo, template, each):
    """128 rows, 50 us for each text or 80 us for a function, and 1 ms for the stage."""
    found = estimate(
        grpo(
            nodes={"ask": {"kind": "template", **template}, "start": None},
            edges=[
                "problems.rows -> ask.rows",
                "ask.rows -> actor.prompts",
                "actor.rollouts -> exact.rollouts",
                "exact.scores -> actor.rewards",
            ],
        )
    )

    assert stage_of(found, "ask.prepare").seconds == pytest.approx(128 * each + 1e-3)
