"""Loops of tests/experiments/real: valid, and two steps of each with the real model."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bench.runs import environment
from tests.experiments.real.__main__ import HERE, LOOPS, Result, Row, curve_of, every_row, read
from tests.experiments.real.make_student import SUFFIX

from coloop.plan.run_check import check_run
from coloop.spec.diagnostics import Severity
from coloop.spec.io import parse, require
from coloop.spec.model_folders import models_dir
from coloop.validate import validate

ROWS = [row for row in every_row() if row.seed == 1]
MODEL = models_dir() / "smollm2-135m"
STUDENT = MODEL.with_name(MODEL.name + SUFFIX)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_loop_is_valid(row: Row) -> None:
    spec = require(parse(row.text()))

    found = [one for one in validate(spec, root=HERE).diagnostics if one.severity is Severity.ERROR]
    assert [one.describe() for one in found] == []
    assert not check_run(spec, root=HERE).refusals


@pytest.mark.parametrize("files", ["sums-*.jsonl", "bare-sums-*.jsonl"])
def test_half_of_the_sums_are_held_out(files: str) -> None:
    parts = [
        {str(json.loads(line)["prompt"]) for line in path.open(encoding="utf-8")}
        for path in (HERE / "data").glob(files)
    ]

    assert [len(part) for part in parts] == [200, 200]
    assert not set.intersection(*parts)


def test_of_a_step_that_was_taken_twice_the_last_reading_counts() -> None:
    def said(step, value, node="probe", name="accuracy"):
        return {"type": "metrics", "step": step, "node": node, "metrics": {name: value}}

    events = [said(0, 0.25), said(4, 0.5), said(4, 0.75), {"type": "phase"}]
    events += [said(4, seconds, None, "step/seconds") for seconds in (8.0, 9.0)]

    assert read(events) == ({"probe.accuracy": [(0, 0.25), (4, 0.75)]}, 9.0)


def test_a_curve_begins_with_the_last_reading_before_its_phase() -> None:
    readings = [(0, 0.0), (25, 0.25), (50, 0.5), (75, 0.75)]
    result = Result(
        loop="", curves={"probe.accuracy": readings}, began=60, seconds=1.0, engine="", date=""
    )
    row = Row(loop="opd-sums", arm="full", seed=1)

    assert curve_of(row, result) == [(0, 0.5), (15, 0.75)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not MODEL.is_dir(), reason="needs `coloop models add smollm2-135m`")
@pytest.mark.parametrize("loop", LOOPS)
def test_two_steps_of_the_real_model(loop: str, tmp_path: Path) -> None:
    if loop == "opd-sums" and not STUDENT.is_dir():
        pytest.skip("needs `python -m tests.experiments.real.make_student`")
    phases = len(require(parse(Row(loop=loop, arm="full", seed=1).text())).schedule.phases)
    settings = {f"schedule.phases.{place}.steps": 2 for place in range(phases)}
    settings["nodes.held_out.rows_per_step"] = 8
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
    assert len(losses) == 2 * phases
    assert all(math.isfinite(loss) for loss in losses)
    assert any(metrics.get("grad_norm", 0.0) > 0 for metrics in said)
    assert all(metrics["mismatch_kl"] < 0.01 for metrics in said if "mismatch_kl" in metrics)
    assert any("accuracy" in metrics for metrics in said)
