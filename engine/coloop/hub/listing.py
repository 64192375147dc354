"""The models and datasets on this machine: in the folder of models, in the cache of the hub, and
those that a Python package brings. Nothing is asked of the hub."""

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from coloop.plan.settings.architecture import (
    UnknownArchitecture,
    architecture_from_config,
    count_parameters,
)
from coloop.plan.settings.facts import CONFIG_LIMIT_BYTES
from coloop.spec import presets
from coloop.spec.hub_cache import kept_repos, missing_in
from coloop.spec.lean import record
from coloop.spec.model_folders import models_dir

Place = Literal["folder", "cache", "package"]


@record
class ModelHere:
    """A model that a loop can name."""

    name: str
    """As `model.path` names it."""
    title: str
    place: Place
    """The folder of models, the cache of the hub, or a package from which it can be made."""
    folder: str | None
    """Where it is; None if it has to be made of a package first."""
    bytes: int
    parameters: int | None
    missing: str | None
    """What its download lacks; None if it is whole."""
    is_installed: bool = True
    """Whether the package from which it is made is installed."""


@record
class DatasetHere:
    """A dataset in the cache of the hub."""

    name: str
    folder: str
    bytes: int
    missing: str | None


def models_here() -> list[ModelHere]:
    """All models on this machine, by place and name."""
    known = {preset.name: preset for preset in presets.packaged_models()}
    above = models_dir()
    folders = sorted(above.iterdir()) if above.is_dir() else []
    there = [path for path in folders if (path / "config.json").is_file()]
    own = [
        ModelHere(
            name=path.name,
            title=known[path.name].title if path.name in known else "",
            place="folder",
            folder=str(path),
            bytes=_bytes_in(path),
            parameters=parameters_in(path),
            missing=missing_in(path),
        )
        for path in there
    ]
    cached = [
        ModelHere(
            name=repo.id,
            title="",
            place="cache",
            folder=str(repo.folder),
            bytes=repo.bytes,
            parameters=parameters_in(repo.folder),
            missing=repo.missing,
        )
        for repo in kept_repos("model")
        if (repo.folder / "config.json").is_file()
    ]
    names = {path.name for path in there}
    packaged = [
        ModelHere(
            name=preset.name,
            title=preset.title,
            place="package",
            folder=None,
            bytes=0,
            parameters=_parameters(dict(preset.architecture), preset.name),
            missing=None,
            is_installed=_is_installed(preset),
        )
        for preset in known.values()
        if preset.name not in names
    ]
    return [*own, *cached, *packaged]


def datasets_here() -> list[DatasetHere]:
    """All datasets in the cache of the hub, by name."""
    return [
        DatasetHere(name=repo.id, folder=str(repo.folder), bytes=repo.bytes, missing=repo.missing)
        for repo in kept_repos("dataset")
    ]


def parameters_in(folder: Path) -> int | None:
    """Parameters of the model in a folder, by its config; None if that cannot be read."""
    file = folder / "config.json"
    try:
        if file.stat().st_size > CONFIG_LIMIT_BYTES:
            return None
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return _parameters(config, folder.name) if isinstance(config, dict) else None


def _parameters(config: dict[str, Any], name: str) -> int | None:
    try:
        return count_parameters(architecture_from_config(config, name)).total
    except UnknownArchitecture:
        return None


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _is_installed(preset: presets.ModelPreset) -> bool:
    try:
        return preset.package is not None and bool(version(preset.package.name))
    except PackageNotFoundError:
        return False
