"""The cache of the Hugging Face Hub on this machine, in the layout of `huggingface_hub`.

    models--USER--NAME/refs/main            the commit of a branch or a tag
    models--USER--NAME/snapshots/COMMIT/    its files, as links to blobs
    models--USER--NAME/blobs/               contents by checksum; `*.incomplete` were begun

Only reads folders; nothing is downloaded.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from coloop.spec.lean import record

RepoKind = Literal["model", "dataset"]
HUB_ID: Final = re.compile(r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")
MAIN: Final = "main"
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
INDEX: Final = "model.safetensors.index.json"
ENDPOINT: Final = "https://huggingface.co"


def endpoint() -> str:
    """The address of the hub: `HF_ENDPOINT`, else that of Hugging Face."""
    return (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")


def is_offline() -> bool:
    """Whether the environment disables the hub."""
    return any(
        os.environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def cache_dir() -> Path:
    """The folder of the cache, which need not exist: `HF_HUB_CACHE`, else `hub` below `HF_HOME`,
    which is `huggingface` below `XDG_CACHE_HOME` (`huggingface_hub.constants`)."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := os.environ.get(name):
            return Path(named).expanduser().absolute()
    home = os.environ.get("HF_HOME")
    if home is None:
        above = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        home = os.path.join(above, "huggingface")
    return Path(home).expanduser().absolute() / "hub"


def folder_of_repo(repo: str, kind: RepoKind = "model") -> Path:
    """`models--USER--NAME` in the cache; it need not exist."""
    return cache_dir() / "--".join((f"{kind}s", *repo.split("/")))


def snapshot_of(repo: str, revision: str | None = None, kind: RepoKind = "model") -> Path | None:
    """The folder with the files of a repository in the cache; None if nothing of it is there.

    Args:
        revision: a branch, a tag or a commit; None is `main`.
    """
    if HUB_ID.match(repo) is None:
        return None
    return _snapshot_in(folder_of_repo(repo, kind), revision)


def _snapshot_in(folder: Path, revision: str | None) -> Path | None:
    named = revision or MAIN
    if ".." in named:
        return None
    try:
        commit = (folder / "refs" / named).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        commit = named
    if COMMIT.fullmatch(commit) is None:
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def missing_in(folder: Path) -> str | None:
    """The first file of weights that a model folder lacks; None if all are there."""
    index = folder / INDEX
    if not index.is_file():
        is_there = any(folder.glob("*.safetensors"))
        return None if is_there else "model.safetensors"
    try:
        files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return INDEX
    names = sorted(name for name in files if isinstance(name, str))
    return next((name for name in names if not (folder / name).is_file()), None)


@record
class KeptRepo:
    """A repository of which files are in the cache."""

    id: str
    kind: RepoKind
    folder: Path
    """Of its newest snapshot."""
    bytes: int
    """Of all its blobs, files that were begun included."""
    missing: str | None
    """What a model lacks, so that a download continues; None if it is whole."""


def kept_repos(kind: RepoKind) -> Iterator[KeptRepo]:
    """What is in the cache, by id; folders that were only begun included."""
    above = cache_dir()
    for folder in sorted(above.glob(f"{kind}s--*")) if above.is_dir() else ():
        name = "/".join(folder.name.split("--")[1:])
        snapshot = _snapshot_in(folder, None) or _newest(folder / "snapshots")
        if snapshot is None:
            continue
        blobs = list((folder / "blobs").glob("*"))
        begun = any(blob.name.endswith(".incomplete") for blob in blobs)
        missing = missing_in(snapshot) if kind == "model" else None
        yield KeptRepo(
            id=name,
            kind=kind,
            folder=snapshot,
            bytes=sum(_size(blob) for blob in blobs),
            missing=missing or ("a file that was begun" if begun else None),
        )


def _newest(snapshots: Path) -> Path | None:
    there = [path for path in snapshots.glob("*") if path.is_dir()]
    return max(there, key=lambda path: path.stat().st_mtime, default=None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
