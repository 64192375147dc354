"""`coloop run --fork`: a new run from a checkpoint of another, with other settings."""

import json

import pytest

from coloop.data.files.marks import Marks
from coloop.runtime.checkpoints.manifest import write_manifest
from coloop.runtime.checkpoints.run_folder import write_base_folder
from coloop.runtime.run_files.event_file import events_of
from coloop.spec.io import load

SMALL = (
    ("rows_per_step: 32}", "rows_per_step: 2}"),
    (
        "completions_per_prompt: 8, max_new_tokens: 16",
        "completions_per_prompt: 2, max_new_tokens: 3",
    ),
    ("schedule: {steps: 10}", "schedule: {steps: 2}"),
    ("hardware: {preset: cpu}", "hardware: {preset: cpu}\nrun: {checkpoint_every: 1}"),
)


@pytest.fixture
def parent(loop, tmp_path):
    """A run folder with checkpoints of the steps 1 and 4."""
    folder = tmp_path / "runs" / "first"
    for step in (1, 4):
        checkpoint = folder / "checkpoints" / f"step-{step}"
        (checkpoint / "actor").mkdir(parents=True)
        weights = checkpoint / "actor" / "model.safetensors"
        weights.write_bytes(b"weights")
        mark = Marks().of([weights])[weights]
        name = "actor/model.safetensors"
        hashes = {name: mark.sha256}
        write_manifest(checkpoint, {"step": step, "files": {name: mark.size}, "hashes": hashes})
    (folder / "spec.yaml").write_text(loop().read_text(), encoding="utf-8")
    write_base_folder(folder, tmp_path)
    return folder


def words_of(outcome):
    return " ".join((outcome.out + outcome.err).split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--checkpoint", 3), "has no checkpoint of step 3; it has 1, 4: choose one of those"),
        (("--set", "schedule.steps=4"), "is over at the checkpoint of step 4; set it to 5 or more"),
        (("--set", "nodes.actor.training.optimizer.lr=fast"), "optimizer.lr"),
        (("--set", "nodes.actor.trainning=1"), "trainning"),
        (("--resume", "first"), "give --fork or --resume, not both"),
    ],
)
def test_a_fork_that_cannot_be_is_refused_and_leaves_no_folder(coloop, parent, arguments, words):
    refused = coloop("run", "--fork", "first", "--local", "--runs-dir", parent.parent, *arguments)

    assert refused.code == 1
    assert words in words_of(refused)
    assert [path.name for path in parent.parent.iterdir()] == ["first"]


def test_a_checkpoint_belongs_to_a_fork_or_a_resume(coloop, loop):
    refused = coloop("run", loop(), "--local", "--checkpoint", 1)

    assert refused.code == 1
    assert "--checkpoint goes with --fork or --resume" in words_of(refused)


def test_a_fork_does_not_replace_a_run(coloop, parent):
    arguments = ("--local", "--runs-dir", parent.parent, "--run-id", "first")
    refused = coloop("run", "--fork", parent / "checkpoints" / "step-1", *arguments)

    assert refused.code == 1
    assert "first exists; choose another --run-id for the fork" in words_of(refused)


def test_a_fork_goes_on_after_its_checkpoint_with_other_settings(coloop, loop, tmp_path):
    runs = tmp_path / "runs"
    here = ("--local", "--runs-dir", runs)
    assert coloop("run", loop(*SMALL), *here, "--run-id", "first").code == 0
    before = (runs / "first" / "events.jsonl").read_bytes()

    lr, steps = "nodes.actor.training.optimizer.lr=1e-5", "schedule.steps=3"
    forked = coloop(
        *("run", "--fork", "first", "--checkpoint", 1, "--set", lr, "--set", steps),
        *(*here, "--run-id", "second"),
    )

    assert forked.code == 0, words_of(forked)
    second = runs / "second"
    assert json.loads((second / "parent.json").read_text()) == {"run": "first", "step": 1}
    assert load(second / "spec.yaml").nodes["actor"].training.optimizer.lr == 1e-5
    events = list(events_of(second / "events.jsonl"))
    metrics = {event["step"] for event in events if event["type"] == "metrics"}
    assert metrics == {2, 3}
    assert (events[0]["seq"], events[0]["attempt"]) == (1, 1)
    assert (runs / "first" / "events.jsonl").read_bytes() == before
