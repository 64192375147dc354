"""Disks that are full for real, and folders that a pool does not see: the run says what it wants
and where, its last whole checkpoint stays, and a resume goes on once there is room."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.messages import Sight
from coloop.workers.worker import Worker

Run = Callable[..., Any]
Text = Callable[..., str]
Equal = Callable[..., bool]

DISK_BYTES = 64 * 2**20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own that can be filled."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("this user may not mount a disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> None:
    """Take all the room that there is."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        for size in (2**20, 2**12):
            while True:
                try:
                    if filler.write(bytes(size)) < size:
                        break
                except OSError:
                    break


@pytest.mark.slow
def test_a_checkpoint_that_finds_the_disk_full_leaves_the_one_before_it(
    runner: Run, tiny: Text, whole: Run, equal: Equal, disk: Path
) -> None:
    values = {"run.checkpoint_every": 2}
    text = tiny("grpo-arithmetic", {**values, "run.storage": str(disk)})

    def on_event(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "checkpoint":
            fill(disk)

    ended = runner(text, on_event=on_event)

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "storage.full"
    assert str(ended.folder / "checkpoints") in ended.error.message
    assert "bytes (as much as the last one)" in ended.error.message
    assert [one.step for one in list_checkpoints(ended.folder / "checkpoints")] == [2]
    (disk / "filler").unlink()
    resumed = runner(text, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(tiny("grpo-arithmetic", values)).weights())


def events_on_a_full_disk(folder: Path) -> None:
    """From here on the event file of a run of this process has no room."""
    path = (folder / "events.jsonl").resolve()
    links = Path("/proc/self/fd").iterdir()
    [number] = [int(one.name) for one in links if one.is_symlink() and one.resolve() == path]
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, number)
    os.close(full)


def test_an_event_that_finds_the_disk_full_ends_the_run_and_a_resume_goes_on(
    runner: Run, tiny: Text, whole: Run, equal: Equal
) -> None:
    text = tiny("grpo-arithmetic", {"run.checkpoint_every": 2})

    def on_event(event: dict[str, Any], folder: Path) -> None:
        if event["type"] == "stage.finished" and event["step"] == 4:
            events_on_a_full_disk(folder)

    ended = runner(text, on_event=on_event)

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "storage.full"
    assert f"{ended.folder}/events.jsonl" in ended.error.message
    assert "bytes" in ended.error.message
    assert [one.step for one in list_checkpoints(ended.folder / "checkpoints")] == [2]
    resumed = runner(text, resume=ended)
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole(text).weights())
    assert [one["seq"] for one in resumed.events] == list(range(1, len(resumed.events) + 1))


def test_a_pool_that_writes_to_a_disk_of_its_own_is_named_before_anything_is_done(
    runner: Run, tiny: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "hardware.pools": {"train": {"workers": 1}, "write": {"workers": 1}},
        "nodes.actor.pool": "train",
        "nodes.start.pool": "write",
    }
    see = Worker.see

    def seen(host: Worker, folder: Path) -> Sight:
        elsewhere = Sight(machine="far", word=None)
        return elsewhere if host._settings.pool == "write" else see(host, folder)

    monkeypatch.setattr(Worker, "see", seen)

    ended = runner(tiny("grpo-arithmetic", values))

    assert ended.state is RunStateName.FAILED
    assert ended.error.code == "checkpoint.unusable"
    assert "pool write, on far, does not see" in ended.error.message
    assert str(ended.folder / "checkpoints") in ended.error.message
    assert "run.storage" in ended.error.message
    assert not ended.of("stage.started")
    assert not [*(ended.folder / "checkpoints").iterdir()]
