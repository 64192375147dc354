"""Loops to compile, written as data."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.plan.compile import compile_plan
from coloop.plan.types import Plan
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict

NODES: dict[str, Any] = {
    "problems": {
        "kind": "dataset",
        "source": {"type": "task", "task": "arithmetic"},
        "rows_per_step": 4,
    },
    "held_out": {
        "kind": "dataset",
        "source": {"type": "task", "task": "arithmetic", "split": "test"},
        "rows_per_step": 4,
    },
    "actor": {
        "kind": "actor",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
        "algorithm": {
            "rewards": {"name": "grpo", "kl": {"coefficient": 0.1}},
            "demonstrations": {"name": "sft"},
            "pairs": {"name": "dpo"},
        },
    },
    "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}},
}


def loop(
    edges: list[Any], schedule: dict[str, Any] | None = None, **nodes: dict[str, Any]
) -> LoopSpec:
    """A loop of these edges over the nodes that they name, with more nodes or fields of nodes."""
    known = {**NODES, **{name: {**NODES.get(name, {}), **node} for name, node in nodes.items()}}
    texts = [edge if isinstance(edge, str) else f"{edge['from']} -> {edge['to']}" for edge in edges]
    named = {side.partition(".")[0] for text in texts for side in text.split(" -> ")}
    parsed = from_dict(
        {
            "coloop": 1,
            "name": "small",
            "nodes": {name: node for name, node in known.items() if name in named},
            "edges": edges,
            "schedule": schedule or {"steps": 3},
            "hardware": {"preset": "cpu"},
        }
    )
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]
    return parsed.spec


@pytest.fixture(name="loop")
def _loop() -> Callable[..., LoopSpec]:
    return loop


@pytest.fixture
def compiled() -> Callable[..., Plan]:
    """The plan of such a loop."""
    return lambda edges, schedule=None, **nodes: compile_plan(loop(edges, schedule, **nodes))


@pytest.fixture
def stages() -> Callable[..., list[str]]:
    """Stages of the first phase (or of the one named) by their names."""

    def names(plan: Plan, phase: str | None = None) -> list[str]:
        found = plan.phases[0] if phase is None else plan.phase(phase)
        return [stage.name for stage in found.stages]

    return names
