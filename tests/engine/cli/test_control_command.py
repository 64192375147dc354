"""`coloop control`: lists of controls, loops without a run, and real runs over seeds."""

import json
from pathlib import Path

import pytest

from coloop.runtime.run_files.events import RunStateEvent, RunStateName
from coloop.runtime.run_files.recorder import Recorder
from coloop.spec.io import load

PROBED = (
    ("rows_per_step: 32}", "rows_per_step: 2}"),
    (
        "completions_per_prompt: 8, max_new_tokens: 16",
        "completions_per_prompt: 2, max_new_tokens: 3",
    ),
    (
        "edges:\n",
        "  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, "
        "rows_per_step: 4}\n"
        "  probe: {kind: evaluate, instead_of: problems, every: 1, greedy: true, "
        "metrics: [score]}\n"
        "edges:\n  - held_out.rows -> probe.rows\n  - exact.scores -> probe.scores\n",
    ),
    ("schedule: {steps: 10}", "schedule: {steps: 2}"),
)


def test_without_a_kind_the_controls_are_listed(coloop):
    listed = coloop("control", "spin")
    told = coloop("control", "spin", "--json").json

    assert listed.code == 0
    assert "`opponent` is a copy of `policy` made when phase `collect` first starts." in listed.out
    kinds = {one["kind"]: one for one in told["controls"]}
    assert kinds["plain"]["has"]
    assert not kinds["no_tool"]["has"]
    assert kinds["no_tool"]["says"].endswith("`policy` calls no tool")


def test_a_dry_run_prints_the_loop(coloop, tmp_path):
    printed = coloop("control", "search-r1", "--kind", "no_tool", "--dry-run")
    path = tmp_path / "made.yaml"
    path.write_text(printed.out, encoding="utf-8")

    assert printed.code == 0
    assert "`policy` cannot call `index`." in printed.err
    assert "index" not in load(path).nodes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dapo", "--kind", "frozen"), "`actor` trains alone"),
        (("dapo", "--kind", "frosted"), "there is no kind 'frosted' of control; kinds: frozen"),
        (("dapo", "--kind", "shuffled", "--learner", "exact"), "`exact` does not learn"),
    ],
)
def test_a_control_that_makes_no_sense_is_refused(coloop, arguments, words):
    refused = coloop("control", *arguments)

    assert refused.code == 1
    assert words in refused.err


def test_a_missing_file_is_exit_code_2(coloop):
    missing = coloop("control", "nothing.yaml", "--kind", "frozen")

    assert missing.code == 2
    assert "file nothing.yaml not found" in missing.err


def run_folder(folder: Path, text: str, *states: RunStateName) -> Path:
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    recorder = Recorder(folder, folder.name, [])
    for state in states:
        recorder.record(RunStateEvent(state=state))
    recorder.close()
    return folder


def test_controls_are_of_finished_runs_that_are_no_controls(coloop, loop, tmp_path):
    text = loop(*PROBED).read_text(encoding="utf-8")
    runs = tmp_path / "runs"
    run_folder(runs / "half", text, RunStateName.STOPPED)
    relation = "run: {control: {of: first, kind: frozen}}\n"
    run_folder(runs / "other", text + relation, RunStateName.FINISHED)

    stopped = coloop("control", "half", "--kind", "shuffled", "--runs-dir", runs)
    again = coloop("control", "other", "--kind", "shuffled", "--runs-dir", runs)

    assert stopped.code == again.code == 1
    assert "half is stopped, and a control is compared with a finished run" in stopped.err
    assert "other is itself a `frozen` control of first" in again.err


def test_a_run_and_its_control_over_two_seeds_are_run_once_and_compared(coloop, loop, tmp_path):
    runs = tmp_path / "runs"
    first = coloop("run", loop(*PROBED), "--local", "--runs-dir", runs, "--run-id", "first")
    assert first.code == 0
    arguments = ("control", "first", "--kind", "shuffled", "--seeds", 2, "--local", "--json")

    compared = coloop(*arguments, "--runs-dir", runs)
    sizes = {path: path.stat().st_size for path in runs.glob("*/events.jsonl")}
    again = coloop(*arguments, "--runs-dir", runs)

    assert compared.code == 0
    assert {path.parent.name for path in sizes} == {
        *("first", "first-full-1", "first-shuffled-0", "first-shuffled-1"),
    }
    found = compared.json
    assert found["metric"] == "probe.score"
    arms = {arm["kind"]: arm for arm in found["arms"]}
    assert [run["run"] for run in arms["full"]["runs"]] == ["first", "first-full-1"]
    assert [run["seed"] for run in arms["shuffled"]["runs"]] == [0, 1]
    assert arms["shuffled"]["spread"] is not None
    [one] = found["comparisons"]
    assert one["difference"] == pytest.approx(arms["full"]["end"] - arms["shuffled"]["end"])
    assert one["leads"] in (True, False)
    report = json.loads((runs / "first-shuffled-1" / "report.json").read_text(encoding="utf-8"))
    assert report["control"] == {"of": "first", "kind": "shuffled"}
    assert again.json == found
    assert {path: path.stat().st_size for path in sizes} == sizes
