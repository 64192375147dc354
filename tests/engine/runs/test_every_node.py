"""Kinds of node and ways of being them that have no loop of their own, in whole runs: each of them
scores, writes or hands on rows, and those that can learn do."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.runs.conftest import load

from coloop.validate import validate

Check = Callable[..., Any]

JUDGES = """
coloop: 1
name: every-judge
nodes:
  letters: {kind: dataset, source: {type: task, task: last_letter, size: 16}, rows_per_step: 2}
  theorems: {kind: dataset, source: {type: task, task: proof, size: 16}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 5}
    algorithm: {name: grpo}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  prover:
    kind: actor
    model: {type: shared, with: actor}
    rollout: {completions_per_prompt: 2, max_new_tokens: 5}
    algorithm: {name: grpo}
  digit:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.1}
  together:
    kind: reward
    join: {gather: letters}
    per: row
    source:
      type: python
      code: |
        def reward(prompts, completions, **columns):
            return [[float(len(text)) for text in texts] for texts in completions]
  rule: {kind: verifier, method: rule}
  stepwise: {kind: verifier, method: rule, read: {granularity: step, reduce: mean}}
  chance:
    kind: verifier
    method: generative
    model: {type: copy, of: actor}
    template: {text: "{{ completion }}?"}
    read: {score: probability, labels: ["1", "0"]}
  start: {kind: reference, model: {type: snapshot, of: actor, refresh: never}}
  implicit:
    kind: verifier
    method: implicit_prm
    model: {type: copy, of: actor}
    read: {granularity: token}
    algorithm: {labels: {name: implicit_prm, soft: true}}
  outcome:
    kind: verifier
    method: discriminative
    model: {type: copy, of: actor}
    read: {activation: sigmoid}
    algorithm: {labels: {name: outcome, soft: true}}
  vote: {kind: verifier, method: vote}
  weighted: {kind: verifier, method: vote}
  formal: {kind: verifier, method: formal, checker: proof}
edges:
  - letters.rows -> actor.prompts
  - theorems.rows -> prover.prompts
  - actor.rollouts -> digit.rollouts
  - actor.rollouts -> together.rows
  - actor.rollouts -> rule.rollouts
  - actor.rollouts -> stepwise.rollouts
  - actor.rollouts -> chance.rollouts
  - actor.rollouts -> implicit.rollouts
  - actor.rollouts -> start.rollouts
  - start.log_probs -> implicit.prior
  - digit.scores -> implicit.labels
  - actor.rollouts -> outcome.rollouts
  - digit.scores -> outcome.labels
  - actor.rollouts -> vote.rollouts
  - actor.rollouts -> weighted.rollouts
  - digit.scores -> weighted.scores
  - prover.rollouts -> formal.rollouts
  - digit.scores -> actor.rewards
  - together.scores -> actor.rewards
  - rule.scores -> actor.rewards
  - stepwise.scores -> actor.rewards
  - chance.scores -> actor.rewards
  - implicit.scores -> actor.rewards
  - outcome.scores -> actor.rewards
  - vote.scores -> actor.rewards
  - weighted.scores -> actor.rewards
  - formal.scores -> prover.rewards
schedule: {steps: 2}
hardware: {preset: cpu}
"""
JUDGED = ("together", "rule", "stepwise", "chance", "implicit", "outcome")
JUDGED += ("vote", "weighted", "formal")

SHAPES = """
coloop: 1
name: every-shape
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 32}, rows_per_step: 4}
  chat:
    kind: template
    messages: [{role: user, content: "{{ prompt }}"}]
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 3, max_new_tokens: 6}
    algorithm: {pairs: {name: simpo}, demonstrations: {name: sft}}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
  digit:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([a-z0-9])", on_no_match: 0.1}
  brief: {kind: reward, source: {type: builtin, name: length, max: 6}}
  few: {kind: filter, per_group: {max: 2, pick: best}}
  most: {kind: filter, keep: [{rule: unique, column: prompt}], up_to: 10}
  read:
    kind: template
    parse: {signs: {all: true, regex: "([a-z0-9])"}}
    default: {signs: [x]}
  apart: {kind: template, each: signs, target: "{{ signs }}"}
  coded:
    kind: template
    code: |
      def write(prompt, **columns):
          return {"target": prompt[:2], "weight": len(prompt)}
  every: {kind: pairs, method: all}
  wide: {kind: pairs, method: margin, margin: 0.01}
  again: {kind: pairs, method: relabel}
  taste: {kind: reward, source: {type: model}, model: {type: copy, of: actor}}
  old: {kind: buffer, capacity: 8, rows_per_step: 2, sample: oldest}
  heavy: {kind: buffer, capacity: 8, rows_per_step: 2, sample: weighted, weight: weight}
  seen: {kind: evaluate, every: 1, metrics: [score, tokens]}
edges:
  - sums.rows -> chat.rows
  - chat.rows -> actor.prompts
  - actor.rollouts -> few.rollouts
  - brief.scores -> few.scores
  - few.rollouts -> most.rollouts
  - actor.rollouts -> most.spare
  - actor.rollouts -> digit.rollouts
  - actor.rollouts -> brief.rollouts
  - actor.rollouts -> every.rollouts
  - actor.rollouts -> wide.rollouts
  - brief.scores -> wide.scores
  - every.pairs -> again.pairs
  - every.pairs -> taste.comparisons
  - taste.scores -> again.preference
  - wide.pairs -> actor.pairs
  - again.pairs -> actor.pairs
  - most.rollouts -> read.rows
  - read.rows -> apart.rows
  - apart.rows -> actor.demonstrations
  - sums.rows -> coded.rows
  - coded.rows -> old.rows
  - coded.rows -> heavy.rows
  - old.rows -> actor.demonstrations
  - heavy.rows -> actor.demonstrations
  - digit.scores -> seen.scores
