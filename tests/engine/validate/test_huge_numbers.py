"""No whole number that can be written makes a check count: every field, the greatest value."""

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from coloop.plan.compile import compile_plan
from coloop.plan.cost import estimate
from coloop.spec.base import Section, yaml_key
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict
from coloop.validate import validate

ROOT = Path(__file__).resolve().parents[3]
GRPO = (ROOT / "presets" / "loops" / "grpo-arithmetic.yaml").read_text(encoding="utf-8")
MANY_PARTS = """
coloop: 1
name: many-parts
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, digits: 2}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 8, turns: {max: 1}}
    algorithm:
      rewards: {name: grpo, kl: {coefficient: 0.1}, divisor: 8}
      demonstrations: {name: sft}
    training: {mini_batch: 16, micro_batch: 4, loss_chunk: 8, tensor_parallel: 1}
    credit: {balance: {per: prompt, to: 4}}
  start: {kind: reference, model: {type: snapshot, of: actor, refresh: {every: 4}}}
  exact: {kind: reward, source: {type: builtin, name: overlong, max: 8, buffer: 4}}
  kept:
    kind: filter
    keep: [{rule: length, min: 1, max: 8}]
    per_group: {max: 2}
    fill: {rows: 16, max_rounds: 3}
    resample: {rows: 16}
  pool: {kind: buffer, capacity: 64, rows_per_step: 8, keep_iterations: 2, clear: {every: 8}}
  probe: {kind: evaluate, samples: 2, every: 4, metrics: [accuracy]}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - actor.rollouts -> kept.rollouts
  - exact.scores -> kept.scores
  - kept.scores -> actor.rewards
  - kept.rollouts -> pool.rollouts
  - pool.rollouts -> actor.demonstrations
  - actor.rollouts -> start.rollouts
  - start.log_probs -> actor.reference
  - exact.scores -> probe.scores
schedule:
  learn: {actor: {every: 2, after: 1, updates: 2, rows: 16}}
  phases:
    - repeat: 3
      phases:
        - {name: rl, until: pool.full, max_steps: 9, learn: [actor.rewards]}
        - {name: imitate, epochs: {of: pool, count: 2}, learn: [actor.demonstrations]}
    - {name: last, steps: 4, learn: [actor.rewards]}
  anneal: [{path: nodes.actor.rollout.temperature, from: 1, to: 0.5, over: rl, steps: 4, cycle: 2}]
hardware: {nodes: 1, gpus_per_node: 2, gpu: H100-80GB, pools: {main: {gpus: 2}}}
run: {seed: 1, checkpoint_every: 4, keep: 2}
"""
LOOPS = {"grpo": GRPO, "many parts": MANY_PARTS}
SECONDS = 2.0
"""Of CPU, so that a busy machine fails nothing; counting to 10^8 takes several times as long."""

Path_ = tuple[str | int, ...]


def whole_fields(value: Any, at: Path_ = ()) -> Iterator[tuple[Path_, int]]:
    """Places of whole numbers in a spec, written or not, with the greatest value of each."""
    if isinstance(value, Section):
        whole = type(value).model_json_schema(by_alias=True)
        schema = whole.get("$defs", {}).get(type(value).__name__, whole)["properties"]
        for name in type(value).model_fields:
            key = yaml_key(type(value), name)
            if (most := greatest(schema[key])) is not None:
                yield (*at, key), most
            yield from whole_fields(getattr(value, name), (*at, key))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from whole_fields(item, (*at, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from whole_fields(item, (*at, index))


def greatest(schema: dict[str, Any]) -> int | None:
    if schema.get("type") == "integer":
        return int(schema.get("maximum", 2**53 - 1))
    parts = [greatest(part) for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]
    return next((part for part in parts if part is not None), None)


def with_value(document: dict[str, Any], at: Path_, value: int) -> dict[str, Any] | None:
    """The document with one value changed, or nothing where its place is written as text."""
    changed = copy.deepcopy(document)
    here: Any = changed
    for key in at[:-1]:
        if isinstance(here, dict) and here.get(key) is None:
            here[key] = {}
        here = here[key]
        if not isinstance(here, dict | list):
            return None
    here[at[-1]] = value
    return changed


def check_all(spec: LoopSpec) -> None:
    cost = estimate(spec)
    if validate(spec, estimate=cost).ok:
        compile_plan(spec)


def seconds_of(spec: LoopSpec) -> float:
    began = time.process_time()
    check_all(spec)
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_no_whole_number_makes_a_check_count(name: str) -> None:
    document = YAML(typ="safe").load(LOOPS[name])
    spec = from_dict(document).spec
    assert spec is not None
    slow, checked = [], 0
    for at, most in whole_fields(spec):
        for value in {min(10**11 + 1, most), min(10**8 + 1, most)}:
            changed = with_value(document, at, value)
            found = from_dict(changed).spec if changed is not None else None
            if found is None:
                continue
            checked += 1
            if seconds_of(found) > SECONDS < seconds_of(found):  # once it may be a pause of Python
                slow.append((".".join(map(str, at)), value))

    assert not slow
    assert checked > 20


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (2**53, "numbers.out_of_range"),
        (2**63, "yaml.not_finite"),
        (10**30, "yaml.not_finite"),
    ],
)
def test_what_no_file_can_carry_is_refused(value: int, code: str) -> None:
    document = YAML(typ="safe").load(GRPO)
    document["nodes"]["problems"]["rows_per_step"] = value

    [found] = from_dict(document).diagnostics

    assert found.code == code
    assert found.is_error


def test_a_fields_own_bound_counts() -> None:
    document = YAML(typ="safe").load(GRPO)
    document["nodes"]["actor"]["rollout"]["completions_per_prompt"] = 5000

    [found] = from_dict(document).diagnostics

    assert found.code == "numbers.out_of_range"
    assert "4096" in found.message
