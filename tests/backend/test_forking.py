"""A fork takes files of a checkpoint alone, whatever the run folder holds."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.conftest import LOOP
from tests.backend.signed_in import found_run

from coloop.data.files.marks import Marks
from coloop.runtime.checkpoints.manifest import write_manifest
from coloop_server.errors import Conflict
from coloop_server.runs import forking, service
from coloop_server.settings import Settings

pytestmark = pytest.mark.attack

PRIVATE = "nobody else may read this"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file outside of the roots, in a folder of its own."""
    file = tmp_path / "private" / "diary.jsonl"
    file.parent.mkdir()
    file.write_text(PRIVATE)
    return file


@pytest.fixture
def checkpoint(settings: Settings) -> Path:
    """Of a run folder that lies in a root: sound, until a test has changed it."""
    folder = settings.runs_dir / "crafted"
    checkpoint = folder / "checkpoints" / "step-1"
    (checkpoint / "actor").mkdir(parents=True)
    (folder / "spec.yaml").write_text(LOOP)
    (folder / "events.jsonl").write_text("")
    (checkpoint / "actor" / "model.safetensors").write_bytes(b"weights")
    (checkpoint / "actor" / "config.json").write_text("{}")
    (checkpoint / "unnamed.log").write_text("not named by the manifest")
    name(checkpoint, "actor/model.safetensors", "actor/config.json")
    return checkpoint


def name(checkpoint: Path, *names: str, **lies: str) -> None:
    """Write the manifest of these files; `lies` are SHA-256 by name that are not theirs."""
    marks = Marks().of(checkpoint / one for one in names)
    files = {one: marks[checkpoint / one].size for one in names}
    hashes = {one: lies.get(one, marks[checkpoint / one].sha256) for one in names}
    write_manifest(checkpoint, {"step": 1, "files": files, "hashes": hashes})


def fork(checkpoint: Path, settings: Settings, target: Path | None = None) -> Path:
    target = target or settings.runs_dir / "fork"
    forking.prepare_fork(checkpoint, target, LOOP, settings.roots)
    return target / "checkpoints" / checkpoint.name


def refused(checkpoint: Path, settings: Settings) -> str:
    with pytest.raises(Conflict) as caught:
        fork(checkpoint, settings)
    assert not (settings.runs_dir / "fork").exists()
    return caught.value.body.message


def test_what_the_manifest_names_is_taken_and_nothing_else(
    checkpoint: Path, settings: Settings
) -> None:
    forked = fork(checkpoint, settings)

    names = {path.relative_to(forked).as_posix() for path in forked.rglob("*") if path.is_file()}
    assert names == {"manifest.json", "actor/model.safetensors", "actor/config.json"}
    assert (forked / "actor" / "model.safetensors").samefile(
        checkpoint / "actor" / "model.safetensors"
    )
    assert (settings.runs_dir / "fork" / "spec.yaml").read_text() == LOOP


@pytest.mark.parametrize("place", ["dirlink", "actor/dirlink", "actor/model.safetensors", "a\nb"])
@pytest.mark.parametrize("leads", ["private", "private/diary.jsonl", "nowhere", "/"])
def test_a_link_is_refused_by_name(
    checkpoint: Path, settings: Settings, outside: Path, tmp_path: Path, place: str, leads: str
) -> None:
    link = checkpoint / place
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / leads)

    message = refused(checkpoint, settings)

    assert message.startswith(f"{link} is a link to {tmp_path / leads}; ")


@pytest.mark.parametrize("which", ["step-1", "actor", "manifest.json", "checkpoints"])
def test_a_folder_behind_a_link_is_refused(
    checkpoint: Path, settings: Settings, tmp_path: Path, which: str
) -> None:
    parts = (checkpoint.parent, checkpoint, checkpoint / "actor", checkpoint / "manifest.json")
    link = next(path for path in parts if path.name == which)
    link.rename(tmp_path / "moved")
    link.symlink_to(tmp_path / "moved")

    message = refused(checkpoint, settings)

    assert f"{link} is a link to {tmp_path / 'moved'}" in message


def test_checkpoints_on_another_disk_are_taken_where_that_is_a_root(
    checkpoint: Path, settings: Settings
) -> None:
    disk = settings.allowed_roots[0] / "disk"
    disk.parent.mkdir()
    checkpoint.parent.rename(disk)
    checkpoint.parent.symlink_to(disk)

    assert (fork(checkpoint, settings) / "actor" / "config.json").read_text() == "{}"


