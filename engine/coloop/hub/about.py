"""What a repository of the hub holds: read before anything is downloaded."""

import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from coloop.errors import HubFailed
from coloop.hub.client import SECONDS, api, asking, headers
from coloop.plan.settings.architecture import (
    UnknownArchitecture,
    architecture_from_config,
    count_parameters,
)
from coloop.plan.settings.families import refusal_of
from coloop.spec.hub_cache import RepoKind, endpoint, folder_of_repo
from coloop.spec.lean import record

CONFIG_LIMIT_BYTES: Final = 2**20
WANTED: Final = (
    *("*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.model", "*.jinja"),
    *("*.py", "README.md", "LICENSE*", "tokenizer*", "additional_chat_templates/*"),
)
"""Files of a model that are loaded, or say what it is."""
UNWANTED: Final = ("original/*", "onnx/*", "openvino/*", "coreml/*", "*/*.safetensors")
DATA: Final = ("*.parquet", "*.jsonl", "*.json", "*.csv", "*.tsv")
COMPRESSED: Final = ("", ".gz", ".bz2", ".xz", ".zst")

SPLIT: Final = re.compile(r"(?:^|[/_.-])(train|test|validation|valid|val|dev)(?=[/_.-])")
SHORT: Final = {"valid": "validation", "val": "validation", "dev": "validation"}


@record
class HubFile:
    name: str
    bytes: int
    checksum: str
    """SHA-256 of a large file, else the id of its git blob: its name in the cache."""
    is_large: bool


