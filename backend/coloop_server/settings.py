"""What can be set about the service: from the environment (`COLOOP_*`) or by `coloop serve`.

Nothing here is read later than at start. A secret is a `SecretStr`, so that it never shows in a
log or a traceback.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from coloop.spec.presets import presets_root
from coloop_server.paths import Roots

DEFAULT_DATA_DIR = Path(".coloop")
FILES = "files"
"""Folder in a data folder for the files that loops name."""
DEFAULT_PORT = 8321
DRIVER = (sys.executable, "-m", "coloop", "run")

MIN_TOKEN = 16
"""Characters: what is shorter is guessed."""

LauncherName = Literal["auto", "process", "ray_job"]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="COLOOP_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    host: str = "127.0.0.1"
    """Address to bind. Anything but a loopback address demands a token."""

    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535)
    """Port to bind; 0 takes a free one."""

    token: SecretStr | None = None
    """Secret that every request to the API has to bring. Default: one of the server's own, in the
    file `token` of the data folder; then only loopback is served."""

    allow_remote_code: bool = False
    """Whether loops that come over HTTP may run the Python of a model's folder
    (`trust_remote_code`); each run of one asks then."""

    data_dir: Path = DEFAULT_DATA_DIR
    """Folder of the database, of submitted specs and of the launchers' own files."""

    runs_dir: Path = Path()
    """Folder of the runs. Default: `runs` beside the default data folder, else inside it, which
    is where `coloop run` writes when it is typed in the same place."""

    database_url: SecretStr | None = None
    """SQLAlchemy address of the database. Default: SQLite in the data folder."""

    allowed_roots: Annotated[tuple[Path, ...], NoDecode] = ()
    """Folders that paths in specs may point into when a spec comes over HTTP, separated like
    `PATH`. Default: the folder that holds the default data folder, else `files` in the data folder,
    wherever the server was started. Relative paths are looked for below the first one. The runs
    folder and the data of the presets are always among them."""

    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Further names under which the server may be addressed, separated by commas."""

    allowed_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Further origins whose pages may change state, separated by commas."""

    launcher: LauncherName = "auto"
    """How runs are started: `ray_job`, `process`, or `auto` (Ray where it is installed)."""

    driver: tuple[str, ...] = DRIVER
    """Command that runs a loop. The launcher appends the spec and the options of `coloop run`."""

    ray_address: str | None = None
    """Address of the jobs API of a Ray cluster. Default: a Ray of the server's own on this
    machine, started when a loop that can run here is first looked at."""

    warm_ray: bool = True
    """Whether the server's own Ray starts with the first loop that can run here, and a driver and
    hosts are loaded there. Otherwise that begins with a run, which takes as much longer."""

    ray_shares_runs_dir: bool = True
    """Whether the cluster at `ray_address` sees the runs folder under the same path. Otherwise
    specs are uploaded, and the job's log is followed into the run folder."""

    ray_runs_dir: str = "/tmp/coloop-runs"
    """Folder on the cluster's head node for runs, where it does not see the runs folder."""

    max_running: int = Field(default=1, ge=1)
    """Runs that go on at once; further ones are queued."""

    keep_runs: bool = True
    """Whether runs go on when the server ends, so that it finds them again."""

    stop_seconds: float = Field(default=60.0, gt=0)
    """How long a run that was asked to stop may take before it is ended."""

    stale_seconds: float = Field(default=60.0, gt=0)
    """Without a sign of life for so long, a run that the server did not start counts as dead."""

    max_body_bytes: int = Field(default=8 * 1024 * 1024, gt=0)
    """Largest request body that is read."""

    send_seconds: float = Field(default=10.0, gt=0)
    """How long one message to a client of the live stream may take before it is cut off."""

    static_dir: Path = Path(__file__).parent / "_static"
    """Folder of the built page."""

    @field_validator("token")
    @classmethod
    def long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        length = len(value.get_secret_value().strip()) if value is not None else 0
        if 0 < length < MIN_TOKEN:
            raise ValueError(
                f"it has {length} characters, at least {MIN_TOKEN} are needed: "
                "`openssl rand -hex 32` makes one"
            )
        return value

    @field_validator("allowed_roots", mode="before")
    @classmethod
    def split_roots(cls, value: Any) -> Any:
        return tuple(filter(None, value.split(os.pathsep))) if isinstance(value, str) else value

    @field_validator("allowed_hosts", "allowed_origins", mode="before")
    @classmethod
    def split_names(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @model_validator(mode="before")
    @classmethod
    def fill_folders(cls, values: dict[str, Any]) -> dict[str, Any]:
        data_dir = Path(values.get("data_dir") or DEFAULT_DATA_DIR)
        # The same folder is the same, whether the server was started beside it or it was named.
        is_beside = data_dir.name == DEFAULT_DATA_DIR.name
        around = data_dir.expanduser().absolute().parent
        runs_dir = values.get("runs_dir") or (around if is_beside else data_dir) / "runs"
        files = around if is_beside else data_dir / FILES
        roots = values.get("allowed_roots") or (files,)
        return {**values, "data_dir": data_dir, "runs_dir": runs_dir, "allowed_roots": roots}

    @model_validator(mode="after")
    def resolve_folders(self) -> Self:
        for name in ("data_dir", "runs_dir"):
            object.__setattr__(self, name, Path(getattr(self, name)).expanduser().resolve())
        roots = (Path(root).expanduser().resolve() for root in self.allowed_roots)
        unique = dict.fromkeys((*roots, self.runs_dir, presets_root() / "loops"))
        object.__setattr__(self, "allowed_roots", tuple(unique))
        return self

    @property
    def roots(self) -> Roots:
        return Roots(allowed=self.allowed_roots, runs=self.runs_dir, private=self.data_dir)

    @property
    def database(self) -> str:
        given = self.database_url.get_secret_value() if self.database_url else ""
        return given or f"sqlite:///{self.data_dir / 'coloop.db'}"

    @property
    def secret(self) -> str | None:
        text = self.token.get_secret_value().strip() if self.token else ""
        return text or None
