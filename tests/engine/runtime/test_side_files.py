"""Rows in files of their own: each is written once, every checkpoint is whole by itself."""

import itertools
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.tables.test_serialize import rows

from coloop.algorithms.batch import Pair, Sequence, Text
from coloop.data.distributions import Distribution, Teacher
from coloop.data.files.marks import Mark
from coloop.data.tables import Row
from coloop.data.tables.row import root_row
from coloop.data.tables.rowfile import read_rows, write_rows
from coloop.errors import CheckpointError, StorageFull
from coloop.runtime.checkpoints import side_files
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.roles.rows.kept import KINDS, Entry, Kept


class Saver:
    """Weights of no size."""

    def __call__(self, folder: Path) -> dict[str, Mark]:
        return {}


def entry(number: int) -> Entry:
    row = root_row("gold", f"0.{number}", {"prompt": f"p{number}", "places": {3: 0.1}})
    return Entry(serial=number, port="rows", iteration=1, row=row, score={0: 0.5}, scorer="exact")


def state(numbers: Iterable[int], **others: Any) -> dict[str, Any]:
    kept = Kept(rows={number: entry(number) for number in numbers})
    return {"roles": {"pool": {"entries": kept, "serial": 9, **others}}}


def held(checkpoints: Checkpoints) -> list[int]:
    """Numbers of the rows that the newest checkpoint gives back, whole and in order."""
    latest = checkpoints.latest()
    assert latest is not None
    kept = Checkpoints(latest.path.parent, keep=9).read(latest)["roles"]["pool"]["entries"]
    assert list(kept.rows.values()) == [entry(number) for number in kept.rows]
    return list(kept.rows)


def files(folder: Path) -> dict[str, int]:
    """Names of a checkpoint's files of rows, and how many names each has in all."""
    return {path.name: path.stat().st_nlink for path in sorted(folder.glob("*.rows"))}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path, keep=9)


@settings(max_examples=40)
@given(st.lists(rows(), max_size=4))
def test_rows_survive_a_file_bit_for_bit(tmp_path_factory: Any, found: list[Row]) -> None:
    path = tmp_path_factory.mktemp("rows") / "some.rows"
    numbered = {3 * place: row for place, row in enumerate(found)}

    read = read_rows(path, KINDS, write_rows(path, numbered))

    assert read == numbered
    for number, row in numbered.items():
        if row.tokens is not None:
            assert read[number].tokens.log_probs.dtype == row.tokens.log_probs.dtype
            assert read[number].tokens.log_probs.tobytes() == row.tokens.log_probs.tobytes()


def test_what_waits_for_an_update_survives_a_file(tmp_path: Path) -> None:
    drawn = Sequence(
        id="é", token_ids=[1, 2], loss_mask=[False, True], advantages=[0.0, 0.1], group="g"
    )
    text = Text(prompt=[{"role": "user", "content": "p"}], target="t\n")
    given = Sequence(id="t", text=text, weight=0.5, log_probs_reference=[-0.1])
    words = Distribution(
        log_probs=np.array([[-0.1, -2.5, -3.0]], dtype=np.float16),
        ids=np.array([[4, 0, 7]], dtype=np.int32),
    )
    numbers = np.array([-0.1], dtype=np.float32)
    teachers = (Teacher(node="teacher", weight=1.0, log_probs=numbers, words=words),)
    taught = replace(drawn, teachers=teachers, under=text)
    waiting = {
        0: drawn,
        1: given,
        2: Pair(id="p", chosen=drawn, rejected=given, margin=0.25),
        3: taught,
    }

    path = tmp_path / "some.rows"

    assert read_rows(path, KINDS, write_rows(path, waiting)) == waiting


def test_numbers_that_rows_share_stand_there_once(tmp_path: Path) -> None:
    long = Sequence(id="a", token_ids=[7] * 5000, loss_mask=[False] * 5000)

    write_rows(tmp_path / "one", {0: long})
    write_rows(tmp_path / "two", {0: long, 1: long})

    one, two = ((tmp_path / name).stat().st_size for name in ("one", "two"))
    assert two - one < 1000


def test_the_manifest_names_the_files_and_holds_no_row(checkpoints: Checkpoints) -> None:
    path = checkpoints.write(1, state(range(3)), Saver())

    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["roles"]["pool"]["entries"] == {
        "__kept__": [[n, "roles.pool.entries-1.rows"] for n in range(3)]
    }
    assert list(manifest["files"]) == list(manifest["hashes"]) == ["roles.pool.entries-1.rows"]
    assert "p1" not in (path / "manifest.json").read_text()
    assert held(checkpoints) == [0, 1, 2]


def test_a_row_is_written_once(checkpoints: Checkpoints) -> None:
    checkpoints.write(1, state(range(4)), Saver())
    checkpoints.write(2, state([0, 5, 2, 3, 4]), Saver())
    third = checkpoints.write(3, state([2, 5, 3, 4]), Saver())

    assert files(third) == {"roles.pool.entries-1.rows": 3, "roles.pool.entries-2.rows": 2}
    assert held(checkpoints) == [2, 5, 3, 4]


def test_a_file_that_is_hardly_used_is_left_behind(checkpoints: Checkpoints) -> None:
    checkpoints.write(1, state(range(5)), Saver())

    second = checkpoints.write(2, state([3, 4, 5]), Saver())

    assert files(second) == {"roles.pool.entries-2.rows": 1}
    assert held(checkpoints) == [3, 4, 5]


def test_older_checkpoints_may_go(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=1)

    for step in range(1, 5):
        checkpoints.write(step, state(range(step)), Saver())

    [path] = tmp_path.glob("step-*")
    assert files(path) == {f"roles.pool.entries-{step}.rows": 1 for step in range(1, 5)}
    assert held(checkpoints) == [0, 1, 2, 3]


