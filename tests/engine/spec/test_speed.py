"""A loop of a hundred nodes reads in a moment."""

from __future__ import annotations

import time
from typing import Any

from coloop.spec.catalog import catalog
from coloop.spec.emit import to_yaml
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, parse
from coloop.spec.paths import apply_overrides


def large(nodes: int = 100) -> dict[str, Any]:
    """Chains of dataset, actor, reward, reference and probe."""
    document: dict[str, Any] = {"coloop": 1, "name": "large", "nodes": {}, "edges": []}
    for i in range(nodes // 5):
        document["nodes"] |= {
            f"data_{i}": {
                "kind": "dataset",
                "source": {"type": "task", "task": "arithmetic", "digits": 2},
                "rows_per_step": 8,
            },
            f"actor_{i}": {
                "kind": "actor",
                "model": {"type": "scratch", "architecture": "tiny-qwen3"},
                "rollout": {"completions_per_prompt": 4, "max_new_tokens": 8},
                "algorithm": {"rewards": {"name": "grpo", "kl": {"coefficient": 0.01}}},
                "training": {"optimizer": {"lr": 1e-4}},
            },
            f"start_{i}": {"kind": "reference", "model": {"type": "snapshot", "of": f"actor_{i}"}},
            f"exact_{i}": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
            f"probe_{i}": {"kind": "evaluate", "instead_of": f"data_{i}", "metrics": ["accuracy"]},
        }
        document["edges"] += [
            f"data_{i}.rows -> actor_{i}.prompts",
            f"actor_{i}.rollouts -> exact_{i}.rollouts",
            f"actor_{i}.rollouts -> start_{i}.rollouts",
            f"start_{i}.log_probs -> actor_{i}.reference",
            f"data_{i}.rows -> probe_{i}.rows",
            f"exact_{i}.scores -> probe_{i}.scores",
            {"from": f"exact_{i}.scores", "to": f"actor_{i}.rewards", "id": f"outcome_{i}"},
        ]
    document["schedule"] = {"steps": 10}
    return document


def best_of(times: int, work: Any) -> float:
    """The shortest of several runs, in milliseconds of this process."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) * 1000)
    return min(taken)


def test_a_loaded_document_of_a_hundred_nodes_validates_in_under_ten_milliseconds() -> None:
    document = large()
    assert from_dict(document).diagnostics == ()

    assert best_of(15, lambda: LoopSpec.model_validate(document)) < 10
    assert best_of(15, lambda: from_dict(document)) < 10


def test_an_override_costs_little_more_than_its_node() -> None:
    spec = LoopSpec.model_validate(large())

    overrides = {"nodes.actor_3.training.optimizer.lr": 2e-4, "edges.outcome_7.weight": 0.5}

    assert best_of(15, lambda: apply_overrides(spec, overrides)) < 5


def test_text_of_a_hundred_nodes_reads_in_a_fraction_of_a_second() -> None:
    text = to_yaml(large())

    assert best_of(3, lambda: parse(text)) < 500


def test_the_catalog_is_made_once() -> None:
    catalog()

    assert best_of(3, catalog) < 100
