"""A checkpoint on tasks of the real `lm_eval`: a task file of one's own, its numbers, and bad
input. `make test-extras` installs the package."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.engine.runs.test_pushes import LOOP, SCRATCH
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.explain.experiment import record_of
from coloop.runtime.run_files.event_file import EVENT_FILE, read_events
from coloop.runtime.run_files.run_lock import RunLock
from coloop.suites.lm_eval_process import numbers_of

needs_lm_eval = pytest.mark.skipif(find_spec("lm_eval") is None, reason="needs lm_eval")

ROWS = [{"question": f"{number}+1=", "right": str(number + 1)} for number in range(6)]
TASK = {
    "task": "own_sums",
    "dataset_path": "json",
    "test_split": "test",
    "output_type": "multiple_choice",
    "doc_to_text": "{{question}}",
    "doc_to_choice": ["{{right}}", "nothing at all"],
    "doc_to_target": 0,
    "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
}


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    task = {**TASK, "dataset_kwargs": {"data_files": {"test": str(rows)}}}
    (folder / "own_sums.yaml").write_text(yaml.safe_dump(task))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


def evaluate(run: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["eval", str(run), *arguments])


@needs_lm_eval
@pytest.mark.timeout(900)
def test_a_task_of_ones_own_becomes_metrics_of_the_node(runner: Any, tasks: Path) -> None:
    ended = runner(LOOP.replace("MODEL", SCRATCH))
    before = read_events(ended.folder / EVENT_FILE)

    told = evaluate(
        ended.folder, "actor", "--tasks", "own_sums", "--task-folder", str(tasks), "--at", "last"
    )

    assert told.exit_code == 0, told.output
    *earlier, event = read_events(ended.folder / EVENT_FILE)
    assert earlier == before
    assert (event["type"], event["node"], event["step"]) == ("metrics", "actor", 2)
    assert event["evaluation"]
    assert event["attempt"] == before[-1]["attempt"]
    value = event["metrics"]["own_sums/acc"]
    assert value * len(ROWS) == pytest.approx(round(value * len(ROWS)))
    record = record_of([*earlier, event])
    assert record.state == "finished"
    assert record.readings["actor", "own_sums/acc"] == {2: value}
    missing = evaluate(ended.folder, "actor", "--tasks", "own_sum", "--task-folder", str(tasks))
    assert missing.exit_code == 1
    assert "lm_eval has no task 'own_sum'; there are own_sums" in missing.output


def test_a_run_that_goes_on_and_a_missing_package_are_said(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = runner(LOOP.replace("MODEL", SCRATCH))
    before = (ended.folder / EVENT_FILE).read_bytes()
    (tmp_path / "lm_eval.py").write_text("raise ModuleNotFoundError(name='lm_eval')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))

    missing = evaluate(ended.folder, "actor", "--tasks", "arc_easy")

    assert missing.exit_code == 1
    assert "this needs `lm_eval`: pip install 'coloop[lm-eval]'" in missing.output
    with RunLock(ended.folder):
        busy = evaluate(ended.folder, "actor", "--tasks", "arc_easy")
    assert busy.exit_code == 4
    assert (ended.folder / EVENT_FILE).read_bytes() == before


def test_numbers_are_named_by_task_metric_and_filter() -> None:
    results = {
        "arc_easy": {"alias": "arc_easy", "acc,none": 0.25, "acc_stderr,none": 0.01},
        "gsm8k": {"exact_match,strict-match": 0.5, "exact_match_stderr,strict-match": "N/A"},
        "broken": {"perplexity,none": float("inf")},
    }

    assert dict(numbers_of(results)) == {
        "arc_easy/acc": 0.25,
        "gsm8k/exact_match:strict-match": 0.5,
    }
