"""What `coloop run` and `coloop watch` do before and after a run; runs themselves are trained
elsewhere."""

import json
import os

import pytest

from coloop.errors import RunFolderExists
from coloop.runtime.checkpoints.run_folder import write_base_folder
from coloop.runtime.run_files.events import LogEvent
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.run_files.run_lock import RunLock

FILE = "{type: file, path: mine.jsonl}"
TASK = "{type: task, task: arithmetic}"


@pytest.fixture
def started(monkeypatch):
    """Requests that would have been run."""
    from coloop.runtime import start

    requests = []

    def run(request):
        requests.append(request)
        raise RunFolderExists("enough seen")

    monkeypatch.setattr(start, "run", run)
    return requests


def rows(folder):
    path = folder / "mine.jsonl"
    path.write_text('{"prompt": "1+1=", "question": "1+1=", "answer": "2"}\n', encoding="utf-8")
    return path


def test_a_resumed_run_reads_its_files_from_where_it_was_started(coloop, loop, tmp_path, started):
    rows(tmp_path)
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop((TASK, FILE)).read_text(), encoding="utf-8")
    write_base_folder(folder, tmp_path)

    coloop("run", "--resume", folder, "--local")

    assert [request.root for request in started] == [tmp_path]


def test_a_preset_with_data_runs_from_anywhere(coloop, tmp_path, monkeypatch, started):
    monkeypatch.chdir(tmp_path)

    outcome = coloop("run", "grpo-from-file", "--local")

    assert "enough seen" in outcome.out
    assert (started[0].root / "data").is_dir()


def test_a_path_that_is_typed_counts_from_here(coloop, tmp_path, monkeypatch, started):
    path = rows(tmp_path)
    monkeypatch.chdir(tmp_path)

    coloop("run", "grpo-from-file", "--local", "--set", "nodes.questions.source.path=mine.jsonl")

    assert started[0].spec.nodes["questions"].source.path == str(path)


@pytest.mark.parametrize("value", ["&a [*a]", "[1, 2", "{a: 1, a: 2}"])
def test_a_setting_that_is_no_yaml_is_refused(value, coloop, loop):
    outcome = coloop("run", loop(), "--local", "--set", f"name={value}")

    assert outcome.code == 1
    assert "is not a YAML value" in outcome.out


def test_a_resume_is_not_sent_to_a_cluster(coloop, loop, tmp_path):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")

    outcome = coloop("run", "--resume", folder, "--address", "http://127.0.0.1:1")

    assert outcome.code == 1
    assert "--resume and --fork need the run folder on this machine" in outcome.out


def test_what_does_not_run_yet_is_not_sent_to_a_cluster(coloop, loop):
    outcome = coloop(
        "run",
        loop(("max_new_tokens: 16}", "max_new_tokens: 16, images: true}")),
        "--address",
        "http://127.0.0.1:1",
    )

    assert outcome.code == 1
    assert "not yet runnable" in outcome.out + outcome.err


def test_a_run_that_was_resumed_is_watched_to_its_last_end(coloop, loop, tmp_path):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")
    states = [("running", 1), ("stopped", 1), ("starting", 2), ("running", 2), ("finished", 2)]
    lines = [
        {
            "seq": number,
            "at": "2026-01-01T00:00:00Z",
            "run": "one",
            "attempt": attempt,
            "type": "run.state",
            "state": state,
        }
        for number, (state, attempt) in enumerate(states, 1)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "events.jsonl").write_text(text, encoding="utf-8")

    outcome = coloop("watch", folder)

    assert "finished" in outcome.out


def test_a_run_that_is_written_by_another_is_refused_before_anything_is_loaded(
    coloop, loop, tmp_path, started
):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")
    write_base_folder(folder, tmp_path)

    with RunLock(folder):
        outcome = coloop("run", "--resume", folder, "--local")

    assert outcome.code == 4
    assert f"process {os.getpid()} on" in outcome.out.replace("\n", " ")
    assert not started


def test_a_run_goes_on_from_the_checkpoint_that_is_named(coloop, loop, tmp_path, started):
    folder = tmp_path / "runs" / "one"
    (folder / "checkpoints" / "step-4").mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")
    write_base_folder(folder, tmp_path)

    coloop("run", "--resume", folder / "checkpoints" / "step-4", "--local")
    coloop("run", "--resume", folder, "--local")

    assert [(one.resume, one.checkpoint) for one in started] == [(folder, 4), (folder, None)]


def test_a_run_is_resumed_with_a_changed_setting(coloop, loop, tmp_path, started):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    path = loop()
    (folder / "spec.yaml").write_text(path.read_text(), encoding="utf-8")
    write_base_folder(folder, tmp_path)
    path.write_text(path.read_text().replace("rows_per_step: 32", "rows_per_step: 4"))

    coloop("run", "--resume", folder, "--local", "--set", "nodes.problems.rows_per_step=3")
    outcome = coloop("run", path, "--resume", folder, "--local")

    assert [request.spec.nodes["problems"].rows_per_step for request in started] == [3]
    assert "change its loop with `--set PATH=VALUE`" in outcome.out


def test_a_damaged_origin_is_told_in_one_line(coloop, loop, tmp_path, started):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")
    (folder / "origin.json").write_text('{"root"')

    outcome = coloop("run", "--resume", folder, "--local")

    assert outcome.code == 1
    assert "--root" in outcome.out
    assert not started


def run_folder(folder, loop):
    """A run folder with three events, the second of them damaged."""
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")
    recorder = Recorder(folder, "one")
    for name in "abc":
        recorder.record(LogEvent(message=name))
    recorder.close()
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text(f"{lines[0]}?\n{lines[2]}")
    return folder


def test_a_damaged_run_is_named_line_by_line(coloop, loop, tmp_path):
    folder = run_folder(tmp_path / "runs" / "one", loop)

    told = coloop("runs", "check", "one", "--runs-dir", tmp_path / "runs")
    as_json = coloop("runs", "check", folder, "--json")

    assert (told.code, as_json.code) == (1, 1)
    assert "damaged events.jsonl: line 2 is not an event" in told.out
    assert as_json.json["ok"] is False
    found = [one["path"] for one in as_json.json["findings"]]
    assert "events.jsonl" in found


def test_a_whole_run_is_whole_and_one_that_is_not_there_is_told(coloop, loop, tmp_path):
    folder = tmp_path / "runs" / "fork"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")

    assert coloop("runs", "check", folder).code == 0
    assert coloop("runs", "check", folder, "--json").json == {"ok": True, "findings": []}
    assert coloop("runs", "check", tmp_path / "nowhere").code == 2
    assert coloop("runs", "--runs-dir", tmp_path / "runs", "--json").json[0]["id"] == "fork"


def test_a_bad_line_ends_neither_the_list_nor_the_watching(coloop, loop, tmp_path):
    folder = run_folder(tmp_path / "runs" / "one", loop)
    with (folder / "events.jsonl").open("a") as events:
        events.write('{"type":"run.state","seq":4,"at":"","state":"stopped","step":3}\n')

    assert coloop("runs", "--runs-dir", tmp_path / "runs", "--json").json[0]["state"] == "stopped"
    assert "stopped" in coloop("watch", folder).out