schedule:
  phases: [{name: main, steps: 2, learn: [actor.pairs, actor.demonstrations], fill: [old, heavy]}]
hardware: {preset: cpu}
"""


TALKS = """
coloop: 1
name: every-round
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  ask: {kind: template, text: "{{ sums.prompt }}{{ actor.completion }}"}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 3}
    algorithm: {name: grpo}
  digit:
    kind: reward
    source: {type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.1}
edges:
  - sums.rows -> ask.rows
  - ask.rows -> actor.prompts
  - {from: actor.rollouts, to: ask.rows, rounds: 2, branch: one}
  - actor.rollouts -> digit.rollouts
  - digit.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""
TREE = TALKS.replace("branch: one", "branch: all")
LINES = TALKS.replace("branch: one", "branch: lines")
WRITTEN = {TALKS: [4, 4], TREE: [4, 8], LINES: [4, 4]}
"""Texts by round of two prompts with two completions each: one conversation a prompt goes on with
two texts, each text with two, each with one."""

CODING = """
coloop: 1
name: coding
nodes:
  sums: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  theorems: {kind: dataset, source: {type: task, task: proof, size: 16}, rows_per_step: 2}
  runs: {kind: tool, type: python, call: "(?P<code>.)(?:0|1|2|3|a|e|o|u|x|z)", result: "[1]"}
  kernel: {kind: tool, type: environment, name: proof}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 12, turns: {max: 3}}
    algorithm: {name: grpo}
  prover:
    kind: actor
    model: {type: shared, with: actor}
    rollout: {completions_per_prompt: 2, max_new_tokens: 12, turns: {max: 3}}
    algorithm: {name: grpo}
  brief: {kind: reward, join: concat, source: {type: builtin, name: length, max: 12}}
edges:
  - sums.rows -> actor.prompts
  - runs.tool -> actor.tools
  - theorems.rows -> prover.prompts
  - kernel.tool -> prover.tools
  - actor.rollouts -> brief.rollouts
  - prover.rollouts -> brief.rollouts
  - brief.scores -> actor.rewards
  - brief.scores -> prover.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""


@pytest.mark.parametrize("text", [JUDGES, SHAPES, TALKS, TREE, LINES, CODING])
def test_the_loops_are_valid(text: str) -> None:
    assert [one.describe() for one in validate(load(text)).diagnostics if one.is_error] == []


@pytest.mark.parametrize("node", JUDGED)
def test_a_judge_scores_in_every_step(node: str, whole: Check) -> None:
    ended = whole(JUDGES)

    scored = ended.of("stage.finished", stage=f"{node}.score")
    assert [(event["step"], event["samples"]) for event in scored] == [(1, 4), (2, 4)]
    assert all(share < 1 for share in ended.metrics(node, "score/none"))


@pytest.mark.parametrize("node", ["implicit", "outcome"])
def test_a_judge_with_labels_learns(node: str, whole: Check) -> None:
    ended = whole(JUDGES)

    assert len(ended.metrics(node, "loss")) == 2
    assert all(norm > 0 for norm in ended.metrics(node, "grad_norm"))


SHAPED = {
    "chat": 4,
    "actor": 12,
    "few": 8,
    "most": 4,
    "read": 10,
    "taste": 12,
    "again": 12,
    "coded": 4,
    "old": 2,
    "heavy": 2,
    "seen": 12,
}
"""By node the rows of the second step: four prompts with three texts each, of which the best two
stay, of these one of each prompt, filled up to ten for the next; every two of three texts are a
pair. The buffers give two of what they took in the step before."""


def test_rows_are_handed_on_in_every_shape(whole: Check) -> None:
    ended = whole(SHAPES)

    verbs = ("read", "generate", "score", "prepare", "evaluate")
    samples = {
        event["stage"].partition(".")[0]: event["samples"]
        for event in ended.of("stage.finished", step=2)
        if event["stage"].endswith(verbs)
    }
    assert {node: samples[node] for node in SHAPED} == SHAPED
    assert samples["apart"] >= samples["read"]
    assert max(ended.metrics("wide", "pairs")) > 0


@pytest.mark.parametrize("text", WRITTEN, ids=["one", "all", "lines"])
def test_rows_go_round_in_every_way(text: str, whole: Check) -> None:
    ended = whole(text)

    written = ended.of("stage.finished", stage="actor.generate")
    assert [event["samples"] for event in written] == WRITTEN[text]
    [learned] = ended.of("stage.finished", stage="actor.learn")
    assert learned["samples"] == sum(WRITTEN[text])


def test_code_and_proofs_are_tried_while_they_are_written(whole: Check) -> None:
    ended = whole(CODING)

    assert max(ended.metrics("runs", "tool/calls")) > 0
    assert max(ended.metrics("prover", "turns/mean")) >= 1
    assert [event["samples"] for event in ended.of("stage.finished", stage="actor.learn")] == [8]
