"""Requests and responses of the routes for other frameworks."""

from typing import Literal

from pydantic import Field

from coloop_server.checks.schemas import CheckResult
from coloop_server.presets.schemas import Sketch
from coloop_server.schemas import Input, Output

MAX_TEXT = 1024 * 1024
"""Characters of a configuration."""
MAX_FILES = 3


class Configuration(Input):
    """A script, a command or a file of settings. Nothing in it is run."""

    text: str = Field(max_length=MAX_TEXT)
    name: str = Field(default="", max_length=200)
    """Name of the file, whose suffix helps to tell what it is; empty: it was pasted."""
    others: list[str] = Field(default=[], max_length=MAX_FILES)
    """Further files of the same job."""
    gpu: str | None = Field(default=None, max_length=100)
    """Kind of the GPUs; null: assumed."""
    gpus: int | None = Field(default=None, ge=1, le=4096)
    """Processes, for files that do not say how many; null: assumed."""


class SettingFate(Output):
    """What became of a setting."""

    name: str
    value: str
    line: int | None
    kind: Literal["carried", "not_carried", "not_understood"]
    to: str
    """Path that has its value in the loop; empty if it is not carried."""
    why: str
    """Why it is not carried, and what to do; empty if it is."""


class ImportedLoop(Output):
    """A loop made from a configuration."""

    framework: str
    version: str
    """Version whose names and defaults were used."""
    trainer: str
    name: str
    yaml: str
    settings: list[SettingFate]
    """Every given setting, in the order of the file."""
    assumptions: list[str]
    """What the configuration does not say and was assumed."""
    sketch: Sketch
    check: CheckResult
