"""Judges with weights, in whole runs: an implicit reward model beside its policy, classifiers of
texts and steps, critics that look ahead differently, scorers on the policy's own weights."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from coloop.models import build_model, save_hf
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.model import ScratchModel

Check = Callable[..., Any]

HEAD = """
coloop: 1
name: scorers
nodes:
  problems: {kind: dataset, source: {type: task, task: last_letter, size: 32}, rows_per_step: 3}
  actor:
    kind: actor
    model: &tiny {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 5}
    algorithm: &rewards {rewards: {name: rloo, whiten: true}}
    credit: {combine: separate_advantages}
    training: &fast {optimizer: {name: adamw, lr: 1.0e-3}}
  short: {kind: reward, source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}}
"""
PRIME = (
    HEAD
    + """
  start: {kind: reference, model: {type: snapshot, of: actor, refresh: never}}
  prm:
    kind: verifier
    method: implicit_prm
    model: {type: copy, of: actor}
    read: {granularity: token, normalise: running}
    algorithm: {labels: {name: implicit_prm, soft: true}}
    training: *fast
  fresh: {kind: evaluate, every: 2, metrics: [score]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> start.rollouts
  - actor.rollouts -> prm.rollouts
  - start.log_probs -> prm.prior
  - short.scores -> prm.labels
  - {from: prm.step_scores, to: actor.rewards, id: process, weight: 5.0}
  - {from: short.scores, to: actor.rewards, id: outcome, weight: 5.0}
  - prm.scores -> fresh.scores
schedule: {steps: 4, learn: {prm: {when: before_score}}}
hardware: {preset: cpu}
run: {checkpoint_every: 2}
"""
)


def step_3_begins(event: Mapping[str, Any]) -> bool:
    """When a run of several steps is stopped."""
    return event["type"] == "stage.started" and event.get("step") == 3


def test_an_implicit_reward_model_learns_before_it_scores(runner: Check, finished: Check) -> None:
    ended = finished(runner(PRIME))

    stages = ended.stages(2)
    foreseen, learned, scored, credited = (
        stages.index(name) for name in ("prm.foresee", "prm.learn", "prm.score", "actor.credit")
    )
    assert foreseen < learned < scored < credited
    assert "prm.foresee" not in ended.stages(1)  # the evaluation is due every second step
    # what it said before the update, which is what the update began from
    means = [event["metrics"] for event in ended.of("metrics", node="prm", step=2)]
    before = next(one["score/mean"] for one in means if "loss" in one)
    assert ended.metrics("fresh", "score")[0] == pytest.approx(before, rel=1e-5)


@pytest.mark.slow
def test_a_stopped_run_of_both_goes_on_bit_for_bit(
    runner: Check, finished: Check, whole: Check, equal: Check
) -> None:
    stopped = runner(PRIME, stop_at=step_3_begins)

    ended = finished(runner(PRIME, resume=stopped))

    assert equal(ended.weights(), whole(PRIME).weights())
    assert ended.readings(after=2) == whole(PRIME).readings(after=2)


def paying(number: float) -> str:
    """A reward that is the same for every text."""
    code = "def reward(prompts, completions, **columns): return [NUMBER for _ in prompts]"
    return f"{{type: python, code: '{code.replace('NUMBER', str(number))}'}}"


CRITICS = (
    HEAD.replace("{rewards: {name: rloo, whiten: true}}", "{name: ppo, gae_lambda: 0.9}")
    + """
  near: {kind: critic, model: {type: copy, of: actor}, algorithm: {name: value, gae_lambda: 0.5}}
  far: {kind: critic, model: {type: copy, of: actor}, algorithm: {name: value, gae_lambda: 1.0}}
  held_out: {kind: dataset, source: {type: task, task: last_letter, split: test, size: 4}}
  probe:
    kind: evaluate
    instead_of: problems
    of: [near.returns]
    metrics: [explained_variance, loss]
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> near.rollouts
  - near.values -> actor.values
  - short.scores -> actor.rewards
  - actor.returns -> near.returns
  - actor.returns -> far.returns
  - held_out.rows -> probe.rows
schedule:
  phases:
    - {name: values, steps: 1, learn: [near.returns, far.returns]}
    - {name: both, steps: 1, learn: [actor.rewards, near.returns, far.returns]}
hardware: {preset: cpu}
"""
)


DIGITS = '{type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9]}'


def test_each_critic_learns_returns_that_look_as_far_ahead_as_it_says(
    runner: Check, finished: Check
) -> None:
    ended = finished(runner(CRITICS.replace(DIGITS, paying(2.0))))

    # with lambda 1 every token returns what its text earns, whatever is said of the tokens
    assert ended.metrics("far", "return/mean") == pytest.approx([2.0, 2.0], abs=1e-6)
    assert ended.metrics("near", "return/mean") != pytest.approx([2.0, 2.0], abs=1e-2)
    assert "actor.learn" not in ended.stages(1)
    assert len(ended.metrics("probe", "explained_variance")) == 2
    assert all(loss > 0 for loss in ended.metrics("probe", "loss"))


SHARED = (
    HEAD.replace("{rewards: {name: rloo, whiten: true}}", "{name: ppo}")
    + """
  critic: {kind: critic, model: {type: shared, with: actor}, algorithm: {name: value}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> critic.rollouts
  - critic.values -> actor.values
  - short.scores -> actor.rewards
  - actor.returns -> critic.returns
schedule: {steps: 3}
hardware: {preset: cpu}
run: {checkpoint_every: 1}
"""
)


@pytest.mark.slow
def test_a_critic_stands_on_the_actors_weights_with_a_head_of_its_own(
    runner: Check, finished: Check, whole: Check, equal: Check
) -> None:
    stopped = runner(SHARED, stop_at=step_3_begins)

    ended = finished(runner(SHARED, resume=stopped))

    first, last = ended.group("actor", 2), ended.group("actor", 3)
    assert first["score.weight"].shape == (1, 64)
    assert not torch.equal(first["score.weight"], last["score.weight"])
    assert equal(last, whole(SHARED).group("actor"))
    assert ended.metrics("critic", "grad_norm") == ended.metrics("actor", "grad_norm")


THREE = (
    SHARED.replace(
        "edges:\n",
        """  judge:
    kind: reward
    source: {type: model}
    model: {type: shared, with: actor}
    read: {labels: [fine, fair, poor]}
    algorithm: {labels: {name: label_ce}}
  high: {kind: reward, source: HIGH}
  class: {kind: reward, source: CLASS}
  guess:
    kind: reward
    source: {type: model}
    model: {type: shared, with: actor}
    algorithm: {labels: {name: regression}}
  later:
    kind: reward
    source: {type: model}
    model: {type: snapshot, of: guess, refresh: {every: 1}}
  again:
    kind: reward
    source: {type: model}
    model: {type: copy, of: judge}
    read: {labels: [fine, fair, poor]}
edges:
  - high.scores -> guess.labels
  - class.scores -> judge.labels
  - actor.rollouts -> high.rollouts
  - actor.rollouts -> class.rollouts
  - actor.rollouts -> guess.rollouts
  - actor.rollouts -> judge.rollouts
  - actor.rollouts -> later.rollouts
  - actor.rollouts -> again.rollouts
  - {from: later.scores, to: actor.rewards, id: later}
  - {from: again.scores, to: actor.rewards, id: again}
""",
    )
    .replace("HIGH", paying(5.0))
    .replace("CLASS", paying(1.0))
)


@pytest.mark.slow
def test_every_node_that_reads_a_score_of_shared_weights_has_its_own_head(
    runner: Check, finished: Check, whole: Check, equal: Check
) -> None:
    stopped = runner(THREE, stop_at=step_3_begins)

    ended = finished(runner(THREE, resume=stopped))

    assert equal(ended.weights(), whole(THREE).weights())
    held = ended.group("actor", 3)
    shapes = {"critic": (1, 64), "judge": (3, 64), "guess": (1, 64)}
    heads = {node: held[f"score.{node}_head.weight"] for node in shapes}
    assert {node: tuple(head.shape) for node, head in heads.items()} == shapes
    assert "score.weight" not in held
    assert not torch.equal(heads["critic"], heads["guess"])
    # who follows one of them, or begins as one of them, has that node's head and no other's
    assert torch.equal(ended.group("later", 3)["score.weight"], heads["guess"])
    assert ended.group("again", 3)["score.weight"].shape == (3, 64)
    losses = ended.metrics("guess", "loss")
    assert losses[-1] < losses[0]


STEPS = (
    HEAD
    + """
  gold: {kind: verifier, method: rule, read: {granularity: step}}
  prm:
    kind: verifier
    method: discriminative
    model: {type: copy, of: actor}
    read: {granularity: step, activation: sigmoid, reduce: min}
    algorithm: {labels: {name: outcome, soft: true}}
    training: *fast
  rated: {kind: evaluate, every: 1, metrics: [score]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> gold.rollouts
  - gold.step_scores -> prm.labels
  - actor.rollouts -> prm.rollouts
  - prm.scores -> rated.scores
  - {from: prm.step_scores, to: actor.rewards, weight: 0.5}
  - short.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""
)


def test_a_classifier_of_steps_learns_their_labels_and_pays_the_policy(
    runner: Check, finished: Check
) -> None:
    ended = finished(runner(STEPS))

    losses = ended.metrics("prm", "loss")
    assert losses[-1] < losses[0]  # nothing of a random policy is right
    assert all(0 < score < 1 for score in ended.metrics("rated", "score"))


CHOOSING = (
    HEAD
    + """
  judge:
    kind: reward
    source: {type: model}
    model: {type: copy, of: actor}
    template: {text: "{{ prompt }} {{ completion }}"}
    read: {labels: [fine, poor]}
    algorithm: {labels: {name: label_ce, soft: true}}
    training: *fast
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> judge.rollouts
  - short.scores -> judge.labels
  - judge.scores -> actor.rewards
schedule: {steps: 3}
hardware: {preset: cpu}
"""
)


def test_a_classifier_of_classes_learns_what_its_template_shows(
    runner: Check, finished: Check
) -> None:
    ended = finished(runner(CHOOSING))

    assert ended.group("judge")["score.weight"].shape == (2, 64)
    assert all(0 < mean < 1 for mean in ended.metrics("judge", "score/mean"))
    assert len(ended.metrics("judge", "accuracy")) == 3


def failed(runner: Check, text: str) -> str:
    ended = runner(text)
    assert ended.state is RunStateName.FAILED
    assert ended.error is not None
    return str(ended.error.message)


def test_a_frozen_scorer_without_a_head_is_no_scorer(runner: Check, tmp_path: Path) -> None:
    scratch = ScratchModel.model_validate({"type": "scratch", "architecture": "tiny-qwen3"})
    made = build_model(scratch, seed=0, root=tmp_path)
    save_hf(tmp_path / "words", made.model, made.tokenizer)
    text = CHOOSING.replace(
        "model: {type: copy, of: actor}", "model: {type: pretrained, path: words}"
    )
    text = text.replace(
        "    algorithm: {labels: {name: label_ce, soft: true}}\n    training: *fast\n", ""
    )
    text = text.replace("  - short.scores -> judge.labels\n", "")

    message = failed(lambda one: runner(one, root=tmp_path), text)

    assert "judge: its model has no score head, and `judge` does not learn" in message


OTHER = """  watch: {kind: evaluate, metrics: [score]}
  other: {kind: critic, model: {type: copy, of: judge}, algorithm: {name: regression}}
edges:
  - short.scores -> other.labels
"""


def test_a_head_of_other_classes_than_are_read_is_refused(runner: Check) -> None:
    text = CHOOSING.replace("edges:\n", OTHER)

    assert "a head of 2 classes, but one number is read" in failed(runner, text)


def test_a_label_that_is_no_chance_ends_the_run_with_its_row(runner: Check) -> None:
    message = failed(runner, PRIME.replace(DIGITS, paying(2.0)))

    assert "has the label 2 from `short`" in message
    assert "needs a number from 0 (wrong) to 1 (right)" in message
