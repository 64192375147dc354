"""The clock against what was measured: the six rows of the GRPO bench with nothing set.

Measured in tests/bench/README.md on two cores of an AMD EPYC with AVX-512 BF16: a core multiplies
matrices of such models at about 100 GFLOP/s in float32 and 200 in bfloat16, and memory moves 20
GB/s. These are given here, so the machine of the test does not matter.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench.grpo.work import NEW_TOKENS, PROMPTS, SAMPLES, SIZES

from coloop.plan.settings.processor import Conditions, Processor
from coloop.plan.settings.resolver import Resolved
from coloop.plan.settings.throughput import Clock
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.io import from_dict

MEASURED: dict[str, tuple[float, float, float]] = {
    "short-1M": (0.100, 0.0221, 0.0497),
    "short-5M": (0.239, 0.0482, 0.1347),
    "short-20M": (0.616, 0.1153, 0.3921),
    "long-1M": (1.15, 0.5419, 0.6446),
    "long-5M": (3.31, 1.1747, 2.0670),
    "long-20M": (9.94, 3.0686, 6.7851),
}
"""Seconds of a step, and of its writing and learning, in two processes."""
FACTOR = 1.5


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = replace(presets.hardware("cpu"), bf16_flops=100e9, bandwidth=20e9)
    monkeypatch.setattr(presets, "hardware", lambda _: speeds)


def settled(
    row: str,
    root: Path,
    model: dict[str, Any] | None = None,
    hardware: dict[str, Any] | None = None,
    **rollout: Any,
) -> Resolved:
    """A row of the bench on two cores."""
    length, size = row.split("-")
    (root / "model").mkdir(exist_ok=True)
    (root / "model" / "config.json").write_text(json.dumps(SIZES[size].facts()), encoding="utf-8")
    sums = [{"prompt": f"{n:02d}+{n:02d}=", "answer": str(2 * n)[::-1]} for n in range(100)]
    (root / "sums.jsonl").write_text("\n".join(map(json.dumps, sums)), encoding="utf-8")
    nodes = {
        "sums": {
            "kind": "dataset",
            "source": {"type": "file", "path": "sums.jsonl"},
            "columns": {"prompt": "prompt", "target": "answer"},
            "rows_per_step": PROMPTS,
        },
        "actor": {
            "kind": "actor",
            "model": {"type": "pretrained", "path": "model", **(model or {})},
            "rollout": {
                "completions_per_prompt": SAMPLES,
                "max_new_tokens": NEW_TOKENS[length],  # type: ignore[index]
                **rollout,
            },
            "algorithm": {"name": "grpo"},
        },
        "judge": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        "judge.scores -> actor.rewards",
    ]
    document = {"coloop": 1, "name": "row", "nodes": nodes, "edges": edges}
    document |= {} if hardware is None else {"hardware": hardware}
    spec = from_dict({**document, "schedule": {"steps": 10_000}}).spec
    assert spec is not None
    two = Processor(cores=2, has_bf16=True, reason="AVX512_BF16")
    return Unrolled(spec).settings(root, Conditions(processor=two))


@pytest.mark.parametrize("row", MEASURED)
def test_a_step_takes_about_as_long_as_predicted(row: str, tmp_path: Path) -> None:
    """No text of these rows ends before its last token, which a loop says by `expected_tokens`."""
    tokens = NEW_TOKENS[row.split("-")[0]]  # type: ignore[index]
    pools = {"preset": "cpu", "pools": {"main": {"workers": 2}}}
    found = settled(row, tmp_path, hardware=pools, expected_tokens=tokens)
    clock = Clock(found.survey, found.memory)

    seconds = {stage: clock.time(stage).seconds for stage in found.survey.stages}
    told = (sum(seconds.values()), seconds["actor.generate"], seconds["actor.learn"])

    for predicted, measured in zip(told, MEASURED[row], strict=True):
        assert measured / FACTOR < predicted < measured * FACTOR


@pytest.mark.parametrize("row", MEASURED)
def test_two_processes_are_chosen_where_they_save_a_good_part(row: str, tmp_path: Path) -> None:
    """With short texts they saved less than a sixth, for twice the memory."""
    [chosen] = [one for one in settled(row, tmp_path).decisions if one.path == "hardware.pools"]

    assert chosen.value == ("2 processes" if row.startswith("long") else "one process")


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({}, 16 * 6 + 128 * 3),
        ({"lora": {"rank": 4}}, 128 * (6 + 4)),
    ],
)
def test_what_texts_begin_with_is_learned_once(
    changes: dict[str, Any], read: int, tmp_path: Path
) -> None:
    """Sums of 6 characters, answers of 4, of which the last is read by nothing."""
    found = settled("short-1M", tmp_path, changes, expected_tokens=4)

    assert found.memory.updates["actor"].work.read == read


def test_the_plan_says_where_lengths_come_from(tmp_path: Path) -> None:
    [found] = [one for one in settled("short-1M", tmp_path).decisions if "tokens" in one.path]

    assert found.path == "nodes.sums.tokens"
    assert found.value == "prompts of 6, at most 6"
    assert found.reason == "measured on the first 100 rows of sums.jsonl"
