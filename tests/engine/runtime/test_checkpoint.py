"""Checkpoints are whole or do not exist; a full disk leaves the old one."""

import errno
from pathlib import Path

import pytest

from coloop.errors import CheckpointError, StorageFull
from coloop.runtime.checkpoint import Checkpoints


class Saver:
    def __init__(self, content: str = "weights") -> None:
        self.content = content

    def save(self, folder: Path) -> None:
        (folder / "actor").mkdir()
        (folder / "actor" / "model").write_text(self.content)


class FullDisk:
    def save(self, folder: Path) -> None:
        (folder / "actor").mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_checkpoint_has_weights_and_a_manifest(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)

    path = checkpoints.write(5, {"timeline": {"step": 5}}, Saver())

    latest = checkpoints.latest()
    assert latest is not None
    assert latest.path == path
    assert latest.manifest()["timeline"] == {"step": 5}
    assert (path / "actor" / "model").read_text() == "weights"


def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_half_written(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(5, {}, Saver())

    with pytest.raises(StorageFull, match="the checkpoint before it is untouched"):
        checkpoints.write(10, {}, FullDisk())

    assert [c.step for c in checkpoints.all()] == [5]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-5"]


def test_only_the_newest_stay_and_the_best_besides(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(1, {}, Saver())
    checkpoints.write(2, {}, Saver(), best=True)
    for step in (3, 4, 5):
        checkpoints.write(step, {}, Saver())

    assert [c.step for c in checkpoints.all()] == [2, 4, 5]
    best = checkpoints.best()
    assert best is not None
    assert best.step == 2


def test_a_folder_without_a_manifest_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "step-9").mkdir(parents=True)

    assert Checkpoints(tmp_path, keep=2).latest() is None


def test_writing_a_step_again_replaces_it(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(3, {"n": 1}, Saver("old"))
    path = checkpoints.write(3, {"n": 2}, Saver("new"), best=True)

    assert (path / "actor" / "model").read_text() == "new"
    assert [c.manifest()["n"] for c in checkpoints.all()] == [2]


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    path = checkpoints.write(3, {}, Saver())
    (path / "manifest.json").write_text("{")

    with pytest.raises(CheckpointError, match="manifest cannot be read"):
        checkpoints.latest()
