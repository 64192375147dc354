"""Checkpoints are whole or do not exist; a full disk leaves the old one."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from coloop.data.files.marks import Mark, Marks
from coloop.errors import CheckpointError, StorageFull
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.checkpoints.checkpoint_manager import pick_up
from coloop.runtime.checkpoints.manifest import read_manifest


class Saver:
    def __init__(self, content: str = "weights") -> None:
        self.content = content

    def __call__(self, folder: Path) -> dict[str, Mark]:
        (folder / "actor").mkdir(parents=True)
        path = folder / "actor" / "model"
        path.write_text(self.content)
        return {"actor/model": Marks("pool train on far").of([path])[path]}


class Elsewhere(Saver):
    """A worker on another machine: the same path is another folder there."""

    def __init__(self, machine: Path) -> None:
        super().__init__()
        self.machine = machine

    def __call__(self, folder: Path) -> dict[str, Mark]:
        return super().__call__(self.machine / folder.name)


class Cut(Saver):
    """Half of what was written arrives."""

    def __call__(self, folder: Path) -> dict[str, Mark]:
        return {name: replace(m, size=2 * m.size) for name, m in super().__call__(folder).items()}


class Torn(Saver):
    """As many bytes arrive as were written, and others."""

    def __call__(self, folder: Path) -> dict[str, Mark]:
        return {name: replace(m, sha256="0" * 64) for name, m in super().__call__(folder).items()}


class FullDisk:
    def __call__(self, folder: Path) -> dict[str, Mark]:
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

    with pytest.raises(StorageFull, match="the previous checkpoint is intact"):
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


def test_what_a_run_remembers_never_hides_what_the_checkpoint_is(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path, keep=2).write(3, {"best": 0.9, "step": 7, "version": 9}, Saver())

    [checkpoint] = Checkpoints(tmp_path, keep=2).all()
    assert (checkpoint.step, checkpoint.best, checkpoint.path) == (3, False, path)


def test_what_a_killed_writer_left_is_cleared_up(tmp_path: Path) -> None:
    written = Checkpoints(tmp_path, keep=2).write(3, {"n": 1}, Saver())
    written.rename(tmp_path / ".step-3.old")  # killed between its two renames
    (tmp_path / ".step-9.new").mkdir()

    [checkpoint] = Checkpoints(tmp_path, keep=2).all()

    assert checkpoint.manifest()["n"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["step-3"]


def test_a_best_step_that_is_written_again_stays_the_best(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(3, {}, Saver(), best=True)
    checkpoints.write(3, {}, Saver())

    assert [c.best for c in checkpoints.all()] == [True]


@pytest.mark.parametrize("how", ["elsewhere", "cut", "torn"])
def test_weights_that_cannot_be_read_back_are_no_checkpoint(how: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "here", keep=1)
    checkpoints.write(5, {}, Saver())
    savers = {"elsewhere": Elsewhere(tmp_path / "there"), "cut": Cut(), "torn": Torn()}

    for step in (10, 15):
        with pytest.raises(CheckpointError, match=r"actor/model .*run\.storage") as found:
            checkpoints.write(step, {}, savers[how])

    assert "the previous checkpoint is intact" in str(found.value)
    assert "pool train on far" in str(found.value)
    assert [c.step for c in checkpoints.all()] == [5]
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["step-5"]


def test_a_checkpoint_that_lost_a_file_does_not_count(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(1, {}, Saver())
    path = checkpoints.write(2, {}, Saver())
    (path / "actor" / "model").write_text("half")

    latest = checkpoints.latest()

    assert latest is not None
    assert latest.step == 1
    assert checkpoints.newest_whole()[1] == [f"{path}/actor/model has 4 bytes, but 7 were written"]
    checkpoints.write(3, {}, Saver())
    assert [c.step for c in checkpoints.all()] == [1, 3]


def test_where_no_checkpoint_is_whole_nothing_begins_anew(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    path = checkpoints.write(2, {}, Saver())
    (path / "actor" / "model").unlink()

    with pytest.raises(CheckpointError, match="actor/model was written but cannot be read here"):
        checkpoints.latest()


def test_every_file_is_known_by_its_hash_and_one_that_rots_does_not_count(tmp_path: Path) -> None:
    Checkpoints(tmp_path, keep=2).write(1, {}, Saver())
    path = Checkpoints(tmp_path, keep=2).write(2, {}, Saver())
    (path / "actor" / "model").write_text("WEIGHTS")

    checkpoints = Checkpoints(tmp_path, keep=2)
    latest = checkpoints.latest()

    assert latest is not None
    assert latest.step == 1
    assert latest.manifest()["hashes"].keys() == latest.manifest()["files"].keys()
    [damage] = checkpoints.newest_whole()[1]
    assert damage.startswith(f"{path}/actor/model was changed after it was written")


def test_a_checkpoint_whose_weights_have_no_hash_counts_by_its_sizes(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path, keep=2).write(2, {}, Saver())
    manifest = {**read_manifest(path), "version": 2, "hashes": {}}
    (path / "manifest.json").write_text(json.dumps(manifest))

    latest = Checkpoints(tmp_path, keep=2).latest()

    assert latest is not None
    assert latest.step == 2


def test_a_full_disk_is_told_with_what_is_wanted_and_what_is_free(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(5, {}, Saver())

    with pytest.raises(StorageFull, match=r"it needs 7 bytes .*, \d+ are free there") as found:
        checkpoints.write(10, {}, FullDisk())

    assert str(tmp_path) in str(found.value)


def test_a_file_that_is_linked_on_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text("frozen")
    marks = Marks()
    first = marks.of([before])[before]
    os.link(before, after)
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("it was read again"))

    assert marks.of([after])[after] == first


def test_everything_is_on_the_disk_before_a_checkpoint_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    sync, rename = os.fsync, Path.rename

    def noted_sync(file: int) -> None:
        told.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        sync(file)

    def noted_rename(path: Path, target: Path) -> Path:
        told.append(f"to {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", noted_rename)

    Checkpoints(tmp_path, keep=2).write(5, {}, Saver())

    before, after = told[: told.index("to step-5")], told[told.index("to step-5") + 1 :]
    assert {"model", "actor", "manifest.json"} <= set(before)
    assert before[-1].startswith(".step-5.")
    assert after == [tmp_path.name]


def test_a_disk_that_fails_when_it_is_asked_for_the_bytes_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.write(5, {}, Saver())

    def broken(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(StorageFull, match="the previous checkpoint is intact"):
            checkpoints.write(6, {}, Saver())

    assert [path.name for path in tmp_path.iterdir()] == ["step-5"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 9}', '{"version": 2}'])
@pytest.mark.parametrize("step", [1, 2])
def test_a_manifest_that_cannot_be_read_hides_no_whole_checkpoint(
    text: str, step: int, tmp_path: Path
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=3)
    for one in (1, 2):
        checkpoints.write(one, {}, Saver())
    (tmp_path / f"step-{step}" / "manifest.json").write_text(text)

    again = Checkpoints(tmp_path, keep=3)

    newest, damaged = again.newest_whole()
    assert newest is not None
    assert newest.step == 3 - step
    assert f"step-{step}" in damaged[0]
    again.write(3, {}, Saver())
    assert [one.step for one in again.all()] == [3 - step, 3]


def test_a_manifest_knows_that_it_is_whole(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path, keep=2).write(3, {"drawn": 8}, Saver())
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"drawn": 8', '"drawn": 9'))

    with pytest.raises(CheckpointError, match="its own SHA-256 differs"):
        Checkpoints(tmp_path, keep=2).latest()


def test_two_attempts_never_write_into_the_same_folder(tmp_path: Path) -> None:
    """A host of a killed driver may still write when the next attempt writes the same step."""
    asides: list[Path] = []

    class Late(Saver):
        def __call__(self, folder: Path) -> dict[str, Mark]:
            for other in asides:
                (other / "actor").mkdir(parents=True, exist_ok=True)
                (other / "actor" / "model").write_text("of the dead")
            asides.append(folder)
            return super().__call__(folder)

    for _ in range(2):
        path = Checkpoints(tmp_path, keep=2).write(3, {}, Late())

    assert len(set(asides)) == 2
    assert (path / "actor" / "model").read_text() == "weights"
    assert Checkpoints(tmp_path, keep=2).latest() is not None
    assert [one.name for one in tmp_path.iterdir()] == ["step-3"]


def test_a_removal_that_breaks_off_leaves_no_half_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.write(1, {}, Saver())
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    checkpoints.write(2, {}, Saver())
    monkeypatch.undo()

    again = Checkpoints(tmp_path, keep=1)

    assert again.newest_whole()[1] == []
    assert [one.name for one in tmp_path.iterdir()] == ["step-2"]


def test_a_run_goes_on_from_the_step_that_is_asked_for(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=2)
    for step in (1, 2):
        checkpoints.write(step, {}, Saver())

    chosen = pick_up(checkpoints, tmp_path, 1, lambda problem: None)

    assert chosen is not None
    assert chosen.step == 1