def test_a_step_that_is_written_again_keeps_its_rows(checkpoints: Checkpoints) -> None:
    for numbers in ([0, 1], [0, 1], [1, 2], [2, 7, 8]):
        checkpoints.write(1, state(numbers), Saver())
        assert held(checkpoints) == numbers


def test_a_resumed_run_writes_no_row_again(tmp_path: Path, checkpoints: Checkpoints) -> None:
    checkpoints.write(1, state(range(3)), Saver())
    resumed = Checkpoints(tmp_path, keep=9)
    latest = resumed.latest()
    assert latest is not None

    resumed.read(latest)
    second = resumed.write(2, state(range(4)), Saver())

    assert files(second) == {"roles.pool.entries-1.rows": 2, "roles.pool.entries-2.rows": 1}
    assert held(resumed) == [0, 1, 2, 3]


def test_without_hard_links_files_are_copied(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(side_files.os, "link", refuse)
    checkpoints.write(1, state(range(3)), Saver())

    second = checkpoints.write(2, state(range(4)), Saver())

    assert files(second) == {"roles.pool.entries-1.rows": 1, "roles.pool.entries-2.rows": 1}
    assert held(checkpoints) == [0, 1, 2, 3]


def test_rows_of_a_checkpoint_that_is_gone_are_written_anew(
    tmp_path: Path, checkpoints: Checkpoints
) -> None:
    first = checkpoints.write(1, state(range(3)), Saver())
    (first / "roles.pool.entries-1.rows").unlink()

    second = checkpoints.write(2, state(range(3)), Saver())

    assert files(second) == {"roles.pool.entries-2.rows": 1}
    assert held(checkpoints) == [0, 1, 2]


def test_a_full_disk_leaves_the_older_checkpoint_and_its_rows(
    tmp_path: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.write(1, state(range(3)), Saver())

    def full(*_: Any) -> str:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(side_files, "write_rows", full)
        with pytest.raises(StorageFull):
            checkpoints.write(2, state(range(4)), Saver())

    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert held(checkpoints) == [0, 1, 2]
    second = checkpoints.write(2, state(range(4)), Saver())
    assert files(second) == {"roles.pool.entries-1.rows": 2, "roles.pool.entries-2.rows": 1}


def test_a_writer_that_was_killed_before_the_manifest_wrote_nothing(
    tmp_path: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.write(1, state(range(3)), Saver())

    def killed(*_: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("coloop.runtime.checkpoints.checkpoint.write_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.write(2, state(range(4)), Saver())

    assert [*tmp_path.glob(".step-2.*.new")]
    again = Checkpoints(tmp_path, keep=9)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]
    assert held(again) == [0, 1, 2]


@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_a_file_that_is_not_what_was_written_is_named(how: str, checkpoints: Checkpoints) -> None:
    path = checkpoints.write(1, state(range(3)), Saver())
    latest = checkpoints.latest()
    assert latest is not None
    file = path / "roles.pool.entries-1.rows"
    content = file.read_bytes()
    file.unlink()
    if how != "gone":
        file.write_bytes(content[:-1] + b"?" if how == "changed" else content[:-1])

    with pytest.raises(CheckpointError, match=r"roles\.pool\.entries-1\.rows"):
        checkpoints.read(latest)
    if how != "changed":
        with pytest.raises(CheckpointError, match=r"roles\.pool\.entries-1\.rows"):
            checkpoints.latest()


def test_a_checkpoint_of_an_older_version_is_refused_by_name(
    tmp_path: Path, checkpoints: Checkpoints
) -> None:
    (tmp_path / "step-3").mkdir()
    (tmp_path / "step-3" / "manifest.json").write_text(json.dumps({"version": 1, "step": 3}))

    with pytest.raises(CheckpointError, match=r"step-3: written in manifest version 1, .* reads 2"):
        checkpoints.latest()


def test_a_free_name_is_looked_for_as_far_as_names_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pool.entries-40.rows", "pool.entries-40-2.rows", "pool.entries-40-3.rows"):
        (tmp_path / name).touch()
    drawn: list[int] = []

    def numbers(start: int) -> Iterable[int]:
        for number in itertools.count(start):
            drawn.append(number)
            yield number

    monkeypatch.setattr(side_files, "count", numbers)
    free = side_files._free_name(tmp_path, "pool.entries", 40)
    fresh = side_files._free_name(tmp_path, "pool.entries", 41)

    assert (free, fresh) == ("pool.entries-40-4.rows", "pool.entries-41.rows")
    assert drawn == [2, 3, 4]


@pytest.mark.attack
@pytest.mark.parametrize("leads", ["diary", "roles.pool.entries-1.rows"])
def test_a_link_in_the_place_of_a_file_is_not_taken_over(
    tmp_path: Path, checkpoints: Checkpoints, leads: str
) -> None:
    """Not even one to the same rows: what it leads to may change."""
    first = checkpoints.write(1, state(range(3)), Saver())
    rows = first / "roles.pool.entries-1.rows"
    private = tmp_path / "private"
    private.mkdir()
    rows.rename(private / rows.name)
    (private / "diary").write_bytes(b"x" * (private / rows.name).stat().st_size)
    rows.symlink_to(private / leads)

    second = checkpoints.write(2, state(range(4)), Saver())

    assert files(second) == {"roles.pool.entries-2.rows": 1}
    assert not [path for path in second.rglob("*") if path.is_symlink()]
    assert held(checkpoints) == [0, 1, 2, 3]
