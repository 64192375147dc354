"""What travels to a cluster that does not see this machine's files."""

from pathlib import Path

import pytest
from tests.backend import conftest

from coloop_server.launchers import upload
from coloop_server.launchers.protocol import LaunchFailed
from coloop_server.launchers.upload import build_upload
from coloop_server.paths import Roots
from coloop_server.settings import Settings

pytestmark = pytest.mark.attack

SECRET = "nobody else may read this"
LOOP = conftest.LOOP.replace(
    "{type: task, task: arithmetic, split: train}", "{type: file, path: data/rows.jsonl}"
)


@pytest.fixture
def work(settings: Settings) -> Path:
    """The first root, with the loop and its file."""
    work = settings.allowed_roots[0]
    (work / "data").mkdir(parents=True)
    (work / "data" / "rows.jsonl").write_text('{"prompt": "1+1="}\n')
    (work / "spec.yaml").write_text(LOOP)
    return work


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder outside of the roots."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "rows.jsonl").write_text(SECRET)
    return tmp_path / "private"


def carried(work: Path, roots: Roots) -> dict[str, str]:
    """What lies in the upload, by name."""
    folder = build_upload(work / "spec.yaml", work / "upload", work, roots)
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def test_a_file_of_the_roots_is_carried_also_behind_a_link(work: Path, settings: Settings) -> None:
    rows = (work / "data" / "rows.jsonl").rename(work / "rows")
    (work / "data" / "rows.jsonl").symlink_to(rows)

    found = carried(work, settings.roots)

    assert found["files/0/rows.jsonl"] == '{"prompt": "1+1="}\n'
    assert "path: files/0/rows.jsonl" in found["spec.yaml"]


@pytest.mark.parametrize("link", ["data/rows.jsonl", "data"])
def test_a_link_that_came_after_the_check_is_not_carried(
    work: Path, private: Path, settings: Settings, link: str
) -> None:
    (work / link).rename(work / "before")
    (work / link).symlink_to(private if link == "data" else private / "rows.jsonl")

    with pytest.raises(LaunchFailed, match=r"data/rows\.jsonl.* outside of the folders"):
        carried(work, settings.roots)

    assert not [*(work / "upload").rglob("*.jsonl")]


@pytest.mark.parametrize("link", ["data/rows.jsonl", "data"])
def test_a_link_that_comes_while_it_is_copied_is_not_carried(
    work: Path,
    private: Path,
    settings: Settings,
    link: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the look at where the file lies and its opening."""
    admits = Roots.admits

    def admits_and_swaps(roots: Roots, path: Path) -> bool:
        is_admitted = admits(roots, path)
        (work / link).rename(work / "before")
        (work / link).symlink_to(private if link == "data" else private / "rows.jsonl")
        return is_admitted

    monkeypatch.setattr(upload.Roots, "admits", admits_and_swaps)

    with pytest.raises(LaunchFailed, match="is a link to"):
        carried(work, settings.roots)

    assert not [*(work / "upload").rglob("*.jsonl")]
