"""Rows that a loop's model generates now: one step of the loop, in a temporary folder.

Only for small models, on this machine's CPU.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from coloop.plan.cost import estimate
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of
from coloop.spec.io import dump
from coloop.spec.nodes import DatasetNode, EvaluateNode, RewardNode, model_of
from coloop.spec.paths import apply_overrides
from coloop_server.previews.inside.walk import NotHere
from coloop_server.previews.schemas import Job, RolledOutRows

MOST_PARAMETERS = 50_000_000
"""Over all models of a loop."""


def rolled_out(
    job: Job, spec: LoopSpec, wanted: RolledOutRows, learner: str
) -> list[dict[str, Any]]:
    """Samples of one step, in the format of a run."""
    root = Path(job.root)
    why = why_not(spec, root)
    if why is not None:
        raise NotHere(why)
    small = _one_step(spec, wanted, learner)
    with tempfile.TemporaryDirectory(prefix="coloop-preview-") as folder:
        runs = Path(folder) / "runs"
        runs.mkdir()
        if wanted.run is not None and job.weights_from is not None:
            (runs / wanted.run).symlink_to(job.weights_from, target_is_directory=True)
        request = RunRequest(
            spec=small,
            text=dump(small),
            root=root,
            runs_dir=runs,
            run_id="now",
            cluster="local",
            threads=1,
        )
        result = run(request)
        kept = sorted((result.folder / "samples").glob("step-*.jsonl"))
        if not kept:
            told = result.error.message if result.error is not None else "nothing was generated"
            raise NotHere(f"the step did not finish: {told}")
        lines = kept[-1].read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]


def why_not(spec: LoopSpec, root: Path) -> str | None:
    preset = spec.hardware.preset
    cost = estimate(spec, root=root)
    if cost.gpus and preset not in (None, "cpu") and not str(preset).startswith("cpu"):
        return (
            f"the loop is for the hardware `{preset}`; a preview generates only with "
            "small models on this machine's processors. Start a run, and look at its samples here"
        )
    total = sum(cost.parameters.values())
    if total > MOST_PARAMETERS:
        return (
            f"its models have {total / 1e6:,.0f} million parameters; a preview allows at most "
            f"{MOST_PARAMETERS // 10**6} million. Start a run, and look at its samples here"
        )
    return None


def _one_step(spec: LoopSpec, wanted: RolledOutRows, learner: str) -> LoopSpec:
    """The loop for one step with few rows and no evaluations."""
    gone = {name for name, node in spec.nodes.items() if isinstance(node, EvaluateNode)}
    rollout = rollout_of(spec, learner)
    each = (rollout.completions_per_prompt if rollout is not None else None) or 1
    plain: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    plain["nodes"] = {name: node for name, node in plain["nodes"].items() if name not in gone}
    plain["edges"] = [
        edge
        for edge, read in zip(plain["edges"], spec.edges, strict=True)
        if read.source.node not in gone and read.target.node not in gone
    ]
    plain["schedule"] = {"steps": 1}
    plain.get("run", {}).pop("best", None)
    small = LoopSpec.model_validate(plain)
    changes: dict[str, Any] = {}
    for name, node in small.nodes.items():
        if isinstance(node, DatasetNode):
            changes[f"nodes.{name}.rows_per_step"] = max(1, wanted.count // each)
        if isinstance(node, RewardNode) and node.source.type != "model" and node.on_error == "stop":
            changes[f"nodes.{name}.on_error"] = "skip_row"
        if wanted.run is not None and name == learner and model_of(node) is not None:
            changes[f"nodes.{name}.model"] = {"type": "run", "run": wanted.run, "node": learner}
    return apply_overrides(small, changes)
