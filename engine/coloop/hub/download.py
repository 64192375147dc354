"""Downloads into the cache of the hub, which continue where they stopped.

    file --ranged GET, checked by its checksum--> blobs/CHECKSUM <--link-- snapshots/COMMIT/NAME

As `huggingface_hub` does, which then finds it. The library removes a file whose download ends
early; here it stays as `*.incomplete` among the blobs, and the next download asks for the rest.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from coloop.errors import HubFailed, StorageFull
from coloop.hub.about import HubFile, HubRepo, begun_name
from coloop.hub.client import asking, headers
from coloop.spec.hub_cache import MAIN, cache_dir, endpoint, folder_of_repo
from coloop.spec.lean import record
from coloop.units import gib

RETRIES: Final = 3


@record
class Progress:
    """How far a download is."""

    done: int
    total: int
    """Bytes."""
    file: str
    """What is fetched now; empty at the end."""


Report = Callable[[Progress], None]
"""Called after each part; an exception that it raises cancels the download."""


def download(repo: HubRepo, report: Report = lambda _: None) -> Path:
    """Fetch the files of a repository that are not here; returns the folder of the snapshot.

    Raises:
        HubFailed: the hub does not answer, refuses, or sends something else.
        StorageFull: there is not enough space.
    """
    kept = folder_of_repo(repo.id, repo.kind)
    _check_space(repo)
    counted = _Counted(repo, report)
    for file in repo.files:
        counted.at(file)
        if not (kept / "blobs" / file.checksum).is_file():
            _fetch(repo, file, kept / "blobs", counted)
    folder = kept / "snapshots" / repo.commit
    for file in repo.files:
        _link(kept / "blobs" / file.checksum, folder / file.name)
    _note_branch(repo)
    report(Progress(done=repo.bytes, total=repo.bytes, file=""))
    return folder


def _link(blob: Path, path: Path) -> None:
    """The file of a snapshot: a relative link, or a copy where there are no links."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return
    path.unlink(missing_ok=True)
    try:
        path.symlink_to(os.path.relpath(blob, path.parent))
    except OSError:
        shutil.copyfile(blob, path)


class _Counted:
    """Bytes that are here, over all files."""

    def __init__(self, repo: HubRepo, report: Report) -> None:
        self._total, self._done, self._report = repo.bytes, repo.bytes_here, report
        self._file = ""

    def at(self, file: HubFile) -> None:
        self._file = file.name
        self.add(0)

    def add(self, size: int) -> None:
        self._done = max(0, self._done + size)
        self._report(
            Progress(done=min(self._done, self._total), total=self._total, file=self._file)
        )


def _check_space(repo: HubRepo) -> None:
    above = cache_dir()
    above.mkdir(parents=True, exist_ok=True)
    needed, free = repo.bytes - repo.bytes_here, shutil.disk_usage(above).free
    if needed > free:
        raise StorageFull(
            f"{repo.id} needs {gib(needed)} more in {above}, where {gib(free)} are free; free some "
            "space, or set HF_HOME to a folder on another disk"
        )


def _fetch(repo: HubRepo, file: HubFile, blobs: Path, counted: _Counted) -> None:
    blobs.mkdir(parents=True, exist_ok=True)
    begun = blobs / begun_name(file)
    for attempt in range(RETRIES):
        with asking(repo.id, repo.kind, what=file.name):
            try:
                _append(repo, file, begun, counted)
                break
            except _transient():
                if attempt == RETRIES - 1:
                    raise
    if (found := begun.stat().st_size) != file.bytes:
        raise HubFailed(
            f"{repo.id}: {file.name} ended after {found:,} of {file.bytes:,} bytes; the same "
            "command continues where it stopped"
        )
    if _checksum(begun, file) != file.checksum:
        counted.add(-file.bytes)
        begun.unlink()
        raise HubFailed(
            f"{repo.id}: {file.name} arrived with other contents than the hub promised; it was "
            "removed, and the same command fetches it again"
        )
    os.replace(begun, blobs / file.checksum)


def _append(repo: HubRepo, file: HubFile, begun: Path, counted: _Counted) -> None:
    """Ask for what a file lacks, and write it behind what is there."""
    from huggingface_hub import constants, hf_hub_url
    from huggingface_hub.utils import get_session, hf_raise_for_status

    url = hf_hub_url(
        repo.id, file.name, repo_type=repo.kind, revision=repo.commit, endpoint=endpoint()
    )
    with begun.open("ab") as out:
        have = out.tell()
        if have > file.bytes:  # of another answer
            counted.add(-min(have, file.bytes))
            out.truncate(0)
            have = 0
        if have == file.bytes:
            return
        ranged = {**headers(), "Accept-Encoding": "identity"}
        if have:
            ranged["Range"] = f"bytes={have}-"
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with get_session().stream("GET", url, headers=ranged, timeout=timeout) as answer:
            if answer.is_error:
                answer.read()
            hf_raise_for_status(answer)
            if have and answer.status_code == 200:  # the server ignores ranges
                out.truncate(0)
                counted.add(-have)
            for part in answer.iter_bytes():  # as it arrives, so that a cut loses nothing
                out.write(part)
                counted.add(len(part))


def _transient() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.RemoteProtocolError, httpx2.ReadError)


def _checksum(path: Path, file: HubFile) -> str:
    """SHA-256 of a large file, the id of a git blob of a small one."""
    if not file.is_large:
        data = path.read_bytes()
        return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _note_branch(repo: HubRepo) -> None:
    """Write which commit a branch is, as the library does for downloads by branch."""
    branch = repo.revision or MAIN
    if branch != repo.commit:
        ref = folder_of_repo(repo.id, repo.kind) / "refs" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(repo.commit, encoding="utf-8")
