"""Requests and responses of the hub."""

from typing import Any, Literal

from pydantic import Field

from coloop_server.schemas import Input, Output

MAX_ID = 200
MAX_ROWS = 50
RepoKind = Literal["model", "dataset"]


class ModelHere(Output):
    """A model that a loop can name."""

    name: str
    """As `model.path` names it."""
    title: str
    place: Literal["folder", "cache", "package"]
    """The folder of models, the cache of the hub, or a package from which it can be made."""
    folder: str | None
    bytes: int
    parameters: int | None
    missing: str | None
    """What its download lacks; null if it is whole."""
    is_installed: bool
    """Whether the package from which it is made is installed."""


class DatasetHere(Output):
    """A dataset in the cache of the hub."""

    name: str
    bytes: int
    missing: str | None


class Download(Output):
    """A download that this server was asked for."""

    key: str
    kind: RepoKind
    id: str
    state: Literal["running", "finished", "cancelled", "failed"]
    done: int
    total: int
    """Bytes; 0 until they are known."""
    file: str
    """What is fetched now."""
    message: str | None
    """Why it failed."""
    paths: list[str]
    """Of a dataset's files, once they are here: each for `source.path`."""


class HubHere(Output):
    """What is on this machine, and what is on its way."""

    models: list[ModelHere]
    datasets: list[DatasetHere]
    downloads: list[Download]
    endpoint: str
    """Address of the hub."""


class NamedRepo(Input):
    id: str = Field(min_length=1, max_length=MAX_ID)
    """Id on the hub, like `user/name`."""
    revision: str | None = Field(None, max_length=MAX_ID)
    """Branch, tag or commit; null is `main`."""


class NamedModel(NamedRepo):
    hardware: dict[str, Any] | None = None
    """The `hardware` section of the open loop, to see whether the model can be trained on it."""


class Fit(Output):
    way: str
    """`full` or `lora`: what is trained."""
    fits: bool | None
    peak_bytes: int | None
    usable_bytes: int
    reason: str | None


class Fits(Output):
    hardware: str
    """Title of the hardware."""
    is_here: bool
    """Whether it is this machine, not the loop's hardware."""
    ways: list[Fit]


class HubModel(Output):
    """A model of the hub, before its download."""

    id: str
    license: str | None
    is_gated: bool
    files: int
    bytes: int
    bytes_here: int
    model_type: str | None
    parameters: int | None
    active: int | None
    refusal: str | None
    """Why coloop does not load it; null if it does."""
    fits: list[Fits]


class NamedPart(NamedRepo):
    split: str | None = Field(None, max_length=MAX_ID)
    config: str | None = Field(None, max_length=MAX_ID)


class NamedRows(NamedPart):
    rows: int = Field(5, ge=1, le=MAX_ROWS)


class DataPart(Output):
    config: str | None
    split: str
    files: int
    bytes: int


class HubDataset(Output):
    """A dataset of the hub with the first rows of one part, before its download."""

    id: str
    license: str | None
    parts: list[DataPart]
    file: str
    """The file that the rows are from."""
    rows: list[dict[str, Any]]
    rows_in_file: int | None
    """Null if it is not known before a download."""
    bytes_read: int


class NewDownload(NamedPart):
    kind: RepoKind
