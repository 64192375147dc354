"""Copies of checkpoints outside of the run folder."""

from pathlib import Path
from uuid import uuid4

import pytest

from coloop.data.files.marks import Mark, Marks
from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.checkpoints.storage import Storage


class Weights:
    """Writes one group of one file."""

    def __call__(self, folder: Path) -> dict[str, Mark]:
        (folder / "actor").mkdir()
        (folder / "actor" / "manifest.json").write_text("{}")
        (folder / "actor" / "model.bin").write_bytes(b"weights")
        marks = Marks().of((folder / "actor").iterdir())
        return {path.relative_to(folder).as_posix(): mark for path, mark in marks.items()}


@pytest.fixture(params=["memory", "file"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    url = f"memory://{uuid4().hex}" if request.param == "memory" else f"file://{tmp_path}/far"
    return Storage(url, "run-1")


def test_a_copy_comes_back_byte_for_byte(storage: Storage, tmp_path: Path) -> None:
    written = Checkpoints(tmp_path / "here", keep=2, storage=storage).write(4, {"x": 1}, Weights())

    back = storage.get(4, _folder(tmp_path / "there"))

    names = sorted(path.relative_to(written) for path in written.rglob("*"))
    assert sorted(path.relative_to(back) for path in back.rglob("*")) == names
    assert (back / "actor" / "model.bin").read_bytes() == b"weights"
    assert (back / "manifest.json").read_text() == (written / "manifest.json").read_text()


def test_copies_are_removed_with_what_they_are_copies_of(storage: Storage, tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "here", keep=2, storage=storage)

    for step in (1, 2, 3):
        checkpoints.write(step, {}, Weights())

    assert storage.steps() == [2, 3]


def test_a_copy_without_its_manifest_does_not_exist(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path / "here", keep=2, storage=storage)
    told: list[str] = []
    checkpoints.on_lost_copy = told.append
    checkpoints.write(1, {}, Weights())
    put = storage._files.put_file

    def cut_off(source: str, target: str) -> None:
        if target.endswith("step-2/manifest.json"):
            raise ConnectionError("the line is cut")
        put(source, target)

    monkeypatch.setattr(storage._files, "put_file", cut_off)
    written = checkpoints.write(2, {}, Weights())

    assert storage.steps() == [1]
    assert (written / "manifest.json").exists()
    assert len(told) == 1
    assert "step-2 could not be copied" in told[0]
    assert "the line is cut" in told[0]


def test_only_what_is_newer_is_brought_back(storage: Storage, tmp_path: Path) -> None:
    Checkpoints(tmp_path / "far", keep=2, storage=storage).write(3, {"at": "far"}, Weights())
    here = Checkpoints(tmp_path / "here", keep=2, storage=storage)

    here.bring_back()

    latest = here.latest()
    assert latest is not None
    assert latest.manifest()["at"] == "far"

    Checkpoints(tmp_path / "here", keep=2).write(5, {"at": "here"}, Weights())
    here.bring_back()

    latest = here.latest()
    assert latest is not None
    assert latest.manifest()["at"] == "here"


def test_an_address_that_nothing_speaks_to_is_told() -> None:
    with pytest.raises(CheckpointError, match=r"run.storage 'nowhere://x' cannot be used"):
        Storage("nowhere://x", "run-1")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_copy_that_arrives_in_part_is_told_and_removes_nothing(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path / "here", keep=1, storage=storage)
    told: list[str] = []
    checkpoints.on_lost_copy = told.append
    checkpoints.write(1, {}, Weights())
    put = storage._files.put_file
    half = tmp_path / "half"
    half.write_bytes(b"wei")

    def cut_off(source: str, target: str) -> None:
        put(str(half) if target.endswith("model.bin") else source, target)

    monkeypatch.setattr(storage._files, "put_file", cut_off)
    checkpoints.write(2, {}, Weights())

    assert "model.bin has 3 of 7 bytes" in told[0]
    assert storage.steps() == [1]


def changed(storage: Storage, place: str) -> None:
    """A bit of a copied file is another."""
    content = bytearray(storage._files.cat_file(place))
    content[-1] ^= 1
    storage._files.pipe_file(place, bytes(content))


@pytest.mark.parametrize("name", ["actor/model.bin", "manifest.json"])
def test_a_copy_that_rots_is_told_and_the_one_before_is_brought_back(
    name: str, storage: Storage, tmp_path: Path
) -> None:
    far = Checkpoints(tmp_path / "far", keep=2, storage=storage)
    for step in (1, 2):
        far.write(step, {}, Weights())
    changed(storage, f"{storage._checkpoints}/step-2/{name}")
    here = Checkpoints(tmp_path / "here", keep=2, storage=storage)
    told: list[str] = []
    here.on_lost_copy = told.append

    here.bring_back()

    assert [one.step for one in here.all()] == [1]
    assert "step-2 could not be restored" in told[0]
    assert storage.damage(2) is not None
    assert storage.damage(1) is None


def test_a_copy_of_what_is_damaged_here_is_brought_back(storage: Storage, tmp_path: Path) -> None:
    here = Checkpoints(tmp_path / "here", keep=2, storage=storage)
    for step in (1, 2):
        path = here.write(step, {}, Weights())
    (path / "actor" / "model.bin").write_bytes(b"WEIGHTS")
    again = Checkpoints(tmp_path / "here", keep=2, storage=storage)

    again.bring_back()

    latest = again.latest()
    assert latest is not None
    assert latest.step == 2
    assert (path / "actor" / "model.bin").read_bytes() == b"weights"


def test_a_copy_that_arrives_as_other_bytes_is_told(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path / "here", keep=1, storage=storage)
    told: list[str] = []
    checkpoints.on_lost_copy = told.append
    put, other = storage._files.put_file, tmp_path / "other"
    other.write_bytes(b"WEIGHTS")

    def torn(source: str, target: str) -> None:
        put(str(other) if target.endswith("model.bin") else source, target)

    monkeypatch.setattr(storage._files, "put_file", torn)
    checkpoints.write(2, {}, Weights())

    assert "model.bin differs from what was copied" in told[0]
    assert storage.steps() == []


def test_a_storage_that_does_not_answer_stops_no_run_that_has_a_checkpoint(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> bool:
        raise ConnectionError("the line is cut")

    monkeypatch.setattr(storage._files, "exists", gone)
    here = Checkpoints(tmp_path / "here", keep=1, storage=storage)
    told: list[str] = []
    here.on_lost_copy = told.append
    with pytest.raises(CheckpointError, match="the line is cut"):
        here.bring_back()
    Checkpoints(tmp_path / "here", keep=1).write(2, {}, Weights())

    here.bring_back()

    assert "cannot be listed" in told[0]
