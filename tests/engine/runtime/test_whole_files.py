"""Files of a run that are there whole, or as they were before."""

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.runs.conftest import SMALL

from coloop.data.files.marks import aside_of, write_whole
from coloop.runtime.checkpoints.run_folder import SPEC_FILE, RunRequest, choose_folder, held_folder
from coloop.spec.io import parse


@pytest.fixture
def no_room() -> Iterator[None]:
    """No file may grow beyond 16 bytes, as on a disk that fills while one is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


def request_of(runs: Path) -> RunRequest:
    spec = parse(SMALL).spec
    assert spec is not None
    return RunRequest(spec=spec, text=SMALL, root=runs, runs_dir=runs, run_id="one")


def test_what_was_there_stays_where_the_new_is_cut(tmp_path: Path, no_room: None) -> None:
    path = tmp_path / "plan.json"
    path.write_text("the old", encoding="utf-8")

    with pytest.raises(OSError, match="File too large"):
        write_whole(path, "the new one is longer than that")

    assert path.read_text(encoding="utf-8") == "the old"
    assert [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_the_loop_of_a_run_is_never_half_there(tmp_path: Path, no_room: None) -> None:
    request = request_of(tmp_path)
    folder = choose_folder(request)

    with pytest.raises(OSError, match="File too large"), held_folder(request, folder):
        pass

    assert not (folder / SPEC_FILE).exists()


def test_a_run_that_was_killed_while_its_loop_was_written_can_begin(tmp_path: Path) -> None:
    request = request_of(tmp_path)
    left = aside_of(choose_folder(request) / SPEC_FILE)
    left.write_text(SMALL[:20], encoding="utf-8")

    folder = choose_folder(request)
    with held_folder(request, folder):
        assert (folder / SPEC_FILE).read_text(encoding="utf-8") == SMALL

    assert not left.exists()
