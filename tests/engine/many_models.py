"""Loops with any even number of trained models: solvers, each with a verifier that judges it."""

from typing import Any

from coloop.spec.io import dump, from_dict, require

DIGIT = {
    "kind": "reward",
    "source": {
        "type": "builtin",
        "name": "regex",
        "pattern": "([0-9])",
        "scale": [0, 9],
        "on_no_match": 0.0,
    },
}
MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}


def loop_of(
    models: int, *, steps: int = 2, rows: int = 4, samples: int = 4, every: int | None = None
) -> str:
    """YAML of a loop with `models` / 2 solvers and as many generative verifiers.

    All learn in each step, by GRPO, to write high digits: untrained models do so at times, so
    their rewards differ. A solver is also rewarded by its verifier's digit.
    """
    source = {"type": "task", "task": "arithmetic", "digits": 1, "size": 64}
    nodes: dict[str, Any] = {
        "problems": {"kind": "dataset", "source": source, "rows_per_step": rows}
    }
    edges: list[Any] = []
    training = {"optimizer": {"name": "adamw", "lr": 1.0e-3}}
    for k in range(models // 2):
        solver, verifier, digit, high = f"solver_{k}", f"verifier_{k}", f"digit_{k}", f"high_{k}"
        nodes |= {
            solver: {
                "kind": "actor",
                "model": MODEL,
                "rollout": {"completions_per_prompt": samples, "max_new_tokens": 6},
                "algorithm": {"name": "grpo"},
                "training": training,
            },
            digit: DIGIT,
            verifier: {
                "kind": "verifier",
                "method": "generative",
                "model": MODEL,
                "template": {"text": "{{ prompt }}{{ completion }}?"},
                "read": {"number": "([0-9])", "range": [0, 9], "on_no_match": 0.0},
                "rollout": {"completions_per_prompt": samples, "max_new_tokens": 6},
                "algorithm": {"rewards": {"name": "grpo"}},
                "training": training,
            },
            high: DIGIT,
        }
        edges += [
            f"problems.rows -> {solver}.prompts",
            f"{solver}.rollouts -> {digit}.rollouts",
            f"{solver}.rollouts -> {verifier}.rollouts",
            f"{digit}.scores -> {solver}.rewards",
            {
                "from": f"{verifier}.scores",
                "to": f"{solver}.rewards",
                "weight": 0.1,
                "aggregate": "mean",
            },
            f"{verifier}.rollouts -> {high}.rollouts",
            f"{high}.scores -> {verifier}.rewards",
        ]
    document = {
        "coloop": 1,
        "name": "many-models",
        "nodes": nodes,
        "edges": edges,
        "schedule": {"steps": steps},
        "hardware": {"preset": "cpu"},
        "run": {"seed": 0, "checkpoint_every": every},
    }
    return dump(require(from_dict(document)))
