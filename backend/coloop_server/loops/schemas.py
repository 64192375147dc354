"""What the routes of loops take and give."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MAX_YAML = 4 * 1024 * 1024
MAX_NAME = 200


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Output(BaseModel):
    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)


class LoopText(Input):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop, as text. A draft may have errors, but it has to be readable as YAML."""
    name: str | None = Field(default=None, max_length=MAX_NAME)
    """What to call it. Default: the name in the text."""


class LoopSummary(Output):
    id: str
    name: str
    version: int
    """1, and one more with each save that changed something."""
    revision: str
    """Names exactly this saved state; a save sends it as `If-Match`."""
    created_at: datetime
    updated_at: datetime


class Loop(LoopSummary):
    yaml: str
    spec: dict[str, Any] | None
    """The text as data, in the words of the YAML; a draft with errors too."""


class LoopVersion(Output):
    version: int
    revision: str
    name: str
    saved_at: datetime


class LoopVersionText(LoopVersion):
    yaml: str
    spec: dict[str, Any] | None
