"""Loops of tests/experiments/real: valid, and two steps of each with the real model."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bench.runs import environment
from tests.experiments.real.__main__ import HERE, LOOPS, Row, read

from coloop.plan.run_check import check_run
from coloop.spec.diagnostics import Severity
from coloop.spec.io import parse, require
from coloop.spec.model_folders import models_dir
from coloop.validate import validate

ROWS = [Row(loop=loop, arm=arm, seed=1) for loop, arms in LOOPS.items() for arm in arms]
MODEL = models_dir() / "smollm2-135m"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_loop_is_valid(row: Row) -> None:
    spec = require(parse(row.text()))

    found = [one for one in validate(spec, root=HERE).diagnostics if one.severity is Severity.ERROR]
    assert [one.describe() for one in found] == []
    assert not check_run(spec, root=HERE).refusals


def test_half_of_the_sums_are_held_out() -> None:
    parts = [
        {json.loads(line)["prompt"][0]["content"] for line in path.open(encoding="utf-8")}
        for path in (HERE / "data").glob("sums-*.jsonl")
    ]

    assert [len(part) for part in parts] == [200, 200]
    assert not set.intersection(*parts)


def test_of_a_step_that_was_taken_twice_the_last_reading_counts() -> None:
    def said(step, value, node="probe", name="accuracy"):
        return {"type": "metrics", "step": step, "node": node, "metrics": {name: value}}

    events = [said(0, 0.25), said(4, 0.5), said(4, 0.75), {"type": "phase"}]
    events += [said(4, seconds, None, "step/seconds") for seconds in (8.0, 9.0)]

    assert read(events) == ({"probe.accuracy": [(0, 0.25), (4, 0.75)]}, 9.0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not MODEL.is_dir(), reason="needs `coloop models add smollm2-135m`")
@pytest.mark.parametrize("loop", LOOPS)
def test_two_steps_of_the_real_model(loop: str, tmp_path: Path) -> None:
    settings = {"schedule.phases.0.steps": 2, "nodes.held_out.rows_per_step": 8}
    command = [sys.executable, "-m", "coloop", "run", str(HERE / f"{loop}.yaml"), "--local"]
    command += ["--runs-dir", str(tmp_path), "--run-id", "run"]
    for path, value in settings.items():
        command += ["--set", f"{path}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    lines = (tmp_path / "run" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    said = [one["metrics"] for one in events if one["type"] == "metrics" and one.get("node")]
    losses = [metrics["loss"] for metrics in said if "loss" in metrics]
    assert len(losses) == 2
    assert all(math.isfinite(loss) for loss in losses)
    assert any(metrics.get("grad_norm", 0.0) > 0 for metrics in said)
    assert all(metrics["mismatch_kl"] < 0.01 for metrics in said if "mismatch_kl" in metrics)
    assert any("accuracy" in metrics for metrics in said)
