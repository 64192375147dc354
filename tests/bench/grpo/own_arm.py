"""GRPO by coloop, through the same door as `coloop run --local`: events, samples, checkpoints and
the proof of every weight update included.

The run is held between two steps by a sink that waits before it takes the next event.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import torch
from tests.bench.grpo.arm import Ended, Meter
from tests.bench.grpo.work import PROMPTS, SAMPLES, Work

from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.run_files.events import RunStateName
from coloop.runtime.start import run
from coloop.spec.io import from_dict

REWARDS: dict[str, dict[str, Any]] = {
    "digits": {"type": "builtin", "name": "regex", "pattern": "[0-9]"},
    "answer": {"type": "builtin", "name": "exact_match"},
}


class Waits:
    """Takes each step only when it is asked for."""

    def __init__(self, meter: Meter, folder: Path, *, ends_at_once: bool) -> None:
        self._meter, self._folder = meter, folder
        self._ends_at_once = ends_at_once

    def __call__(self, kind: str, text: str) -> None:
        if kind != "event":
            return
        event = json.loads(text)
        if event["type"] == "run.state" and event["state"] == RunStateName.RUNNING:
            self._meter.helpers = [one.pid for one in psutil.Process().children(recursive=True)]
            self._meter.ready()
            self._begin()
        elif event["type"] == "stage.finished" and event["stage"] == "actor.generate":
            self._meter.wrote(event["tokens"], event["seconds"])
        elif event["type"] == "stage.finished" and event["stage"] == "actor.learn":
            self._meter.learned(event["seconds"])
        elif event["type"] == "metrics" and "step/seconds" in event["metrics"]:
            self._meter.end_step()
            self._begin()

    def _begin(self) -> None:
        try:
            self._meter.begin_step()
        except Ended:
            if self._ends_at_once:
                shutil.rmtree(self._folder, ignore_errors=True)
                for pid in self._meter.helpers:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        psutil.Process(pid).kill()
                sys.stdout.flush()
                os._exit(0)


def loop_of(work: Work) -> dict[str, Any]:
    """The loop as a person would write it; only `best` says more than what it is about."""
    training: dict[str, Any] = {"optimizer": {"name": "adamw", "lr": work.learning_rate}}
    rollout: dict[str, Any] = {
        "completions_per_prompt": SAMPLES,
        "max_new_tokens": work.new_tokens,
    }
    hardware: dict[str, Any] = {"preset": "cpu"}
    if work.processes > 1:
        hardware["pools"] = {"main": {"workers": work.processes}}
    if work.gpu is not None:
        hardware = {"gpu": work.gpu, "nodes": 1, "gpus_per_node": 1}
        rollout["engine"] = "torch"
    if work.settings == "best":
        training["dtype"] = work.precision
    return {
        "coloop": 1,
        "name": "bench",
        "nodes": {
            "sums": {
                "kind": "dataset",
                "source": {"type": "file", "path": work.rows},
                "columns": {"prompt": "prompt", "target": "answer"},
                "rows_per_step": PROMPTS,
            },
            "actor": {
                "kind": "actor",
                "model": {"type": "pretrained", "path": work.folder},
                "rollout": rollout,
                "algorithm": {"name": "grpo"},
                "training": training,
            },
            "judge": {"kind": "reward", "source": REWARDS[work.reward]},
        },
        "edges": [
            "sums.rows -> actor.prompts",
            "actor.rollouts -> judge.rollouts",
            "judge.scores -> actor.rewards",
        ],
        "schedule": {"steps": work.steps},
        "hardware": hardware,
        "run": {"seed": work.seed},
    }


def main() -> None:
    work = Work.from_json(sys.argv[1])
    if work.settings == "best":
        torch.set_num_threads(work.threads)
    parsed = from_dict(loop_of(work))
    if parsed.spec is None:
        sys.exit("\n".join(one.describe() for one in parsed.diagnostics))
    place = Path(tempfile.mkdtemp(prefix="bench-own-"))
    meter = Meter()
    try:
        ended = run(
            RunRequest(
                spec=parsed.spec,
                text=json.dumps(loop_of(work)),
                root=place,
                runs_dir=place,
                run_id="run",
                cluster="local",
                threads=work.threads if work.settings == "best" else None,
                sinks=[Waits(meter, place, ends_at_once=work.keep is None)],
            )
        )
        if ended.state is not RunStateName.FINISHED:
            sys.exit(f"the run {ended.state}: {ended.error}")
        if work.keep is not None:
            newest = list_checkpoints(ended.folder / "checkpoints")[-1]
            shutil.copytree(newest.path / "actor", work.keep)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
