"""What takes longest in a step, against published runs of other trainers that tell it apart, where
the table of them is at hand."""

import pytest
from tests.engine.estimate.conftest import build
from tests.engine.measurements import Measurements

from coloop.plan.cost import explain

TABLE = Measurements("throughput")
DAPO = {"prompts": 512, "each": 16, "has_reference": False, "algorithm": "dapo"}
LORA = {"prompts": 64, "each": 5, "most": 1024, "lora": {"rank": 32}, "gpu": "H200-141GB"}
RUNS = {
    "T0559": {**DAPO, "most": 8192, "gpu": "H20-96GB", "gpus": (2, 8)},
    "T0561": {**DAPO, "most": 28_672, "gpu": "H20-96GB", "gpus": (4, 8)},
    "T0563": {**DAPO, "most": 28_672, "gpu": "H20-96GB", "gpus": (8, 8)},
    "T0565": {**DAPO, "most": 28_672, "gpu": "H20-96GB", "gpus": (16, 8)},
    "T0587": {**LORA, "model": "Qwen/Qwen2.5-32B-Instruct", "mean": 253},
    "T0588": {**LORA, "model": "Qwen/Qwen2.5-14B-Instruct", "mean": 279},
    "T0590": {**LORA, "mean": 314},
    "T0593": {"prompts": 1024, "each": 5, "most": 1024, "mean": 153, "gpu": "H100-80GB"},
    "T0596": {"prompts": 512, "each": 1, "most": 512, "mean": 146, "gpus": (1, 2), "critic": True},
}
"""By row of the table, what its source says of the run."""
FIELDS = {"generate": "gen_s", "score": "ref_s", "learn": "update_s"}
ROWS = [row for row in TABLE.rows if row["id"] in RUNS]

pytestmark = TABLE.wanted


def _loop(run):
    model = {"type": "pretrained", "path": run.get("model", "Qwen/Qwen2.5-7B-Instruct")}
    if run.get("critic"):
        model["path"] = "google/gemma-2-2b-it"
    if "lora" in run:
        model["lora"] = run["lora"]
    rollout = {"completions_per_prompt": run["each"], "max_new_tokens": run["most"]}
    if "mean" in run:
        rollout["expected_tokens"] = run["mean"]
    nodes, edges = {}, None
    algorithm = {"rewards": {"name": run.get("algorithm", "grpo")}}
    if run.get("has_reference", True):
        algorithm["rewards"]["kl"] = {"coefficient": 0.001}
    else:
        nodes["start"] = None
        edges = [
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "exact.scores -> actor.rewards",
        ]
    if run.get("critic"):
        algorithm["rewards"]["name"] = "ppo"
        nodes["critic"] = {
            "kind": "critic",
            "model": {"type": "copy", "of": "actor"},
            "algorithm": {"name": "value"},
        }
        edges = [
            "problems.rows -> actor.prompts",
            "actor.rollouts -> exact.rollouts",
            "actor.rollouts -> start.rollouts",
            "exact.scores -> actor.rewards",
            "start.log_probs -> actor.reference",
            "actor.rollouts -> critic.rollouts",
            "critic.values -> actor.values",
            "actor.returns -> critic.returns",
        ]
    machines, each = run.get("gpus", (1, 8))
    nodes["actor"] = {
        "model": model,
        "rollout": rollout,
        "algorithm": algorithm,
        "training": {"mini_batch": None},
    }
    nodes["problems"] = {"rows_per_step": run["prompts"]}
    hardware = {
        "preset": None,
        "nodes": machines,
        "gpus_per_node": each,
        "gpu": run.get("gpu", "H100-80GB"),
    }
    changes = {"nodes": nodes, "hardware": hardware}
    if edges is not None:
        changes["edges"] = edges
    return build(**changes)


def _measured(row):
    """The longest stage that the source tells, as a verb."""
    seconds = {verb: float(row[field] or 0) for verb, field in FIELDS.items()}
    return max(seconds, key=seconds.get)


def _predicted(spec):
    """The longest stage, fits or not: the runs were made."""
    seconds = explain(spec).stage_of_parts
    longest = max(seconds, key=seconds.get)
    return longest.rpartition(".")[2]


def test_the_loops_of_the_runs_can_be_written():
    assert len(ROWS) == 9


def test_the_bottleneck_of_six_of_nine_published_runs_is_right():
    told = {row["id"]: (_predicted(_loop(RUNS[row["id"]])), _measured(row)) for row in ROWS}

    right = [name for name, (predicted, measured) in told.items() if predicted == measured]
    assert len(right) >= 6, told


@pytest.mark.parametrize("name", [name for name, run in RUNS.items() if "lora" in run])
def test_a_reference_of_an_adapter_is_no_bottleneck(name):
    assert _predicted(_loop(RUNS[name])) == "generate"