@record
class HubRepo:
    """A repository at one commit."""

    id: str
    kind: RepoKind
    revision: str | None
    """The branch, tag or commit that was asked for; None is `main`."""
    commit: str
    licence: str | None
    is_gated: bool
    files: tuple[HubFile, ...]
    """What a download fetches."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def bytes_here(self) -> int:
        """Of these files, what is in the cache already, parts that were begun included."""
        blobs = folder_of_repo(self.id, self.kind) / "blobs"
        here = 0
        for file in self.files:
            for path in (blobs / file.checksum, blobs / begun_name(file)):
                if path.is_file():
                    here += min(path.stat().st_size, file.bytes)
                    break
        return here


@record
class HubModel:
    """A model of the hub, before its download."""

    repo: HubRepo
    config: Mapping[str, Any] | None
    parameters: int | None
    active: int | None
    """Parameters that a token uses; fewer than all in a mixture of experts."""
    model_type: str | None
    refusal: str | None
    """Why coloop does not load it; None if it does."""


@record
class DataPart:
    """The files of one split of a dataset."""

    config: str | None
    split: str
    files: tuple[HubFile, ...]


@record
class HubDataset:
    """A dataset of the hub, before its download."""

    repo: HubRepo
    parts: tuple[DataPart, ...]

    def part(self, split: str | None = None, config: str | None = None) -> DataPart:
        """The first part with this split and configuration; raises `HubFailed`."""
        for part in self.parts:
            if split in (None, part.split) and config in (None, part.config):
                return part
        known = ", ".join(
            part.split if part.config is None else f"{part.config}/{part.split}"
            for part in self.parts
        )
        wanted = split if config is None else f"{config}/{split or '...'}"
        raise HubFailed(f"{self.repo.id} has no split {wanted}; it has {known}")


def only(repo: HubRepo, files: tuple[HubFile, ...]) -> HubRepo:
    """A repository of which only these files are fetched."""
    return replace(repo, files=files)


def begun_name(file: HubFile) -> str:
    """The name of a file whose download was begun, among the blobs."""
    return f"{file.checksum}.coloop.incomplete"


def describe_model(repo: str, revision: str | None = None) -> HubModel:
    """Read what the hub says of a model, and its config; raises `HubFailed`."""
    with asking(repo):
        info = api().model_info(repo, revision=revision, files_metadata=True, timeout=SECONDS)
        found = _repo(repo, "model", revision, info, _is_of_model)
    config = _config(repo, found.commit) if _has(info, "config.json") else None
    parameters, active, refusal = None, None, _refusal(found, info, config)
    if config is not None:
        try:
            count = count_parameters(architecture_from_config(dict(config), repo))
            parameters, active = count.total, count.active
        except UnknownArchitecture as unknown:
            refusal = refusal or str(unknown)
        refusal = refusal or refusal_of(dict(config))
    stored = getattr(info.safetensors, "total", None)
    return HubModel(
        repo=found,
        config=config,
        parameters=parameters or stored,
        active=active or parameters or stored,
        model_type=None if config is None else str(config.get("model_type")),
        refusal=refusal,
    )


def describe_dataset(repo: str, revision: str | None = None) -> HubDataset:
    """Read which files of rows a dataset has; raises `HubFailed`."""
    with asking(repo, "dataset"):
        info = api().dataset_info(repo, revision=revision, files_metadata=True, timeout=SECONDS)
        found = _repo(repo, "dataset", revision, info, _is_of_rows)
        card = info.card_data.to_dict() if info.card_data is not None else {}
    if not found.files:
        known = ", ".join(pattern.removeprefix("*") for pattern in DATA)
        raise HubFailed(f"{repo} has no files of rows that are read here ({known})")
    return HubDataset(repo=found, parts=tuple(_parts(found, card)))


def _parts(repo: HubRepo, card: Mapping[str, Any]) -> Iterator[DataPart]:
    """As the card of the dataset says it, else by names of files and folders."""
    configs = card.get("configs")
    named = [part for config in configs or () for part in _of_config(repo, config)]
    if named:
        yield from named
        return
    by_split: dict[str, list[HubFile]] = {}
    for file in repo.files:
        found = SPLIT.search(file.name)
        split = SHORT.get(found[1], found[1]) if found else "train"
        by_split.setdefault(split, []).append(file)
    for split, files in by_split.items():
        yield DataPart(config=None, split=split, files=tuple(files))


def _of_config(repo: HubRepo, config: Any) -> Iterator[DataPart]:
    """`{config_name, data_files: pattern | [pattern] | [{split, path}]}`, as cards have it."""
    if not isinstance(config, dict):
        return
    entries = config.get("data_files") or ()
    for entry in entries if isinstance(entries, list) else [entries]:
        split, path = "train", entry
        if isinstance(entry, dict):
            split, path = str(entry.get("split", "train")), entry.get("path")
        patterns = [str(item) for item in (path if isinstance(path, list) else [path])]
        files = tuple(file for file in repo.files if _matches(file.name, patterns))
        if files:
            yield DataPart(config=str(config.get("config_name")), split=split, files=files)


def _repo(
    repo: str,
    kind: RepoKind,
    revision: str | None,
    info: Any,
    is_wanted: Callable[[str], bool],
) -> HubRepo:
    if not info.sha:
        raise ValueError("no commit of the repository")
    files = tuple(
        HubFile(
            name=sibling.rfilename,
            bytes=int((sibling.lfs.size if sibling.lfs else sibling.size) or 0),
            checksum=sibling.lfs.sha256 if sibling.lfs else str(sibling.blob_id),
            is_large=bool(sibling.lfs),
        )
        for sibling in info.siblings or ()
        if is_wanted(sibling.rfilename)
    )
    return HubRepo(
        id=repo,
        kind=kind,
        revision=revision,
        commit=info.sha,
        licence=_licence(info),
        is_gated=bool(info.gated),
        files=files,
    )


def _is_of_model(name: str) -> bool:
    return _matches(name, WANTED) and not _matches(name, UNWANTED)


def _is_of_rows(name: str) -> bool:
    plain = name
    for suffix in COMPRESSED[1:]:
        plain = plain.removesuffix(suffix)
    is_about = name.rpartition("/")[2] in ("dataset_infos.json", "dataset_dict.json", "state.json")
    return _matches(plain, DATA) and not is_about and not name.startswith(".")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _licence(info: Any) -> str | None:
    card = info.card_data
    named = card.get("license_name") or card.get("license") if card is not None else None
    if named is None:
        tags = (tag for tag in info.tags or () if tag.startswith("license:"))
        named = next((tag.partition(":")[2] for tag in tags), None)
    if isinstance(named, list):
        return ", ".join(map(str, named)) or None
    return str(named) if named else None


def _has(info: Any, name: str) -> bool:
    return any(sibling.rfilename == name for sibling in info.siblings or ())


def _refusal(repo: HubRepo, info: Any, config: Mapping[str, Any] | None) -> str | None:
    if any(file.name.endswith(".safetensors") for file in repo.files):
        return None if config is not None else "it has no config.json of a model"
    if any(sibling.rfilename.endswith(".gguf") for sibling in info.siblings or ()):
        return "it has GGUF files only; choose the repository that they were made of"
    return "it has no weights as safetensors; pickles, which can run any code, are not loaded"


def _config(repo: str, commit: str) -> Mapping[str, Any] | None:
    """`config.json`, into memory."""
    text = read_bytes(repo, "config.json", commit, limit=CONFIG_LIMIT_BYTES)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HubFailed(f"{repo}: config.json cannot be read: {error}") from error
    return config if isinstance(config, dict) else None


def read_bytes(
    repo: str, name: str, revision: str, *, kind: RepoKind = "model", limit: int
) -> bytes:
    """Up to `limit` bytes from the start of a file, by a ranged request; nothing is kept."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import get_session, hf_raise_for_status

    with asking(repo, kind, what=name):
        url = hf_hub_url(repo, name, repo_type=kind, revision=revision, endpoint=endpoint())
        ranged = {**headers(), "Range": f"bytes=0-{limit - 1}", "Accept-Encoding": "identity"}
        with get_session().stream("GET", url, headers=ranged, timeout=SECONDS) as answer:
            if answer.is_error:
                answer.read()
            hf_raise_for_status(answer)
            data = bytearray()
            for part in answer.iter_bytes(2**16):
                data += part
                if len(data) >= limit:
                    break
        return bytes(data[:limit])