def test_a_hard_link_to_another_file_is_refused(
    checkpoint: Path, settings: Settings, outside: Path
) -> None:
    file = checkpoint / "actor" / "config.json"
    file.unlink()
    os.link(outside, file)
    name(checkpoint, "actor/config.json", **{"actor/config.json": "0" * 64})

    message = refused(checkpoint, settings)

    assert message.startswith(f"{file} is a hard link")


def test_files_that_checkpoints_and_forks_share_are_taken(
    checkpoint: Path, settings: Settings
) -> None:
    """Whose names all lie in the run, and whose content is that of the manifest."""
    later = checkpoint.with_name("step-2")
    later.mkdir()
    os.link(checkpoint / "actor" / "config.json", later / "config.json")

    first = fork(checkpoint, settings)
    second = fork(first, settings, settings.runs_dir / "again")

    assert (second / "actor" / "config.json").samefile(checkpoint / "actor" / "config.json")


def test_files_that_others_may_write_are_copied(checkpoint: Path, settings: Settings) -> None:
    source = checkpoint / "actor" / "model.safetensors"
    source.chmod(0o666)

    copied = fork(checkpoint, settings) / "actor" / "model.safetensors"

    assert copied.read_bytes() == b"weights"
    assert not copied.samefile(source)


@pytest.mark.parametrize(
    "named",
    [
        "../../../spec.yaml",
        "/etc/hostname",
        "",
        ".",
        "..",
        "actor",
        "pipe",
        "a\0b",
        "gone",
        "x" * 300,
    ],
)
def test_names_that_are_no_plain_file_of_the_checkpoint_are_refused(
    checkpoint: Path, settings: Settings, named: str
) -> None:
    os.mkfifo(checkpoint / "pipe")
    write_manifest(checkpoint, {"step": 1, "files": {named: 1}, "hashes": {named: "0" * 64}})

    assert refused(checkpoint, settings)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"step": 1}', "[" * 100_000, "\0"])
def test_a_manifest_that_says_nothing_is_refused(
    checkpoint: Path, settings: Settings, text: str
) -> None:
    (checkpoint / "manifest.json").write_text(text)

    assert "manifest" in refused(checkpoint, settings)


def test_folders_without_end_are_refused(checkpoint: Path, settings: Settings) -> None:
    deep = checkpoint
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)

    assert "folders below each other" in refused(checkpoint, settings)


def test_over_http_nothing_from_outside_arrives(
    client: TestClient, checkpoint: Path, settings: Settings, outside: Path
) -> None:
    (checkpoint / "dirlink").symlink_to(outside.parent)
    run_id = found_run(client, "crafted")

    answer = client.post(f"/api/runs/{run_id}/fork", json={"force": True})

    assert (answer.status_code, answer.json()["code"]) == (409, "run.has_link")
    assert f"{checkpoint / 'dirlink'} is a link to {outside.parent}" in answer.json()["message"]
    copies = [path for path in settings.runs_dir.rglob("*") if path.name == outside.name]
    assert copies == []


def test_no_transaction_waits_while_a_checkpoint_is_copied(
    client: TestClient, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = found_run(client, "crafted")
    began, may_end = threading.Event(), threading.Event()

    def copy_slowly(*given: Any) -> None:
        began.set()
        assert may_end.wait(60)
        forking.prepare_fork(*given)

    monkeypatch.setattr(service, "prepare_fork", copy_slowly)
    answers: list[Any] = []
    path = f"/api/runs/{run_id}/fork"
    asking = threading.Thread(target=lambda: answers.append(client.post(path, json={})))
    asking.start()
    try:
        assert began.wait(60)
        written = client.post("/api/loops", json={"yaml": LOOP}).status_code
    finally:
        may_end.set()
        asking.join()

    assert written == 201
    assert answers[0].status_code == 201


def test_a_row_that_cannot_be_written_leaves_no_folder(
    client: TestClient, checkpoint: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = found_run(client, "crafted")

    def fail(*_: Any) -> None:
        raise Conflict("run.going_on", "not now")

    monkeypatch.setattr(service, "add", fail)
    answer = client.post(f"/api/runs/{run_id}/fork", json={})

    assert answer.status_code == 409
    assert not any(path.name.startswith("grpo") for path in settings.runs_dir.iterdir())
