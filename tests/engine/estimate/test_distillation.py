"""What teachers report of words, in the estimate of memory."""

from typing import Any

import pytest
from tests.engine.estimate.conftest import parts_of

from coloop.plan.cost import estimate
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch

LOOP = """
coloop: 1
name: distilled
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 100}
  teacher: {kind: reference, model: {type: scratch, architecture: tiny-qwen3}}
  student:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 10, max_new_tokens: 20, expected_tokens: 10}
    algorithm: {name: opd}
edges:
  - problems.rows -> student.prompts
  - student.rollouts -> teacher.rollouts
  - teacher.log_probs -> student.reference
schedule: {steps: 3}
hardware: {preset: cpu}
"""
TOKENS = 1000 * 10
WORDS = 128


def loop(**algorithm: Any) -> LoopSpec:
    given = {"name": "opd", **algorithm}
    spec = parse(patch(LOOP, [Change(op="set", path="nodes.student.algorithm", value=given)])).spec
    assert spec is not None
    return spec


@pytest.mark.parametrize(
    ("algorithm", "size"),
    [
        ({}, 0),
        ({"support": "top_k", "k": 20}, TOKENS * 20 * 8),
        ({"support": "full"}, TOKENS * WORDS * 4),
        ({"support": "full", "dtype": "float16"}, TOKENS * WORDS * 2),
    ],
)
def test_words_take_memory_where_they_are_learned(algorithm: dict[str, Any], size: int) -> None:
    [process] = estimate(loop(**algorithm)).gpus

    assert parts_of(process, "transfer", "student") == pytest.approx(size, rel=0.01)
    assert parts_of(process, "transfer", "teacher") == pytest.approx(size, rel=0.01)
