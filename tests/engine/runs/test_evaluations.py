"""Evaluations in whole runs beside what else a loop has: a refill, a verifier that is measured, two
readings of one step, a stop; and metrics for which nothing comes."""

from collections.abc import Callable
from typing import Any

from tests.engine.runs.test_resume import at_stage

from coloop.runtime.run_files.events import RunStateName

Run = Callable[..., Any]

LOOP = """
coloop: 1
name: measured
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 3}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 8}, rows_per_step: 4}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 3, max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  digit:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.1}
  judge:
    kind: verifier
    method: discriminative
    model: {type: copy, of: actor}
    read: {activation: sigmoid}
    algorithm: {labels: {name: outcome, soft: true}}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  varied: {kind: filter, keep: [{rule: nonzero_variance}], fill: {groups: 3, max_rounds: 3}}
  probe:
    kind: evaluate
    instead_of: sums
    every: 2
    samples: 4
    right_at: 0.2
    metrics: [pass@4, majority@3, best_of@4, score]
  trust:
    kind: evaluate
    every: 1
    right_at: 0.5
    metrics: [calibration, brier, agreement, false_positive_rate, pair_accuracy, pass@9]
edges:
  - sums.rows -> actor.prompts
  - actor.rollouts -> digit.rollouts
  - digit.scores -> varied.scores
  - actor.rollouts -> varied.rollouts
  - varied.rollouts -> judge.rollouts
  - varied.scores -> judge.labels
  - varied.scores -> actor.rewards
  - {from: judge.scores, to: actor.rewards, weight: 0.1}
  - held_out.rows -> probe.rows
  - digit.scores -> probe.scores
  - judge.scores -> probe.selectors
  - judge.scores -> trust.scores
  - varied.scores -> trust.labels
schedule: {steps: 3}
hardware: {preset: cpu}
run: {seed: 7}
"""


def test_a_verifier_is_measured_behind_a_refill_and_on_other_rows(whole: Run) -> None:
    ended = whole(LOOP)

    assert [event["step"] for event in ended.of("metrics", node="probe")] == [0, 2, 3]
    assert [event["step"] for event in ended.of("metrics", node="trust")] == [1, 2, 3]
    for value in ended.metrics("probe", "best_of@4"):
        assert 0.0 <= value <= 1.0
    # of the same four texts some one is right at least as often as the one that is chosen
    for most, chosen in zip(
        ended.metrics("probe", "pass@4"), ended.metrics("probe", "best_of@4"), strict=True
    ):
        assert most >= chosen
    for share, error in zip(
        ended.metrics("trust", "calibration"), ended.metrics("trust", "brier"), strict=True
    ):
        assert share**2 <= error + 1e-6  # no mean gap is larger than the root of the mean square


def test_what_could_not_be_measured_is_told_once(whole: Run) -> None:
    told = [event for event in whole(LOOP).of("alert") if event["code"] == "evaluation.unmeasured"]

    assert [(event["node"], event["metric"], event["step"]) for event in told] == [
        ("trust", "pass@9", 1)
    ]
    assert "`pass@9` needs at least that many graded texts" in told[0]["hint"]
    assert "calibration" not in told[0]["hint"]


def test_a_stopped_run_that_measures_goes_on_as_if_it_had_never_stopped(
    whole: Run, runner: Run, equal: Callable[..., bool]
) -> None:
    stopped = runner(LOOP, stop_at=at_stage("judge.score", 2))
    resumed = runner(LOOP, resume=stopped)

    assert stopped.state is RunStateName.STOPPED
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(LOOP).weights())
    assert resumed.readings(after=1) == whole(LOOP).readings(after=1)
    assert resumed.alerts().count("evaluation.unmeasured") == 1


def test_a_loop_that_writes_ahead_is_measured_between_whole_steps(
    whole: Run, runner: Run, finished: Callable[[Any], Any]
) -> None:
    text = LOOP.replace("kind: actor\n", "kind: actor\n    pool: train\n")
    text = text.replace("max_new_tokens: 5}", "max_new_tokens: 5, pool: write}")
    text = text.replace("method: discriminative\n", "method: discriminative\n    pool: train\n")
    text = text.replace("{steps: 3}", "{steps: 3, max_staleness: 1}")
    pools = "pools: {train: {workers: 1}, write: {workers: 1}}"

    ended = finished(runner(text.replace("{preset: cpu}", f"{{preset: cpu, {pools}}}")))

    assert max(ended.metrics("actor", "staleness/max")) <= 1
    assert [event["step"] for event in ended.of("metrics", node="probe")] == [0, 2, 3]
    assert [event["step"] for event in ended.of("metrics", node="trust")] == [1, 2, 3]
    # what a reading says of step 0 is said by the weights that the run began with
    assert ended.metrics("probe", "score")[0] == whole(LOOP).metrics("probe", "score")[0]
